use std::{
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// Why the service manager could not be told.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// The name is neither a path nor an abstract name.
    #[error("notify socket {0:?}: must begin with '/' or '@'")]
    Name(String),
    /// No datagram socket, or the name is too long.
    #[error("notify socket")]
    Socket(#[source] io::Error),
    /// The datagram was not taken.
    #[error("notify socket: {state} not sent")]
    Send {
        /// What was to be told.
        state: String,
        /// Why it was not.
        source: io::Error,
    },
}

/// The service manager's datagram socket, sd_notify(3).
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    manager: SocketAddr,
}

impl Notifier {
    /// The socket that a value of `NOTIFY_SOCKET` names: a path, or `@` and an abstract name.
    ///
    /// # Errors
    /// [`NotifyError::Name`], or [`NotifyError::Socket`].
    pub fn new(name: &OsStr) -> Result<Self, NotifyError> {
        let manager = match name.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(name),
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => return Err(NotifyError::Name(name.to_string_lossy().into_owned())),
        };
        let open = || {
            let socket = UnixDatagram::unbound()?;
            // A service manager that does not read must not hold the daemon up.
            socket.set_nonblocking(true)?;
            Ok(Self { socket, manager: manager? })
        };
        open().map_err(NotifyError::Socket)
    }

    /// Sends `state`, for example `READY=1`.
    ///
    /// # Errors
    /// [`NotifyError::Send`].
    pub fn send(&self, state: &str) -> Result<(), NotifyError> {
        let failed = |source| NotifyError::Send { state: state.to_owned(), source };
        self.socket.send_to_addr(state.as_bytes(), &self.manager).map(drop).map_err(failed)
    }
}
