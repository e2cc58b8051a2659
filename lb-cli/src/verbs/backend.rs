//! A backend's state, as `status` and `watch` print it, and why it is so, as `top` does too.

use std::time::{Duration, SystemTime};

use lb_daemon::model::WantedState;
use serde::Serialize;
use spillway_proto::v1;

use crate::output::age;

/// What the daemon gives as the reason of a backend whose first check has not ended.
pub(crate) const UNCHECKED: &str = "not checked yet";

/// One backend of one pool.
#[derive(Serialize)]
pub(crate) struct Backend {
    pub(crate) pool: String,
    pub(crate) address: String,
    pub(crate) region: String,
    pub(crate) state: String,
    /// What the operator wants: `active`, `drain` or `disabled`; none: an older daemon does not say.
    pub(crate) wanted: Option<&'static str>,
    pub(crate) reason: String,
    pub(crate) next_hop_resolved: bool,
    pub(crate) next_hop: String,
    /// Largest outer packet towards it, bytes; none: it has no next hop.
    pub(crate) mtu: Option<u32>,
    /// What of that ICMP errors taught.
    pub(crate) path_mtu: Option<u32>,
    pub(crate) since: Option<String>,
    /// It was out of service for so long that no connection is at home there.
    pub(crate) out_of_home: bool,
    /// Share that it takes of its own new connections; none: it takes none.
    pub(crate) share: Option<f64>,
    /// What it says it is utilised.
    pub(crate) utilisation: Option<f64>,
    /// Share of its weight that it asks for.
    pub(crate) wanted_percent: Option<u32>,
    /// Why it wants no new connections of itself.
    pub(crate) drain: Option<String>,
    /// Why what it says of itself cannot be had.
    pub(crate) unheard: Option<String>,
    /// The state as people are shown it: what the operator wants comes before what the packet path has.
    #[serde(skip)]
    pub(crate) shown: String,
    /// What decides whether it has packets.
    #[serde(skip)]
    pub(crate) why: String,
    #[serde(skip)]
    held: Option<Duration>,
}

impl Backend {
    /// A backend as of `now`.
    pub(crate) fn new(backend: v1::BackendStatus, now: SystemTime) -> Self {
        let held = backend
            .since
            .and_then(|since| SystemTime::try_from(since).ok())
            .map(|since| now.duration_since(since).unwrap_or_default());
        Self {
            why: why(&backend),
            shown: shown(&backend).into(),
            wanted: wanted(&backend).map(WantedState::name),
            pool: backend.pool,
            address: backend.address,
            region: backend.region,
            state: backend.state,
            reason: backend.reason,
            next_hop_resolved: backend.next_hop_resolved,
            next_hop: backend.next_hop,
            mtu: Some(backend.mtu).filter(|mtu| *mtu != 0),
            path_mtu: Some(backend.path_mtu).filter(|mtu| *mtu != 0),
            since: backend.since.map(|since| since.to_string()),
            out_of_home: backend.out_of_home,
            share: backend.share,
            utilisation: backend.utilisation,
            wanted_percent: backend.wanted_percent,
            drain: Some(backend.drain).filter(|why| !why.is_empty()),
            unheard: Some(backend.unheard).filter(|why| !why.is_empty()),
            held,
        }
    }

    /// How long it has been in its state.
    pub(crate) fn age(&self) -> String {
        self.held.map_or_else(|| "-".into(), age)
    }
}

/// What the operator wants of a backend; `None`: an older daemon does not say.
fn wanted(backend: &v1::BackendStatus) -> Option<WantedState> {
    match backend.wanted() {
        v1::WantedState::Unspecified => None,
        v1::WantedState::Active => Some(WantedState::Active),
        v1::WantedState::Disabled => Some(WantedState::Disabled),
        v1::WantedState::Drain => Some(WantedState::Drain),
    }
}

/// The state of a backend as people are shown it: `up`, `unfit`, `dead`, `draining` or `disabled`.
pub(crate) fn shown(backend: &v1::BackendStatus) -> &str {
    wanted(backend).unwrap_or_default().shown(&backend.state)
}

/// What decides whether a backend has packets: a missing next hop before its health.
pub(crate) fn why(backend: &v1::BackendStatus) -> String {
    let is_dead = backend.state == "dead";
    let why = if is_dead && shown(backend) == "draining" {
        // The state that is shown does not say it.
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
    let unheard = Some(backend.unheard.clone()).filter(|why| !why.is_empty());
    let home = backend.out_of_home.then(|| "out of home".to_owned());
    let narrow =
        (backend.path_mtu != 0).then(|| format!("the way carries {} bytes", backend.path_mtu));
    let more = [utilised, share, unheard, home, narrow].into_iter().flatten();
    std::iter::once(why).chain(more).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_wants_is_shown_before_the_state() {
        let backend = |wanted: v1::WantedState, state: &str, reason: &str| {
            let message = v1::BackendStatus {
                state: state.into(),
                reason: reason.into(),
                next_hop_resolved: true,
                wanted: wanted.into(),
                ..Default::default()
            };
            Backend::new(message, SystemTime::UNIX_EPOCH)
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
