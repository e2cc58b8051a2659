//! A receiver's control socket: whether its settings are in force, asked by `spillway reload` and `spillway
//! doctor` on the same host.
//!
//! One question a connection: a line `reload` or `status`. The answer is one line of JSON, an [`Answer`]; what is
//! no question gets none. The socket is root's alone.

mod client;
mod server;

use serde::{Deserialize, Serialize};

pub use client::{Answered, ControlError, ask};
pub use server::serve;

/// Where a receiver answers, unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/spillway-receiver/receiver.sock";

/// What can be asked of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Read the settings again, and say what came of it.
    Reload,
    /// Say how the settings are.
    Status,
}

/// What a receiver answers. Fields that are not known are ignored, those that are missing are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Version of the daemon.
    pub version: String,
    /// What is wrong though the daemon goes on: settings that were refused at the last reload.
    pub troubles: Vec<Trouble>,
    /// Changed settings that wait for the next start, by name.
    pub waiting_settings: Vec<String>,
}

/// Something that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trouble {
    /// What it is about: `settings`.
    pub subject: String,
    /// What is wrong with it.
    pub cause: String,
}

impl Question {
    /// The line, without its end.
    fn word(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Status => "status",
        }
    }

    /// The question that a line is, its end included.
    fn parse(line: &[u8]) -> Option<Self> {
        let word = line.strip_suffix(b"\n")?;
        [Self::Reload, Self::Status].into_iter().find(|question| question.word().as_bytes() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_one_of_two_lines() {
        assert_eq!(Question::parse(b"reload\n"), Some(Question::Reload));
        assert_eq!(Question::parse(b"status\n"), Some(Question::Status));
        for line in
            [&b""[..], b"\n", b"reload", b"Reload\n", b"reload \n", b"reload\r\n", b"\xff\n"]
        {
            assert_eq!(Question::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn an_answer_of_another_version_is_read() {
        let answer: Answer = serde_json::from_str(r#"{"version":"9","more":[1]}"#).unwrap();
        assert_eq!(answer, Answer { version: "9".into(), ..Answer::default() });
    }
}
