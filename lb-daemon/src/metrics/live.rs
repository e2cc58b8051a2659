use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use lb_control::PublishCounters;

/// What the daemon itself counts while it lives; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Publishing to the packet path.
    pub publish: PublishCounters,
    /// Health checks.
    pub checks: lb_health::Counters,
    api_refused: Arc<[[AtomicU64; ApiLimit::ALL.len()]; Door::ALL.len()]>,
}

/// Where clients of the API come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
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

impl Door {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Socket, Self::Tls];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Tls => "tls",
        }
    }
}

impl ApiLimit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Connections, Self::Calls, Self::Watches];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Calls => "calls",
            Self::Watches => "watches",
        }
    }
}

impl Live {
    /// The API refused something because of a limit.
    pub fn api_refused(&self, door: Door, limit: ApiLimit) {
        self.refusals(door, limit).fetch_add(1, Ordering::Relaxed);
    }

    /// How often the API refused something because of a limit.
    pub fn api_refusals(&self, door: Door, limit: ApiLimit) -> u64 {
        self.refusals(door, limit).load(Ordering::Relaxed)
    }

    fn refusals(&self, door: Door, limit: ApiLimit) -> &AtomicU64 {
        &self.api_refused[door as usize][limit as usize]
    }
}

/// Seconds of the Unix epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
