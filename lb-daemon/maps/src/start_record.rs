//! How the daemon of a component was started, kept with its pins, so that one that was killed can be started again in
//! the same way. A BPF file system holds pins and symbolic links, so it is the target of a symbolic link.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use lb_base::shell_word;
use serde::{Deserialize, Serialize};

use super::Pins;

/// The working directory and the command line of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    /// What its relative paths are relative to.
    pub directory: PathBuf,
    /// The program's full path first.
    pub command: Vec<String>,
}

impl StartRecord {
    /// Of this process with its command line.
    ///
    /// # Errors
    /// The kernel does not tell the working directory or the program, or a word is not Unicode.
    pub fn of_this_process(line: &[OsString]) -> io::Result<Self> {
        let program = env::current_exe()?.into_os_string();
        let words = std::iter::once(&program).chain(line.iter().skip(1));
        let command = words.map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>();
        let command = command.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Self { directory: env::current_dir()?, command })
    }

    /// Takes the place of the record of the component's last daemon.
    ///
    /// # Errors
    /// The file system takes no link, or none of this length (4095 bytes).
    pub fn write(&self, pins: &Pins) -> io::Result<()> {
        let at = path(pins.root());
        match fs::remove_file(&at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(serde_json::to_string(self)?, at),
        }
    }

    /// The command for a shell, in the directory of that start.
    pub fn shell(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| shell_word(word)).collect();
        self.in_directory(&words.join(" "))
    }

    /// A command for a shell, in the directory of that start.
    pub fn in_directory(&self, command: &str) -> String {
        match self.directory.as_os_str() == "/" {
            true => command.to_owned(),
            false => format!("cd {} && {command}", shell_word(&self.directory.to_string_lossy())),
        }
    }

    /// The settings file that it names with `--config`.
    pub fn settings_file(&self) -> Option<PathBuf> {
        let mut words = self.command.iter();
        let file = words.find_map(|word| match word.strip_prefix("--config") {
            Some("") => Some(None),
            Some(rest) => rest.strip_prefix('=').map(Some),
            None => None,
        })?;
        let file = file.or_else(|| words.next().map(String::as_str))?;
        Some(self.directory.join(file))
    }

    /// That of the component's last daemon; `None`: there is none that can be read.
    pub fn read(pins: &Pins) -> Option<Self> {
        serde_json::from_str(fs::read_link(path(pins.root())).ok()?.to_str()?).ok()
    }
}

fn path(root: &Path) -> PathBuf {
    root.join("started-by")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Component;

    #[test]
    fn the_command_and_the_settings_file_are_of_the_directory_of_the_start() {
        let record = |directory: &str, line: &str| StartRecord {
            directory: directory.into(),
            command: line.split(' ').map(str::to_owned).collect(),
        };
        let started = record("/a b", "/d balancer --config x.toml");
        assert_eq!(started.shell(), "cd '/a b' && /d balancer --config x.toml");
        assert_eq!(started.settings_file(), Some("/a b/x.toml".into()));
        let started = record("/", "/d balancer --config=/x.toml --region eu");
        assert_eq!(started.shell(), "/d balancer --config=/x.toml --region eu");
        assert_eq!(started.settings_file(), Some("/x.toml".into()));
        assert_eq!(record("/", "/d balancer --config-x y").settings_file(), None);
    }

    #[test]
    fn the_last_start_is_read_back() {
        let bpffs = tempfile::tempdir().unwrap();
        let pins = Pins::new(bpffs.path(), Component::Balancer);
        fs::create_dir_all(pins.root()).unwrap();
        assert_eq!(StartRecord::read(&pins), None);
        let line = ["spillwayd", "balancer", "--config", "a \"b\"\n.toml"].map(OsString::from);
        for words in [&line[..2], &line[..]] {
            let record = StartRecord::of_this_process(words).unwrap();
            assert!(record.command[0].starts_with('/'), "{record:?}");
            let given: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
            assert_eq!(record.command[1..], given[1..]);
            record.write(&pins).unwrap();
            assert_eq!(StartRecord::read(&pins), Some(record));
        }
        let long = StartRecord { directory: "/".into(), command: vec!["x".repeat(5000)] };
        assert!(long.write(&pins).is_err());
        assert_eq!(StartRecord::read(&pins), None, "not that of another start");
    }
}
