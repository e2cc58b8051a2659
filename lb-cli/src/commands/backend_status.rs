//! A backend's state as `status` and `watch` print it, and its reason, which `top` prints too.

use std::time::{Duration, SystemTime};

use lb_common::abi::member::Accepts;
use lb_config::message::ApiEnum as _;
use lb_model::{AdminState, MemberState};
use serde::Serialize;
use spillway_proto::v1;

use super::changes::enum_word;
use crate::output::age;

/// A state as commands print it.
pub(crate) fn state_word(state: v1::BackendState) -> &'static str {
    MemberState::from_api(state.into()).ok().flatten().map_or("unknown", MemberState::name)
}

/// Why a backend is in its state.
#[derive(Serialize)]
pub(crate) struct Reason {
    /// Like `check_fails`.
    cause: String,
    /// The check that it is about.
    health_check: Option<String>,
    pub(crate) text: String,
}

impl From<Option<v1::StateReason>> for Reason {
    fn from(message: Option<v1::StateReason>) -> Self {
        let message = message.unwrap_or_default();
        Self {
            cause: enum_word(message.cause().as_str_name(), "CAUSE_"),
            health_check: Some(message.health_check).filter(|name| !name.is_empty()),
            text: message.text,
        }
    }
}

/// A backend of a pool.
#[derive(Serialize)]
pub(crate) struct BackendRow {
    pub(crate) pool: String,
    pub(crate) address: String,
    pub(crate) region: String,
    pub(crate) state: &'static str,
    /// `active`, `drain` or `disabled`; `null`: an older daemon does not report it.
    pub(crate) admin_state: Option<&'static str>,
    #[serde(flatten)]
    pub(crate) reason: Reason,
    pub(crate) next_hop_resolved: bool,
    pub(crate) next_hop: String,
    /// Largest outer packet to it, bytes; `null`: it has no next hop.
    pub(crate) mtu: Option<u32>,
    /// Source of its tunnels; `null`: it has no next hop or no tunnel.
    pub(crate) tunnel_source: Option<String>,
    pub(crate) since: Option<String>,
    /// How much longer it is held down, in seconds; `null`: it is not.
    pub(crate) hold_left_seconds: Option<f64>,
    /// Whether it is marked out: out of service for so long that no connection is at home there.
    pub(crate) marked_out: bool,
    /// As configured.
    pub(crate) weight: u32,
    /// Share of its own new connections that it takes; `null`: it takes none.
    pub(crate) share: Option<f64>,
    /// Utilisation that it reports.
    pub(crate) utilisation: Option<f64>,
    /// Share of its weight that it asks for, percent.
    pub(crate) weight_percent: Option<u32>,
    /// Why it asks for no new connections.
    pub(crate) drain: Option<String>,
    /// Why its own report cannot be read.
    pub(crate) report_error: Option<String>,
    /// Names of the overrides that act on it.
    pub(crate) overrides: Vec<String>,
    /// The reason that the tables print.
    #[serde(skip)]
    pub(crate) why: String,
    #[serde(skip)]
    age: Option<Duration>,
}

impl BackendRow {
    pub(crate) fn new(backend: v1::BackendStatus, now: SystemTime) -> Self {
        let age = backend
            .since
            .and_then(|since| SystemTime::try_from(since).ok())
            .map(|since| now.duration_since(since).unwrap_or_default());
        Self {
            why: explain_state(&backend),
            admin_state: admin_state(&backend).map(AdminState::name),
            state: state_word(backend.state()),
            reason: backend.reason.into(),
            pool: backend.pool,
            address: backend.address,
            region: backend.region,
            next_hop_resolved: backend.next_hop_resolved,
            next_hop: backend.next_hop,
            mtu: Some(backend.mtu).filter(|mtu| *mtu != 0),
            tunnel_source: Some(backend.tunnel_source).filter(|source| !source.is_empty()),
            since: backend.since.map(|since| since.to_string()),
            hold_left_seconds: backend
                .hold_left
                .map(|left| left.seconds as f64 + f64::from(left.nanos) / 1e9),
            marked_out: backend.marked_out,
            weight: backend.weight,
            share: backend.share,
            utilisation: backend.utilisation,
            weight_percent: backend.weight_percent,
            drain: Some(backend.drain).filter(|why| !why.is_empty()),
            report_error: Some(backend.report_error).filter(|why| !why.is_empty()),
            overrides: backend.overrides,
            age,
        }
    }

