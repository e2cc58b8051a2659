//! One check: one connection, one question, one result.

mod connection;
mod failure;
mod http;
mod response;
pub(super) mod tcp;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use nix::errno::Errno;
use tokio::{
    io::{AsyncReadExt, copy, sink},
    net::TcpStream,
    time::{Instant, timeout_at},
};

pub(super) use failure::{Failure, NoConnection};

use super::host::Asker;
use crate::model::{HealthCheck, Probe};

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
#[derive(Debug)]
pub(super) struct Leftover(TcpStream);

/// Checks once, within the check's timeout.
pub(super) async fn check(
    address: IpAddr,
    check: &HealthCheck,
    asker: &Asker,
) -> (Outcome, Option<Leftover>) {
    let server = SocketAddr::new(address, check.port);
    let end = Instant::now() + check.timeout;
    let mut stream = match connection::made(server, check.timeout, asker).await {
        Ok(stream) => stream,
        Err(failure) => return (Outcome::of(failure), None),
    };
    let Probe::Http(probe) = &check.probe else { return (Outcome::Passed, None) };
    let answer = timeout_at(end, http::ask(&mut stream, server, probe)).await;
    let answer = answer.unwrap_or(Err(Failure::NoAnswer(check.timeout)));
    (answer.map_or_else(Outcome::of, |()| Outcome::Passed), Some(Leftover(stream)))
}

impl Outcome {
    fn of(failure: Failure) -> Self {
        match failure {
            Failure::Io(error) if is_shortage(&error) => Self::NotMade(error),
            failure => Self::Failed(failure),
        }
    }
}

impl Leftover {
    /// Lets the backend finish a short answer, so that it does not log a broken connection at each
    /// check; a long or slow one is cut off, and never beyond `end`.
    pub(super) async fn farewell(self, end: Instant) {
        let end = end.min(Instant::now() + FAREWELL_TIME);
        let mut rest = self.0.take(FAREWELL_BYTES);
        // Whatever comes of it, the verdict stands.
        let _ = timeout_at(end, copy(&mut rest, &mut sink())).await;
    }
}

/// Whether this host, not the backend, is the reason.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}
