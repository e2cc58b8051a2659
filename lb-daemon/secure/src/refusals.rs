//! What the API refuses because of a limit.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Refusals of the API because of a limit; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ApiRefusals(Arc<[[AtomicU64; ApiLimit::ALL.len()]; ApiListener::ALL.len()]>);

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

impl ApiRefusals {
    /// Counts a refusal because of a limit.
    pub fn count(&self, listener: ApiListener, limit: ApiLimit) {
        self.refusals(listener, limit).fetch_add(1, Ordering::Relaxed);
    }

    /// Refusals because of a limit.
    pub fn get(&self, listener: ApiListener, limit: ApiLimit) -> u64 {
        self.refusals(listener, limit).load(Ordering::Relaxed)
    }

    fn refusals(&self, listener: ApiListener, limit: ApiLimit) -> &AtomicU64 {
        &self.0[listener as usize][limit as usize]
    }
}
