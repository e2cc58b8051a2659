use std::{fmt, path::PathBuf};

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Nobody said.
    #[default]
    Unknown,
    /// A file that the daemon was told to apply.
    File(PathBuf),
    /// A process of this host, by the user it runs as.
    User(u32),
    /// A client over TLS, by a name of its certificate.
    Certificate(String),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("somebody unknown"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::User(uid) => write!(f, "uid {uid}"),
            Self::Certificate(name) => write!(f, "certificate {name}"),
        }
    }
}
