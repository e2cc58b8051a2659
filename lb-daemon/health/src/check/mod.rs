//! One check: one connection, one question, one result.

mod agent;
mod connection;
mod failure;
mod grpc;
mod http;
mod stream;
pub(super) mod tls;
mod udp;

use std::{fmt, io, net::SocketAddr, time::Duration};

use nix::errno::Errno;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, copy, sink},
    time::{Instant, timeout_at},
};

pub use connection::{Destination, connect, is_answer};
pub(super) use failure::{Failure, NoConnection};

use super::{agent_report::Word, host::Asker};
use lb_model::{HealthCheck, Probe};
use stream::Bounded;
use tls::Tls;

/// Most of an answer that is read after the verdict, bytes.
const FAREWELL_BYTES: u64 = 16 * 1024;

/// Longest wait for the rest of an answer after the verdict.
const FAREWELL_TIME: Duration = Duration::from_millis(250);

/// What a check came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Passed,
    Failed(Failure),
    /// This host had no room for it: that says nothing about the backend.
    NotMade(io::Error),
}

/// A connection whose answer is known, not yet closed.
pub(super) struct Leftover(Box<dyn AsyncRead + Send + Unpin>);

/// What a backend said of itself, or why that cannot be read.
pub(super) type Heard = Result<Word, String>;

/// All that came of a check.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) outcome: Outcome,
    /// What the backend said of itself; `None`: it was not asked, or nothing came.
    pub(super) heard: Option<Heard>,
    /// The connection if the backend has more to say.
    pub(super) leftover: Option<Leftover>,
}

/// The same of a question.
#[derive(Debug)]
struct Asked {
    answer: Result<(), Failure>,
    heard: Option<Heard>,
    leftover: Option<Leftover>,
}

/// Checks once, within the check's timeout; `tls` is what the check's TLS is spoken with.
pub(super) async fn check(
    to: Destination,
    check: &HealthCheck,
    asker: &Asker,
    tls: Option<&Tls>,
) -> Checked {
    let server = to.server;
    let end = Instant::now() + check.timeout;
    if let Probe::Udp(probe) = &check.probe {
        let answer = udp::ask(to, probe, check.timeout, asker).await;
        return Asked::only(answer).into();
    }
    let stream = match connection::made(to, check.timeout, asker).await {
        Ok(stream) => Bounded::new(stream),
        Err(failure) => return Asked::only(Err(failure)).into(),
    };
    let asked = match tls {
        None => ask(stream, server, check, end).await,
        // On the heap: ten thousand checks that are none of TLS need not have room for it.
        Some(tls) => {
            Box::pin(async {
                let shaken = timeout_at(end, tls.handshake(stream, server.ip())).await;
                match shaken.unwrap_or(Err(Failure::NoHandshake(check.timeout))) {
                    Ok(stream) => ask(stream, server, check, end).await,
                    Err(failure) => Asked::only(Err(failure)),
                }
            })
            .await
        }
    };
    asked.into()
}

/// Asks on a connection that is made.
async fn ask<S>(stream: S, server: SocketAddr, check: &HealthCheck, end: Instant) -> Asked
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let asked = async {
        match &check.probe {
            // Over UDP there is no connection, so nobody comes here with it.
            Probe::Tcp | Probe::Udp(_) => Asked::only(Ok(())),
            Probe::Http(probe) => {
                let mut stream = stream;
                let mut heard = None;
                let tls = check.tls.as_ref();
                let answer = http::ask(&mut stream, server, probe, tls, &mut heard).await;
                Asked { answer, heard, leftover: Some(Leftover(Box::new(stream))) }
            }
            Probe::Grpc(probe) => {
                let asking = grpc::ask(stream, server, probe, check.tls.as_ref());
                Asked::only(Box::pin(asking).await)
            }
            Probe::Agent(probe) => {
                let mut stream = stream;
                match agent::ask(&mut stream, probe).await {
                    Ok(word) => Asked { heard: Some(Ok(word)), ..Asked::only(Ok(())) },
                    Err(failure) => Asked::only(Err(failure)),
                }
            }
        }
    };
    let late = |_| Asked::only(Err(Failure::NoAnswer(check.timeout)));
    timeout_at(end, asked).await.unwrap_or_else(late)
}

impl Asked {
    fn only(answer: Result<(), Failure>) -> Self {
        Self { answer, heard: None, leftover: None }
    }
}

impl Checked {
    /// Of a check that could not even begin.
    pub(super) const fn only(outcome: Outcome) -> Self {
        Self { outcome, heard: None, leftover: None }
    }
}

impl From<Asked> for Checked {
    fn from(Asked { answer, heard, leftover }: Asked) -> Self {
        Self { outcome: Outcome::of(answer), heard, leftover }
    }
}

impl Outcome {
    fn of(answer: Result<(), Failure>) -> Self {
        match answer {
            Ok(()) => Self::Passed,
            Err(Failure::Io(error)) if is_shortage(&error) => Self::NotMade(error),
            Err(failure) => Self::Failed(failure),
        }
    }
}

impl Leftover {
    /// Lets the backend finish a short answer, so that it does not log a broken connection at each
    /// check; a long or slow one is cut off, and never beyond `end`.
    pub(super) async fn close(self, end: Instant) {
        let end = end.min(Instant::now() + FAREWELL_TIME);
        let mut rest = self.0.take(FAREWELL_BYTES);
        // Whatever comes of it, the verdict stands.
        let _ = timeout_at(end, copy(&mut rest, &mut sink())).await;
    }
}

impl fmt::Debug for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Leftover")
    }
}

/// Whether this host, not the backend, is the reason.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}
