//! The unix socket: our own, or one of the service manager, and its connections.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown},
        net::{UnixListener as Listener, UnixStream},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{Stream, stream};
use listenfd::ListenFd;
use tokio::{
    net::{UnixListener, UnixSocket},
    time::sleep,
};

use super::limits::Limits;
use lb_base::{error_chain, lock_owner, rate_limited_log::RateLimit, write_hint};
use lb_secure::{access::Role, tls::Connection};

pub const DEFAULT_SOCKET: &str = "/run/spillway/spillwayd.sock";

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Owner and mode of the socket: whoever may use it may change everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// `None`: the daemon's user.
    pub owner: Option<u32>,
    /// `None`: the daemon's group.
    pub group: Option<u32>,
    /// Permission bits.
    pub mode: u32,
}

impl Default for Rights {
    fn default() -> Self {
        Self { owner: None, group: None, mode: 0o660 }
    }
}

/// A listening socket; its file is removed on drop.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    inode: u64,
}

/// Why listening on a socket fails.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon answers there.
    #[error("{}: another spillwayd listens there", .path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
        /// Id of the process that listens; 1: the service manager, for a daemon of its own.
        process: Option<u32>,
    },
    /// The path is not a socket.
    #[error("{}: exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The file system refuses.
    #[error("{}: cannot listen", .path.display())]
    File {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl SocketError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::InUse { process: Some(1), .. } => {
                "the service manager listens there for its unit: start the unit (`systemctl start \
                 spillway-balancer`), or stop it, or give this daemon another --socket"
                    .into()
            }
            Self::InUse { process, .. } => {
                let other = process.map(lock_owner::process).unwrap_or_default();
                format!("stop the other daemon{other}, or give each its own --socket")
            }
            Self::NotASocket(_) => "move it away, or give another --socket".into(),
            Self::File { path, source } => {
                write_hint(source, path.parent().unwrap_or(path), "--socket")
            }
        }
    }
}

impl Socket {
    /// Listens at a path. Creates the directory, and replaces a stale socket.
    ///
    /// # Errors
    /// [`SocketError`]; the file stays as it is.
    pub fn bind(path: &Path, rights: Rights) -> Result<(Self, UnixListener), SocketError> {
        let file = |source| SocketError::File { path: path.into(), source };
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(file)?;
        }
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(SocketError::NotASocket(path.into()));
            }
            Ok(_) => {
                if let Ok(other) = UnixStream::connect(path) {
                    let process = listener_of(other);
                    return Err(SocketError::InUse { path: path.into(), process });
                }
            }
            Err(_) => {}
        }
        let (inode, listener) = listen(path, rights).map_err(file)?;
        Ok((Self { path: path.into(), inode }, listener))
    }
}

/// Id of the process that listens at the other end; `None`: it is in another PID namespace.
fn listener_of(stream: UnixStream) -> Option<u32> {
    stream.set_nonblocking(true).ok()?;
    let peer = tokio::net::UnixStream::from_std(stream).ok()?.peer_cred().ok()?;
    u32::try_from(peer.pid()?).ok().filter(|pid| *pid != 0)
}

/// Binds beside the path and renames, so that the path always has a socket with the right owner and mode.
fn listen(path: &Path, rights: Rights) -> io::Result<(u64, UnixListener)> {
    let mut next = path.as_os_str().to_owned();
    next.push(".next");
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixSocket::new_stream()?;
    socket.bind(&next)?;
    // Before listen, so that no client can connect with other rights.
    if rights.owner.is_some() || rights.group.is_some() {
        lchown(&next, rights.owner, rights.group)?;
    }
    fs::set_permissions(&next, fs::Permissions::from_mode(rights.mode))?;
    let inode = fs::symlink_metadata(&next)?.ino();
    let listener = socket.listen(BACKLOG)?;
    fs::rename(&next, path)?;
    Ok((inode, listener))
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another daemon may have replaced the socket.
        if fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode) {
            let _already_gone = fs::remove_file(&self.path);
        }
    }
}

/// Why socket activation fails.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// The API uses one socket.
    #[error("socket activation: got {0} sockets instead of one")]
    Number(usize),
    /// The API uses a unix socket.
    #[error("socket activation: got something else than a listening unix socket")]
    Kind(#[source] io::Error),
}

impl ActivationError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "the socket unit needs a single ListenStream= with the path of a unix socket"
    }
}

/// The socket that the service manager hands over by `LISTEN_FDS` and `LISTEN_PID` (sd_listen_fds(3)), if any.
pub fn activated() -> Result<Option<UnixListener>, ActivationError> {
    let mut passed = ListenFd::from_env();
    match passed.len() {
        0 => return Ok(None),
        1 => {}
        more => return Err(ActivationError::Number(more)),
    }
    let listener: Option<Listener> = passed.take_unix_listener(0).map_err(ActivationError::Kind)?;
    let usable = |listener: Listener| {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    };
    listener.map(usable).transpose().map_err(ActivationError::Kind)
}

/// Pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections of users with a role; those beyond the limits are closed at once.
pub(super) fn connections(
    listener: UnixListener,
    role: Role,
    limits: Limits,
) -> impl Stream<Item = Result<Connection, std::convert::Infallible>> + Send {
    stream::unfold(
        (listener, limits, RateLimit::default()),
        move |(listener, limits, lines)| async move {
            loop {
                let accepted = listener.accept().await;
                let taken = accepted.and_then(|(stream, _)| {
                    let uid = stream.peer_cred()?.uid();
                    Ok(limits
                        .connection(uid)
                        .map(|lease| Connection::local(stream, uid, role, lease)))
                });
                match taken {
                    Ok(Some(connection)) => {
                        return Some((Ok(connection), (listener, limits, lines)));
                    }
                    Ok(None) => {}
                    Err(error) => {
                        if let Some(left_out) = lines.now(1) {
                            tracing::warn!(
                                left_out,
                                "socket: cannot accept a connection: {}",
                                error_chain::message(&error)
                            );
                        }
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        },
    )
}
