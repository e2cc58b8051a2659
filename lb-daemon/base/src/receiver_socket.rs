//! A receiver's control socket: whether its settings are in force, asked by `spillway reload` and `spillway
//! doctor` on the same host.
//!
//! One question a connection: a line `reload` or `status`. The answer is one line of JSON, an [`Answer`]; what is
//! no question gets none. The socket is root's alone.

use std::{io, path::Path, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

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
    pub conditions: Vec<Condition>,
    /// Changed settings that wait for the next start, by name.
    pub waiting_settings: Vec<String>,
}

/// Something that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
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
    pub fn parse(line: &[u8]) -> Option<Self> {
        let word = line.strip_suffix(b"\n")?;
        [Self::Reload, Self::Status].into_iter().find(|question| question.word().as_bytes() == word)
    }
}

/// Longest answer that is read, bytes.
const LONGEST: u64 = 1 << 20;

/// An answer, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Id of the process that listens; `None`: it is of another namespace.
    pub process: Option<u32>,
}

/// Why a receiver did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing can be connected to.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// Another process than the receiver that is meant listens there. It was asked nothing.
    #[error("process {found} listens there, and the receiver is process {meant}")]
    Another {
        /// The one that listens.
        found: u32,
        /// The one that is meant.
        meant: u32,
    },
    /// The answer took too long.
    #[error("does not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// It closed the connection without an answer: it stops, or another program listens there.
    #[error("closed the connection without an answer")]
    Closed,
    /// What it said is no answer.
    #[error("what listens there speaks another protocol")]
    Foreign,
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

/// Asks the receiver that listens on a socket. Where the process that is `meant` is known, no other is asked.
///
/// # Errors
/// [`ControlError`].
pub async fn ask(
    socket: &Path,
    question: Question,
    meant: Option<u32>,
    patience: Duration,
) -> Result<Answered, ControlError> {
    let asked = timeout(patience, conversation(socket, question, meant)).await;
    asked.map_err(|_| ControlError::Silent(patience))?
}

async fn conversation(
    socket: &Path,
    question: Question,
    meant: Option<u32>,
) -> Result<Answered, ControlError> {
    let mut stream = UnixStream::connect(socket).await.map_err(ControlError::Connect)?;
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let process = peer.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
    if let (Some(found), Some(meant)) = (process, meant)
        && found != meant
    {
        return Err(ControlError::Another { found, meant });
    }
    let line = format!("{}\n", question.word());
    stream.write_all(line.as_bytes()).await.map_err(ControlError::Broken)?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text).await.map_err(ControlError::Broken)?;
    if text.is_empty() {
        return Err(ControlError::Closed);
    }
    let answer = serde_json::from_slice(&text).map_err(|_| ControlError::Foreign)?;
    Ok(Answered { answer, process })
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
