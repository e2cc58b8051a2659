use std::{io, path::Path, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::{Answer, Question};

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
