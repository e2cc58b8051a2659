//! A socket that the service manager opened and hands over, sd_listen_fds(3).

use std::{io, os::unix::net::UnixListener as Listener};

use listenfd::ListenFd;
use tokio::net::UnixListener;

/// Why a socket that was handed over cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// There is one socket to answer on.
    #[error("socket activation: {0} sockets were handed over, and one is wanted")]
    Number(usize),
    /// It is not what we answer on.
    #[error("socket activation: what was handed over is no listening unix socket")]
    Kind(#[source] io::Error),
}

impl ActivationError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "give the socket unit a single ListenStream=, the path of a unix socket"
    }
}

/// The socket that `LISTEN_FDS` and `LISTEN_PID` hand over; `None`: they hand over nothing to us.
///
/// # Errors
/// [`ActivationError`].
pub fn activated() -> Result<Option<UnixListener>, ActivationError> {
    let mut handed = ListenFd::from_env();
    match handed.len() {
        0 => return Ok(None),
        1 => {}
        more => return Err(ActivationError::Number(more)),
    }
    let listener: Option<Listener> = handed.take_unix_listener(0).map_err(ActivationError::Kind)?;
    let usable = |listener: Listener| {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    };
    listener.map(usable).transpose().map_err(ActivationError::Kind)
}
