//! Contexts: daemons by names that the user gave them, in a file of the user.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    arguments::Options,
    failure::{Exit, Failure, describe},
};

/// The file, in the user's configuration directory.
const FILE: &str = "spillway/contexts.toml";

/// A daemon, and how to reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls_ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls_cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls_key: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<PathBuf>,
}

/// The contexts of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The one that commands use unless they are told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default, rename = "context", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) by_name: BTreeMap<String, Context>,
}

impl Contexts {
    /// Reads the user's file; no file is one without contexts.
    ///
    /// # Errors
    /// The file cannot be read, or is not one of contexts.
    pub(crate) fn read() -> Result<Self, Failure> {
        match file() {
            Some(file) => Self::read_file(&file),
            None => Ok(Self::default()),
        }
    }

    fn read_file(file: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(Failure::path(file, &error)
                    .hint("make it readable, or set XDG_CONFIG_HOME to another directory"));
            }
        };
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let message = format!("{}: {}", file.display(), error.message());
            Failure::new(Exit::Failure, message).hint("correct or remove the file")
        })
    }

    /// Replaces the user's file, at once: a reader sees the one before or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let file = file().ok_or_else(|| {
            Failure::new(Exit::Failure, "contexts: neither XDG_CONFIG_HOME nor HOME is set")
                .hint("set one of them to an absolute path")
        })?;
        self.write_file(&file)
    }

    fn write_file(&self, file: &Path) -> Result<(), Failure> {
        let failed = |error: &io::Error| {
            Failure::new(Exit::Failure, format!("{}: {}", file.display(), describe(error)))
                .hint("make its directory writable, or set XDG_CONFIG_HOME to another one")
        };
        let text = toml::to_string(self)
            .map_err(|error| Failure::new(Exit::Failure, format!("contexts: {error}")))?;
        let write = || -> io::Result<()> {
            let directory = file.parent().unwrap_or(Path::new("/"));
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            let mut new = tempfile::NamedTempFile::new_in(directory)?;
            new.write_all(text.as_bytes())?;
            new.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
            new.as_file().sync_all()?;
            new.persist(file).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| failed(&error))
    }

    /// # Errors
    /// There is no such context.
    pub(crate) fn require(&self, name: &str) -> Result<&Context, Failure> {
        self.by_name.get(name).ok_or_else(|| {
            let names: Vec<_> = self.by_name.keys().map(String::as_str).collect();
            let hint = match names.is_empty() {
                true => format!("`spillway context set {name} --server URL …` creates it"),
                false => format!("the contexts are: {}", names.join(", ")),
            };
            Failure::new(Exit::NotFound, format!("context \"{name}\" does not exist")).hint(hint)
        })
    }
}

/// The file of contexts of this user (XDG Base Directory Specification); `None` without a home.
fn file() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(directory.join(FILE))
}

impl Options {
    /// Takes from a context what the command line leaves open: from the one that it names, or else from the one in use. A
    /// command line with a server or a socket has said all.
    ///
    /// # Errors
    /// There is no such context, or the file of contexts cannot be read.
    pub(crate) fn with_context(self) -> Result<Self, Failure> {
        if self.server.is_some() || self.socket.is_some() {
            return Ok(self);
        }
        self.with_context_of(&Contexts::read()?)
    }

    fn with_context_of(mut self, contexts: &Contexts) -> Result<Self, Failure> {
        let named = self.context.as_ref().filter(|name| !name.is_empty());
        let Some(name) = named.or(contexts.current.as_ref()) else { return Ok(self) };
        let Context { server, tls_ca, tls_cert, tls_key, socket } = contexts.require(name)?.clone();
        (self.server, self.socket) = (server, socket);
        self.tls_ca = self.tls_ca.or(tls_ca);
        self.tls_cert = self.tls_cert.or(tls_cert);
        self.tls_key = self.tls_key.or(tls_key);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(words: &[&str]) -> Options {
        Line::parse_from([&["spillway"], words].concat()).options
    }

    fn contexts() -> Contexts {
        let paris = Context {
            server: Some("https://paris.example:7443".into()),
            tls_ca: Some("/etc/ca.pem".into()),
            tls_cert: Some("/etc/me.pem".into()),
            ..Context::default()
        };
        let test = Context { socket: Some("/run/test.sock".into()), ..Context::default() };
        let by_name = [("paris".into(), paris), ("test".into(), test)].into();
        Contexts { current: Some("paris".into()), by_name }
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_is_the_users_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/contexts.toml");
        assert_eq!(Contexts::read_file(&file), Ok(Contexts::default()));
        for contexts in [contexts(), Contexts::default(), contexts()] {
            contexts.write_file(&file).unwrap();
            assert_eq!(Contexts::read_file(&file), Ok(contexts));
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left");
        fs::write(&file, "current = 3").unwrap();
        let failure = Contexts::read_file(&file).unwrap_err();
        assert!(failure.message.contains("contexts.toml: invalid type"), "{failure}");
        let failure = contexts().write_file(&file.join("under-a-file")).unwrap_err();
        assert!(failure.message.contains("under-a-file: "), "{failure}");
    }

    #[test]
    fn the_command_line_wins_over_a_named_context_and_that_over_the_current_one() {
        let with = |words: &[&str]| options(words).with_context_of(&contexts());
        let current = with(&[]).unwrap();
        assert_eq!(current.server.as_deref(), Some("https://paris.example:7443"));
        assert_eq!(current.tls_cert, Some("/etc/me.pem".into()));
        let named = with(&["--context", "test"]).unwrap();
        assert_eq!((named.server, named.socket), (None, Some("/run/test.sock".into())));
        let other = with(&["--tls-cert", "/tmp/other.pem"]).unwrap();
        assert_eq!(other.tls_cert, Some("/tmp/other.pem".into()));
        assert_eq!(other.tls_ca, Some("/etc/ca.pem".into()));
        // Certificates of one server are not shown to another.
        let server = options(&["--server", "https://b:1"]).with_context().unwrap();
        assert_eq!((server.tls_cert, server.tls_ca), (None, None));
        let failure = with(&["--context", "rome"]).unwrap_err();
        assert_eq!(
            (failure.exit, failure.hint.unwrap()),
            (Exit::NotFound, "the contexts are: paris, test".into())
        );
        assert_eq!(options(&[]).with_context_of(&Contexts::default()).unwrap().server, None);
    }
}
