//! One check: one connection, one request, one result.

mod agent;
mod connection;
mod failure;
mod grpc;
mod http;
mod stream;
pub(super) mod tls;
mod udp;

use std::{fmt, io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, copy, sink},
    time::{Instant, timeout_at},
};

pub(super) use failure::{Failure, NoConnection};

use super::{
    agent_report::ReportLine,
    connect::{Destination, is_shortage},
    host::HostProber,
};
use lb_model::{CheckKind, HealthCheck};
use stream::Bounded;
use tls::Tls;

/// Most bytes of an answer that are read after the result is known.
const DRAIN_BYTES: u64 = 16 * 1024;

/// Longest time for reading them.
const DRAIN_TIME: Duration = Duration::from_millis(250);

/// The outcome of a check.
#[derive(Debug)]
pub(super) enum Outcome {
    Passed,
    Failed(Failure),
    /// Not made for lack of resources on this host, which says nothing about the backend.
    NotMade(io::Error),
}

/// A connection whose result is known, not closed yet.
pub(super) struct Leftover(Box<dyn AsyncRead + Send + Unpin>);

/// A line of an agent report, or why it cannot be read.
pub(super) type LineResult = Result<ReportLine, String>;

/// The result of a check.
#[derive(Debug)]
pub(super) struct CheckResult {
    pub(super) outcome: Outcome,
    /// A line of the agent report; `None`: none was asked for, or none came.
    pub(super) line: Option<LineResult>,
    /// The connection, if the backend may send more.
    pub(super) leftover: Option<Leftover>,
}

/// The result of a request on a connection.
#[derive(Debug)]
struct Exchange {
    answer: Result<(), Failure>,
    line: Option<LineResult>,
    leftover: Option<Leftover>,
}

/// Makes one check, within its timeout; `tls`: the TLS configuration.
pub(super) async fn check(
    to: Destination,
    check: &HealthCheck,
    host_prober: &HostProber,
    tls: Option<&Tls>,
) -> CheckResult {
    let server = to.server;
    let end = Instant::now() + check.timeout;
    let question = host_prober.question(check);
    if let CheckKind::Udp(probe) = &check.kind {
        let answer = udp::ask(to, probe, check.timeout, question).await;
        return Exchange::only(answer).into();
    }
    let stream = match connection::connect_or_probe_host(to, check.timeout, question).await {
        Ok(stream) => Bounded::new(stream),
        Err(failure) => return Exchange::only(Err(failure)).into(),
    };
    let exchange = match tls {
        None => ask(stream, server, check, end).await,
        // Boxed, so that ten thousand checks without TLS do not need memory for it.
        Some(tls) => {
            Box::pin(async {
                let shaken = timeout_at(end, tls.handshake(stream, server.ip())).await;
                match shaken.unwrap_or(Err(Failure::NoHandshake(check.timeout))) {
                    Ok(stream) => ask(stream, server, check, end).await,
                    Err(failure) => Exchange::only(Err(failure)),
                }
            })
            .await
        }
    };
    exchange.into()
}

/// Sends the request on a connection.
async fn ask<S>(stream: S, server: SocketAddr, check: &HealthCheck, end: Instant) -> Exchange
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let exchange = async {
        match &check.kind {
            // UDP has no connection and is handled before.
            CheckKind::Tcp | CheckKind::Udp(_) => Exchange::only(Ok(())),
            CheckKind::Http(probe) => {
                let mut stream = stream;
                let mut line = None;
                let tls = check.tls.as_ref();
                let answer = http::ask(&mut stream, server, probe, tls, &mut line).await;
                Exchange { answer, line, leftover: Some(Leftover(Box::new(stream))) }
            }
            CheckKind::Grpc(probe) => {
                let asking = grpc::ask(stream, server, probe, check.tls.as_ref());
                Exchange::only(Box::pin(asking).await)
            }
            CheckKind::Agent(probe) => {
                let mut stream = stream;
                match agent::ask(&mut stream, probe).await {
                    Ok(word) => Exchange { line: Some(Ok(word)), ..Exchange::only(Ok(())) },
                    Err(failure) => Exchange::only(Err(failure)),
                }
            }
        }
    };
    let late = |_| Exchange::only(Err(Failure::NoAnswer(check.timeout)));
    timeout_at(end, exchange).await.unwrap_or_else(late)
}

impl Exchange {
    fn only(answer: Result<(), Failure>) -> Self {
        Self { answer, line: None, leftover: None }
    }
}

impl CheckResult {
    /// The result of a check that could not begin.
    pub(super) const fn only(outcome: Outcome) -> Self {
        Self { outcome, line: None, leftover: None }
    }
}

impl From<Exchange> for CheckResult {
    fn from(Exchange { answer, line, leftover }: Exchange) -> Self {
        Self { outcome: Outcome::of(answer), line, leftover }
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
    /// Reads the rest of a short answer, so that the backend does not log a broken connection at each check. A long
    /// or slow one is cut off, at `end` at the latest.
    pub(super) async fn close(self, end: Instant) {
        let end = end.min(Instant::now() + DRAIN_TIME);
        let mut rest = self.0.take(DRAIN_BYTES);
        // The result does not change.
        let _ = timeout_at(end, copy(&mut rest, &mut sink())).await;
    }
}

impl fmt::Debug for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Leftover")
    }
}
