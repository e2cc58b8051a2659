//! A backend's state as `status` and `watch` print it, and its reason, which `top` prints too.

use std::time::{Duration, SystemTime};

use lb_model::WantedState;
use serde::Serialize;
use spillway_proto::v1;

use crate::output::age;

/// The daemon's reason for a backend whose first check has not ended.
pub(crate) const NOT_CHECKED: &str = "not checked yet";

/// A backend of a pool.
#[derive(Serialize)]
pub(crate) struct BackendRow {
    pub(crate) pool: String,
    pub(crate) address: String,
    pub(crate) region: String,
    pub(crate) state: String,
    /// `active`, `drain` or `disabled`; `null`: an older daemon does not report it.
    pub(crate) wanted: Option<&'static str>,
    pub(crate) reason: String,
    pub(crate) next_hop_resolved: bool,
    pub(crate) next_hop: String,
    /// Largest outer packet to it, bytes; `null`: it has no next hop.
    pub(crate) mtu: Option<u32>,
    pub(crate) since: Option<String>,
    /// Whether it is marked out: out of service for so long that no connection is at home there.
    pub(crate) marked_out: bool,
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
    /// The state as shown: what the operator wants comes before the health.
    #[serde(skip)]
    pub(crate) shown: String,
    /// The reason as shown.
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
            why: shown_reason(&backend),
            shown: shown_state(&backend).into(),
            wanted: wanted(&backend).map(WantedState::name),
            pool: backend.pool,
            address: backend.address,
            region: backend.region,
            state: backend.state,
            reason: backend.reason,
            next_hop_resolved: backend.next_hop_resolved,
            next_hop: backend.next_hop,
            mtu: Some(backend.mtu).filter(|mtu| *mtu != 0),
            since: backend.since.map(|since| since.to_string()),
            marked_out: backend.marked_out,
            share: backend.share,
            utilisation: backend.utilisation,
            weight_percent: backend.weight_percent,
            drain: Some(backend.drain).filter(|why| !why.is_empty()),
            report_error: Some(backend.report_error).filter(|why| !why.is_empty()),
            age,
        }
    }

    /// How long it has been in this state.
    pub(crate) fn age(&self) -> String {
        self.age.map_or_else(|| "-".into(), age)
    }
}

/// `None`: an older daemon does not report it.
fn wanted(backend: &v1::BackendStatus) -> Option<WantedState> {
    match backend.wanted() {
        v1::WantedState::Unspecified => None,
        v1::WantedState::Active => Some(WantedState::Active),
        v1::WantedState::Disabled => Some(WantedState::Disabled),
        v1::WantedState::Drain => Some(WantedState::Drain),
    }
}

/// The state of a backend as shown: `up`, `unfit`, `dead`, `draining` or `disabled`.
pub(crate) fn shown_state(backend: &v1::BackendStatus) -> &str {
    wanted(backend).unwrap_or_default().shown(&backend.state)
}

/// The reason of a backend's state as shown: a missing next hop comes before the health.
pub(crate) fn shown_reason(backend: &v1::BackendStatus) -> String {
    let is_dead = backend.state == "dead";
    let why = if is_dead && shown_state(backend) == "draining" {
        // The shown state hides that it is dead.
        format!("dead: {}", backend.reason)
    } else if backend.next_hop_resolved || is_dead {
        backend.reason.clone()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_wants_is_shown_before_the_health() {
        let backend = |wanted: v1::WantedState, state: &str, reason: &str| {
            let message = v1::BackendStatus {
                state: state.into(),
                reason: reason.into(),
                next_hop_resolved: true,
                wanted: wanted.into(),
                ..Default::default()
            };
            BackendRow::new(message, SystemTime::UNIX_EPOCH)
        };
        use v1::WantedState::{Active, Disabled, Drain, Unspecified};
        for (wanted, state, reason, shown, why, word) in [
            (Unspecified, "up", "all checks pass", "up", "all checks pass", None),
            (Active, "unfit", "check tcp: refused", "unfit", "check tcp: refused", Some("active")),
            (Disabled, "dead", "disabled", "disabled", "disabled", Some("disabled")),
            (Drain, "unfit", "drained", "draining", "drained", Some("drain")),
            (
                Drain,
                "dead",
                "check tcp: timed out",
                "draining",
                "dead: check tcp: timed out",
                Some("drain"),
            ),
        ] {
            let backend = backend(wanted, state, reason);
            assert_eq!((&*backend.shown, &*backend.why), (shown, why));
            let json = serde_json::to_value(&backend).unwrap();
            assert_eq!((&json["state"], &json["wanted"]), (&state.into(), &word.into()));
        }
    }
}