    /// How long it has been in this state.
    pub(crate) fn age(&self) -> String {
        self.age.map_or_else(|| "-".into(), age)
    }
}

/// `None`: an older daemon does not report it.
fn admin_state(backend: &v1::BackendStatus) -> Option<AdminState> {
    match backend.admin_state() {
        v1::AdminState::Unspecified => None,
        v1::AdminState::Active => Some(AdminState::Active),
        v1::AdminState::Disabled => Some(AdminState::Disabled),
        v1::AdminState::Drain => Some(AdminState::Drain),
    }
}

/// Why a backend is in its state, and what else limits it. A missing next hop comes before the health checks'
/// reason, unless the state already keeps all packets away.
pub(crate) fn explain_state(backend: &v1::BackendStatus) -> String {
    let accepts = MemberState::from_api(backend.state).ok().flatten().map(MemberState::accepts);
    let takes_packets = accepts.is_some_and(|accepts| accepts != Accepts::Nothing);
    let why = if backend.next_hop_resolved || !takes_packets {
        backend.reason.as_ref().map(|reason| reason.text.clone()).unwrap_or_default()
    } else {
        format!("no next hop: {}", backend.next_hop)
    };
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    let utilised = backend.utilisation.map(|part| format!("{} utilised", percent(part)));
    let share = backend.share.filter(|share| *share < 1.0);
    let share = share.map(|share| format!("takes {} of its share", percent(share)));
    let report_error = Some(backend.report_error.clone()).filter(|why| !why.is_empty());
    let home = backend.marked_out.then(|| "marked out".to_owned());
    let more = [utilised, share, report_error, home].into_iter().flatten();
    std::iter::once(why).chain(more).collect::<Vec<_>>().join("; ")
}

/// Values of messages for tests.
#[cfg(test)]
pub(crate) mod messages {
    use lb_model::NamedValue as _;

    use super::*;

    pub(crate) fn state(word: &str) -> i32 {
        MemberState::ALL.iter().find(|it| it.name() == word).unwrap().to_api().into()
    }

    #[allow(clippy::unnecessary_wraps, reason = "the field is optional")]
    pub(crate) fn reason(text: &str) -> Option<v1::StateReason> {
        let cause = match text {
            "not checked yet" => v1::state_reason::Cause::NotChecked,
            _ => v1::state_reason::Cause::CheckFails,
        };
        Some(v1::StateReason {
            cause: cause.into(),
            health_check: String::new(),
            text: text.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_next_hop_comes_before_a_reason_unless_no_packet_would_go_there() {
        let why = |state: &str, reason: &str, next_hop_resolved| {
            explain_state(&v1::BackendStatus {
                state: messages::state(state),
                reason: messages::reason(reason),
                next_hop_resolved,
                next_hop: "10.0.0.1 does not answer".into(),
                ..Default::default()
            })
        };
        assert_eq!(why("up", "all checks pass", true), "all checks pass");
        for state in ["up", "unhealthy", "held_down", "draining"] {
            assert_eq!(why(state, "x", false), "no next hop: 10.0.0.1 does not answer", "{state}");
        }
        for state in ["pending", "unreachable", "disabled"] {
            assert_eq!(why(state, "x", false), "x", "{state}");
        }
    }

    #[test]
    fn json_has_state_and_admin_state() {
        for (admin_state, name) in [
            (v1::AdminState::Unspecified, None),
            (v1::AdminState::Active, Some("active")),
            (v1::AdminState::Disabled, Some("disabled")),
            (v1::AdminState::Drain, Some("drain")),
        ] {
            let message = v1::BackendStatus {
                state: messages::state("unreachable"),
                admin_state: admin_state.into(),
                ..Default::default()
            };
            let json =
                serde_json::to_value(BackendRow::new(message, SystemTime::UNIX_EPOCH)).unwrap();
            assert_eq!(
                (&json["state"], &json["admin_state"]),
                (&"unreachable".into(), &name.into())
            );
        }
    }
}
