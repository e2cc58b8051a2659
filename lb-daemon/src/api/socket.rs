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
    #[error("{}: another spillwayd listens there", .0.display())]
    InUse(PathBuf),
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
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InUse(_) => "stop the other one, or give each its own --socket",
            Self::NotASocket(_) => "move it away, or give another --socket",
            Self::File { .. } => "run as a user who may write there, or give another --socket",
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
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(SocketError::InUse(path.into()));
            }
            _ => {}
        }
        let (inode, listener) = listen(path, rights).map_err(file)?;
        Ok((Self { path: path.into(), inode }, listener))
    }
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
