//! A receiver's control socket: which one is meant, and what it answers.

use std::{path::PathBuf, time::Duration};

use lb_daemon::{
    causes,
    control::{self, Answer, Answered, ControlError, Question},
    dataplane::{Pins, Role},
    holder,
};

use crate::{arguments::Options, command_line, daemon::unreachable, exit::Exit, failure::Failure};

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
        Self::of_process(process, &process.map(command_line::of_process).unwrap_or_default())
    }

    /// A receiver that was started with a command line.
    pub(crate) fn of_process(process: Option<u32>, line: &[String]) -> Self {
        let socket = command_line::setting(line, "socket");
        Self { socket: socket.map_or(control::DEFAULT_SOCKET.into(), PathBuf::from), process }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_answers_where_it_was_told_to() {
        for (line, socket) in [
            ("/d receiver --interface eth0", control::DEFAULT_SOCKET),
            ("/d receiver --socket /a", "/a"),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let expected = Receiver { socket: socket.into(), process: Some(7) };
            assert_eq!(Receiver::of_process(Some(7), &words), expected, "{line}");
        }
    }
}
