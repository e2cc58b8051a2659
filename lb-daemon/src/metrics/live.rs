use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use super::Counter;
use crate::tls::CertificateExpiry;
use lb_control::{HealthCounters, PublishCounters, StoreCounters, loops::AllLoopCounters};

/// Counters of this process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Writes to the packet path.
    pub publish: PublishCounters,
    /// Health in the packet path.
    pub health: HealthCounters,
    /// Writes of the store.
    pub store: StoreCounters,
    /// The loops and their queues.
    pub loops: AllLoopCounters,
    /// Health checks.
    pub checks: lb_health::Counters,
    /// Certificates of the API and of the HTTP listener.
    pub certificates: CertificateExpiry,
    /// Requests over HTTP without a valid token.
    pub http_refused: Counter,
    /// Entries of the log that were dropped.
    pub log_dropped: Counter,
    api_refused: Arc<[[AtomicU64; ApiLimit::ALL.len()]; ApiListener::ALL.len()]>,
}

/// The listeners of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiListener {
    /// The unix socket.
    Socket,
    /// TCP with TLS.
    Tls,
}

/// A limit of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiLimit {
    /// Connections.
    Connections,
    /// Calls under way, streams included.
    Calls,
    /// Watches.
    Watches,
}

impl ApiListener {
    pub const ALL: [Self; 2] = [Self::Socket, Self::Tls];

    pub fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Tls => "tls",
        }
    }
}

impl ApiLimit {
    pub const ALL: [Self; 3] = [Self::Connections, Self::Calls, Self::Watches];

    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Calls => "calls",
            Self::Watches => "watches",
        }
    }
}

impl Live {
    /// Counts a refusal because of a limit.
    pub fn api_refused(&self, listener: ApiListener, limit: ApiLimit) {
        self.refusals(listener, limit).fetch_add(1, Ordering::Relaxed);
    }

    /// Refusals because of a limit.
    pub fn api_refusals(&self, listener: ApiListener, limit: ApiLimit) -> u64 {
        self.refusals(listener, limit).load(Ordering::Relaxed)
    }

    fn refusals(&self, listener: ApiListener, limit: ApiLimit) -> &AtomicU64 {
        &self.api_refused[listener as usize][limit as usize]
    }
}

/// Seconds since the Unix epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
