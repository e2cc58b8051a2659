use std::{net::IpAddr, time::SystemTime};

use lb_model::{MemberState, Name};

/// What has become of a backend in its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHistory {
    /// The pool.
    pub pool: Name,
    /// The backend.
    pub address: IpAddr,
    /// Its last changes, the newest first.
    pub changes: Vec<StateChange>,
}

/// A state from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// When it came.
    pub at: SystemTime,
    /// The state.
    pub state: MemberState,
    /// Why it came.
    pub reason: Box<str>,
}
