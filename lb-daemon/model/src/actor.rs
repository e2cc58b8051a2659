use std::{fmt, path::PathBuf};

/// Who requests a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Actor {
    #[default]
    Unknown,
    /// A configuration file that the daemon reads.
    File(PathBuf),
    /// A process of this host, by its uid, with the name that `/etc/passwd` gave it when it asked.
    User { uid: u32, name: Option<String> },
    /// A TLS client, by a name of its certificate.
    Certificate(String),
    /// A fleet, in the name of whoever made the change there; empty: unknown.
    Fleet { author: String },
}

impl Actor {
    /// A user whose name is not known.
    #[must_use]
    pub fn user(uid: u32) -> Self {
        Self::User { uid, name: None }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::User { uid, name: None } => write!(f, "uid {uid}"),
            Self::User { uid, name: Some(name) } => write!(f, "uid {uid} ({name})"),
            Self::Certificate(name) => write!(f, "certificate {name}"),
            Self::Fleet { author } => f.write_str(author),
        }
    }
}
