//! A receiver's control socket: which one is meant, and what it answers.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use lb_daemon::{
    causes,
    control::{self, Answer, Answered, ControlError, Question},
    dataplane::{Pins, Role},
    holder,
};

use crate::{arguments::Options, daemon::unreachable, exit::Exit, failure::Failure};

/// The receiver that the command line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receiver {
    /// Where it answers.
    socket: PathBuf,
    /// Its process, where it is known.
    process: Option<u32>,
}

impl Receiver {
    /// The receiver that has the pins, or whichever listens on the socket that is given.
    pub(crate) fn find(options: &Options) -> Self {
        if let Some(socket) = &options.socket {
            return Self { socket: socket.clone(), process: None };
        }
        let process = holder::holder(Pins::new(&options.bpffs, Role::Receiver).root());
        let line = process.and_then(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok());
        let line = String::from_utf8_lossy(&line.unwrap_or_default()).into_owned();
        let words: Vec<_> = line.split_terminator('\0').map(str::to_owned).collect();
        Self::of_process(process, &words)
    }

    /// A receiver that was started with a command line.
    pub(crate) fn of_process(process: Option<u32>, line: &[String]) -> Self {
        let of_file = || setting(Path::new(option(line, "--config")?), "socket");
        let told = option(line, "--socket").map(str::to_owned).or_else(of_file);
        let socket = told.map_or_else(|| control::DEFAULT_SOCKET.into(), PathBuf::from);
        Self { socket, process }
    }

    /// Asks it.
    ///
    /// # Errors
    /// It does not answer, or the user may not ask.
    pub(crate) async fn ask(
        &self,
        question: Question,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let asked = control::ask(&self.socket, question, self.process, patience).await;
        let Answered { answer, .. } = asked.map_err(|error| self.failure(&error))?;
        Ok(answer)
    }

    fn failure(&self, error: &ControlError) -> Failure {
        let place = self.socket.display();
        let hint = match error {
            ControlError::Connect(error) => {
                return unreachable(&self.socket, error, Role::Receiver);
            }
            ControlError::Another { .. } => {
                "each receiver needs its own socket: set `socket` in its settings, or name it with --socket"
            }
            ControlError::Foreign => "name the receiver's socket with --socket",
            ControlError::Silent(_) | ControlError::Closed | ControlError::Broken(_) => {
                "its log says more: `journalctl -u spillway-receiver`"
            }
        };
        let message = format!("spillwayd at {place}: {}", causes::of(error));
        Failure::new(Exit::Unavailable, message).hint(hint)
    }
}

/// The value of an option of a command line, `--option VALUE` or `--option=VALUE`.
fn option<'w>(line: &'w [String], option: &str) -> Option<&'w str> {
    let joined = line.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    let at = line.iter().position(|word| word == option);
    joined.or_else(|| line.get(at? + 1).map(String::as_str))
}

/// A text of a settings file.
fn setting(file: &Path, name: &str) -> Option<String> {
    let table: toml::Table = fs::read_to_string(file).ok()?.parse().ok()?;
    Some(table.get(name)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_answers_where_it_was_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r.toml").display().to_string();
        fs::write(&file, "socket = \"/c\"\n").unwrap();
        for (line, socket) in [
            ("/d receiver --interface eth0", control::DEFAULT_SOCKET),
            ("/d receiver --socket /a", "/a"),
            ("/d receiver --socket=/b", "/b"),
            (&*format!("/d receiver --config {file}"), "/c"),
            (&*format!("/d receiver --config={file} --socket /a"), "/a"),
            ("/d receiver --config /nonexistent", control::DEFAULT_SOCKET),
            ("/d receiver --socket", control::DEFAULT_SOCKET),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let expected = Receiver { socket: socket.into(), process: Some(7) };
            assert_eq!(Receiver::of_process(Some(7), &words), expected, "{line}");
        }
    }
}
