//! A receiver's control socket, with which `spillway reload` and `spillway doctor` on the same host reload its settings
//! and ask for their state.
//!
//! A connection has one request, the line `reload` or `status`, and one answer, a line of JSON ([`Answer`]). Anything
//! else gets no answer. Only root can connect.

use std::{io, path::Path, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

/// Path of the socket, unless configured.
pub const DEFAULT_SOCKET: &str = "/run/spillway-receiver/receiver.sock";

/// A request to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reload the settings, and report the result.
    Reload,
    /// Report the state of the settings.
    Status,
}

/// A receiver's answer. Unknown fields are ignored, missing ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Version of the daemon.
    pub version: String,
    /// Current conditions, such as settings that were refused at the last reload.
    pub conditions: Vec<Condition>,
    /// Names of changed settings that need a restart.
    pub waiting_settings: Vec<String>,
    /// All mistakes in the settings that a reload refused, if there are several, `settings: cause` each.
    pub mistakes: Vec<String>,
}

/// A condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// What is affected: `settings`.
    pub subject: String,
    /// What is wrong.
    pub cause: String,
}

impl Request {
    /// The line, without its line end.
    fn word(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Status => "status",
        }
    }

    /// Reads a line with its line end.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let word = line.strip_suffix(b"\n")?;
        [Self::Reload, Self::Status].into_iter().find(|request| request.word().as_bytes() == word)
    }
}

/// Longest answer that is read, bytes.
const LONGEST: u64 = 1 << 20;

/// An answer and the process that sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// Id of the listening process; `None`: it is in another namespace.
    pub process: Option<u32>,
}

/// Why a receiver did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The connection failed.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// Another process than the expected receiver listens. No request was sent.
    #[error("process {found} listens there, but the receiver is process {meant}")]
    Another {
        /// The listening process.
        found: u32,
        /// The expected receiver.
        meant: u32,
    },
    /// No answer in time.
    #[error("does not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The connection was closed without an answer: the receiver stops, or another program listens.
    #[error("closed the connection without an answer")]
    Closed,
    /// The answer is not JSON of this protocol.
    #[error("the process that listens there uses another protocol")]
    Foreign,
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

/// Sends a request to the receiver at a socket. If the process id that is `meant` is given, no other process gets it.
///
/// # Errors
/// [`ControlError`].
pub async fn ask(
    socket: &Path,
    request: Request,
    meant: Option<u32>,
    patience: Duration,
) -> Result<Reply, ControlError> {
    let reply = timeout(patience, exchange(socket, request, meant)).await;
    reply.map_err(|_| ControlError::Silent(patience))?
}

async fn exchange(
    socket: &Path,
    request: Request,
    meant: Option<u32>,
) -> Result<Reply, ControlError> {
    let mut stream = UnixStream::connect(socket).await.map_err(ControlError::Connect)?;
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let process = peer.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
    if let (Some(found), Some(meant)) = (process, meant)
        && found != meant
    {
        return Err(ControlError::Another { found, meant });
    }
    let line = format!("{}\n", request.word());
    stream.write_all(line.as_bytes()).await.map_err(ControlError::Broken)?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text).await.map_err(ControlError::Broken)?;
    if text.is_empty() {
        return Err(ControlError::Closed);
    }
    let answer = serde_json::from_slice(&text).map_err(|_| ControlError::Foreign)?;
    Ok(Reply { answer, process })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_of_two_lines() {
        assert_eq!(Request::parse(b"reload\n"), Some(Request::Reload));
        assert_eq!(Request::parse(b"status\n"), Some(Request::Status));
        for line in
            [&b""[..], b"\n", b"reload", b"Reload\n", b"reload \n", b"reload\r\n", b"\xff\n"]
        {
            assert_eq!(Request::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn an_answer_of_another_version_is_read() {
        let answer: Answer = serde_json::from_str(r#"{"version":"9","more":[1]}"#).unwrap();
        assert_eq!(answer, Answer { version: "9".into(), ..Answer::default() });
    }
}
