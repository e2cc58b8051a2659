//! One way tried.

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{
    Way,
    echo::{Echo, SMALL},
};
use lb_base::error_chain;
use lb_health::{
    check::{Destination, connect, is_answer},
    host::{HostProber, Sign},
    tunnel::{SocketOptions, TunnelError, TunnelPath, Tunnels, VipTunnel},
};

/// Time for a connection, and for a word of the host: a SYN that is lost is repeated after a second.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// What came of a small packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Small {
    /// An echo request was answered, after so long.
    Echo(Duration),
    /// None was, but a TCP connection, or it was refused, after so long.
    Tcp(Duration),
    /// Nothing came.
    Silent {
        /// How the host shows outside of the tunnel that it is there, in words; `None`: nothing came.
        host: Option<String>,
    },
    /// Nothing could be sent, for a reason of this host's.
    Barred(String),
}

/// What came of a packet of the full size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Full {
    /// It was answered.
    Answered,
    /// Nothing came.
    Silent {
        /// The largest packet that was answered, bytes; `None`: it was not looked for.
        fits: Option<u16>,
    },
    /// It was not tried, since the small one was not answered.
    Untried,
    /// That cannot be told, and why.
    Unknown(String),
}

/// What came of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The way.
    pub way: Way,
    /// A small packet.
    pub small: Small,
    /// One of the full size.
    pub full: Full,
}

/// What ways are tried with.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) tunnels: Tunnels,
    pub(super) host_prober: HostProber,
    /// The full size, bytes.
    pub(super) size: u16,
    /// Ways of which it may still be looked for what fits them: that takes seconds.
    pub(super) searches: AtomicUsize,
}

impl Trial {
    /// Tries a way.
    pub(super) async fn of(&self, way: Way) -> Found {
        let through = VipTunnel { vip: way.vip, encapsulation: way.encapsulation };
        let mut path = self.tunnels.path_without_repair(way.backend, through);
        let (small, full) = match self.tried(&mut path, &way).await {
            Ok(found) => found,
            Err(no) => (Small::Barred(words(no)), Full::Untried),
        };
        Found { way, small, full }
    }

    async fn tried(&self, path: &mut TunnelPath, way: &Way) -> Result<(Small, Full), TunnelError> {
        let (echoed, mut echo) = match Echo::open(way.vip, path.socket_options().await?).await {
            Ok(echo) if !echo.can_be_answered() => {
                let why = "this host has no address of that version to ask from";
                return Err(TunnelError::Unusable(why.to_owned()));
            }
            Ok(mut echo) => (echo.ask(SMALL).await, Some(echo)),
            Err(error) => (Err(error), None),
        };
        if let (Ok(Some(after)), Some(echo)) = (&echoed, &mut echo) {
            return Ok((Small::Echo(*after), self.full(echo).await));
        }
        // A firewall may drop what a client's connection is not.
        let options = path.socket_options().await?;
        let (connected, host) = tokio::join!(
            connection(way, options),
            timeout(PATIENCE, self.host_prober.probe(way.backend))
        );
        let why = match &echoed {
            Ok(_) => "echo requests are not answered".to_owned(),
            Err(error) => format!("echo requests cannot be sent: {}", unsendable(error)),
        };
        Ok(match (connected, echoed) {
            (Some(Ok(after)), _) => (Small::Tcp(after), Full::Unknown(why)),
            // Nothing was sent: that is no silence.
            (None, Err(_)) => (Small::Barred(why), Full::Untried),
            (Some(Err(error)), Err(_)) if error.kind() != io::ErrorKind::TimedOut => {
                let why =
                    format!("{why}, nor can connections be made: {}", error_chain::message(&error));
                (Small::Barred(why), Full::Untried)
            }
            // Somebody on the way said no, or this host did.
            (Some(Err(error)), Ok(_)) if error.kind() != io::ErrorKind::TimedOut => {
                let why = format!("{why}, and connections fail: {}", error_chain::message(&error));
                (Small::Barred(why), Full::Untried)
            }
            _ => {
                let sign = host.ok().and_then(Result::ok).flatten();
                (Small::Silent { host: sign.as_ref().map(Sign::to_string) }, Full::Untried)
            }
        })
    }

    async fn full(&self, echo: &mut Echo) -> Full {
        match echo.ask(self.size).await {
            Ok(Some(_)) => Full::Answered,
            Ok(None) => self.narrow(echo).await.unwrap_or_else(|error| unsent(&error)),
            Err(error) => unsent(&error),
        }
    }

    async fn narrow(&self, echo: &mut Echo) -> io::Result<Full> {
        let left = self.searches.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        let fits = match left {
            Ok(_) => Some(echo.largest(SMALL, self.size).await?),
            Err(_) => None,
        };
        // Where answers are few, or lost, it is not their size that decides which come.
        if echo.ask(SMALL).await?.is_none() || echo.ask(self.size).await?.is_some() {
            let why = "echo requests are answered only now and then";
            return Ok(Full::Unknown(why.to_owned()));
        }
        Ok(Full::Silent { fits })
    }
}

/// How long it took to a word of the VIP's on a connection; `None`: there is none to ask for.
async fn connection(way: &Way, options: SocketOptions) -> Option<io::Result<Duration>> {
    let server = SocketAddr::new(way.vip, way.tcp_port?);
    let begun = Instant::now();
    let to = Destination { host: way.backend, server, tunnel: Some(options) };
    Some(match timeout(PATIENCE, connect(to)).await {
        Ok(Ok(_)) => Ok(begun.elapsed()),
        Ok(Err(error)) if is_answer(&error) => Ok(begun.elapsed()),
        Ok(Err(error)) => Err(error),
        Err(late) => Err(late.into()),
    })
}

fn words(no: TunnelError) -> String {
    match no {
        TunnelError::Shortage(error) => error_chain::message(&error),
        TunnelError::NoRoute(why) => error_chain::message(&why),
        TunnelError::Unusable(why) => why,
    }
}

fn unsendable(error: &io::Error) -> String {
    let words = error_chain::message(error);
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{words} (net.ipv4.ping_group_range)"),
        _ => words,
    }
}

fn unsent(error: &io::Error) -> Full {
    Full::Unknown(error_chain::message(error))
}
