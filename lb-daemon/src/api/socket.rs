//! The unix socket.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixSocket};

use lb_base::{lock_owner, write_hint};

/// Where the daemon listens, unless said otherwise.
pub const DEFAULT_SOCKET: &str = "/run/spillway/spillwayd.sock";

/// Connections that may wait to be accepted.
const WAITING: u32 = 1024;

/// Who may talk to the daemon, and so change everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Owner; `None`: the daemon's user.
    pub owner: Option<u32>,
    /// Group; `None`: the daemon's.
    pub group: Option<u32>,
    /// Permission bits.
    pub mode: u32,
}

impl Default for Rights {
    fn default() -> Self {
        Self { owner: None, group: None, mode: 0o660 }
    }
}

/// A socket that is listened on; its file goes when it is dropped.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    inode: u64,
}

/// Why a socket cannot be listened on.
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
    /// Something else has the name.
    #[error("{}: is there and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The file system says no.
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
                "the service manager listens there for its unit: start that instead (`systemctl \
                 start spillway-balancer`), or stop it, or give this one another --socket"
                    .into()
            }
            Self::InUse { process, .. } => {
                let other = process.map(lock_owner::process).unwrap_or_default();
                format!("stop the other one{other}, or give each its own --socket")
            }
            Self::NotASocket(_) => "move it away, or give another --socket".into(),
            Self::File { path, source } => {
                write_hint(source, path.parent().unwrap_or(path), "--socket")
            }
        }
    }
}

impl Socket {
    /// Listens at a path; makes its directory, and takes the place of a socket nobody listens on.
    ///
    /// # Errors
    /// [`SocketError`]; what is there stays.
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

/// Id of the process that listens at the other end; `None`: it is of another namespace.
fn listener_of(stream: UnixStream) -> Option<u32> {
    stream.set_nonblocking(true).ok()?;
    let peer = tokio::net::UnixStream::from_std(stream).ok()?.peer_cred().ok()?;
    u32::try_from(peer.pid()?).ok().filter(|pid| *pid != 0)
}

/// Binds beside the path and moves the socket there, so that it never has other rights and never is
/// missing.
fn listen(path: &Path, rights: Rights) -> io::Result<(u64, UnixListener)> {
    let mut next = path.as_os_str().to_owned();
    next.push(".next");
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixSocket::new_stream()?;
    socket.bind(&next)?;
    // Nobody can connect until it listens, and then owner and mode are as they should be.
    if rights.owner.is_some() || rights.group.is_some() {
        lchown(&next, rights.owner, rights.group)?;
    }
    fs::set_permissions(&next, fs::Permissions::from_mode(rights.mode))?;
    let inode = fs::symlink_metadata(&next)?.ino();
    let listener = socket.listen(WAITING)?;
    fs::rename(&next, path)?;
    Ok((inode, listener))
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another daemon may have taken the place.
        if fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode) {
            let _already_gone = fs::remove_file(&self.path);
        }
    }
}
