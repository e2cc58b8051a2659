//! A backend's state, as `status` and `watch` print it.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use spillway_proto::v1;

use crate::output::age;

/// One backend of one pool.
#[derive(Serialize)]
pub(crate) struct Backend {
    pub(crate) pool: String,
    pub(crate) address: String,
    pub(crate) region: String,
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) next_hop_resolved: bool,
    pub(crate) next_hop: String,
    pub(crate) since: Option<String>,
    /// It was out of service for so long that no connection is at home there.
    pub(crate) out_of_home: bool,
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
            pool: backend.pool,
            address: backend.address,
            region: backend.region,
            state: backend.state,
            reason: backend.reason,
            next_hop_resolved: backend.next_hop_resolved,
            next_hop: backend.next_hop,
            since: backend.since.map(|since| since.to_string()),
            out_of_home: backend.out_of_home,
            held,
        }
    }

    /// How long it has been in its state.
    pub(crate) fn age(&self) -> String {
        self.held.map_or_else(|| "-".into(), age)
    }

    /// What decides whether it has packets: a missing next hop before its health.
    pub(crate) fn why(&self) -> String {
        let why = if self.next_hop_resolved || self.state == "dead" {
            self.reason.clone()
        } else {
            format!("no next hop: {}", self.next_hop)
        };
        if self.out_of_home { why + "; out of home" } else { why }
    }
}
