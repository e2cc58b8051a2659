//! The probe of one target.

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{
    ProbeTarget,
    echo::{Echo, SMALL},
};
use lb_base::error_chain;
use lb_health::{
    connect::{Destination, SocketOptions, connect, is_answer},
    host::{HostProber, Sign},
    tunnel::{TunnelError, TunnelPath, Tunnels, VipTunnel},
};
use lb_model::{HealthCheck, HostProbe};

/// Time for a connection, and for a reply of the host: a lost SYN is repeated after a second.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Result of small packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmallResult {
    /// An echo request was answered after this time.
    Echo(Duration),
    /// No echo request was answered, but a TCP connection was established or refused after this time.
    Tcp(Duration),
    /// No answer.
    Silent {
        /// How the host replied outside of the tunnel; `None`: not at all.
        host: Option<String>,
    },
    /// Nothing could be sent from this host: why.
    Barred(String),
}

/// Result of packets of the full size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FullResult {
    Answered,
    /// No answer.
    Silent {
        /// The largest packet that was answered, bytes; `None`: not searched for.
        fits: Option<u16>,
    },
    /// Not sent, since small packets were not answered.
    NotSent,
    /// Unknown, and why.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetResult {
    pub target: ProbeTarget,
    pub small: SmallResult,
    pub full: FullResult,
}

/// Probes targets.
#[derive(Debug)]
pub(super) struct TargetProber {
    pub(super) tunnels: Tunnels,
    pub(super) host_prober: HostProber,
    /// The full size, bytes.
    pub(super) size: u16,
    /// Path MTU searches that are left: each takes seconds.
    pub(super) searches: AtomicUsize,
}

impl TargetProber {
    pub(super) async fn probe(&self, target: ProbeTarget) -> TargetResult {
        let tunnel = VipTunnel { vip: target.vip, encapsulation: target.encapsulation };
        let mut path = self.tunnels.path_without_repair(target.backend, tunnel);
        let (small, full) = match self.try_probe(&mut path, &target).await {
            Ok(found) => found,
            Err(error) => (SmallResult::Barred(tunnel_error(error)), FullResult::NotSent),
        };
        TargetResult { target, small, full }
    }

    async fn try_probe(
        &self,
        path: &mut TunnelPath,
        target: &ProbeTarget,
    ) -> Result<(SmallResult, FullResult), TunnelError> {
        let (echoed, mut echo) = match Echo::open(target.vip, path.socket_options().await?).await {
            Ok(echo) if !echo.can_be_answered() => {
                let why = "this host has no source address of that IP version";
                return Err(TunnelError::Unusable(why.to_owned()));
            }
            Ok(mut echo) => (echo.send(SMALL).await, Some(echo)),
            Err(error) => (Err(error), None),
        };
        if let (Ok(Some(after)), Some(echo)) = (&echoed, &mut echo) {
            return Ok((SmallResult::Echo(*after), self.full(echo).await));
        }
        // A firewall may drop echo requests, but not connections.
        let options = path.socket_options().await?;
        let (connected, host) = tokio::join!(
            connection(target, options),
            timeout(
                TIMEOUT,
                self.host_prober.probe(
                    target.backend,
                    HostProbe::Auto,
                    HealthCheck::DEFAULT_HOST_PROBE_PORT
                )
            )
        );
        let why = match &echoed {
            Ok(_) => "echo requests are not answered".to_owned(),
            Err(error) => format!("echo requests cannot be sent: {}", send_error(error)),
        };
        Ok(match (connected, echoed) {
            (Some(Ok(after)), _) => (SmallResult::Tcp(after), FullResult::Unknown(why)),
            // Nothing was sent, so the target is not silent.
            (None, Err(_)) => (SmallResult::Barred(why), FullResult::NotSent),
            (Some(Err(error)), Err(_)) if error.kind() != io::ErrorKind::TimedOut => {
                let why = format!(
                    "{why}, and connections cannot be made: {}",
                    error_chain::message(&error)
                );
                (SmallResult::Barred(why), FullResult::NotSent)
            }
            // A host on the way refused the packets, or this one did.
            (Some(Err(error)), Ok(_)) if error.kind() != io::ErrorKind::TimedOut => {
                let why = format!("{why}, and connections fail: {}", error_chain::message(&error));
                (SmallResult::Barred(why), FullResult::NotSent)
            }
            _ => {
                let sign = host.ok().and_then(Result::ok).flatten();
                (
                    SmallResult::Silent { host: sign.as_ref().map(Sign::to_string) },
                    FullResult::NotSent,
                )
            }
        })
    }

    async fn full(&self, echo: &mut Echo) -> FullResult {
        match echo.send(self.size).await {
            Ok(Some(_)) => FullResult::Answered,
            Ok(None) => self.narrow(echo).await.unwrap_or_else(|error| unknown(&error)),
            Err(error) => unknown(&error),
        }
    }

    async fn narrow(&self, echo: &mut Echo) -> io::Result<FullResult> {
        let left = self.searches.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        let fits = match left {
            Ok(_) => Some(echo.largest(SMALL, self.size).await?),
            Err(_) => None,
        };
        // If answers are rate-limited or lost, the size does not decide which of them arrive.
        if echo.send(SMALL).await?.is_none() || echo.send(self.size).await?.is_some() {
            let why = "echo requests are only answered sometimes";
            return Ok(FullResult::Unknown(why.to_owned()));
        }
        Ok(FullResult::Silent { fits })
    }
}

/// Time until the VIP answered a TCP connection; `None`: the VIP has no TCP service.
async fn connection(target: &ProbeTarget, options: SocketOptions) -> Option<io::Result<Duration>> {
    let server = SocketAddr::new(target.vip, target.tcp_port?);
    let begun = Instant::now();
    let to = Destination { host: target.backend, server, options };
    Some(match timeout(TIMEOUT, connect(to)).await {
        Ok(Ok(_)) => Ok(begun.elapsed()),
        Ok(Err(error)) if is_answer(&error) => Ok(begun.elapsed()),
        Ok(Err(error)) => Err(error),
        Err(late) => Err(late.into()),
    })
}

fn tunnel_error(error: TunnelError) -> String {
    match error {
        TunnelError::Shortage(error) => error_chain::message(&error),
        TunnelError::NoRoute(why) => error_chain::message(&why),
        TunnelError::Unusable(why) => why,
    }
}

fn send_error(error: &io::Error) -> String {
    let words = error_chain::message(error);
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{words} (net.ipv4.ping_group_range)"),
        _ => words,
    }
}

fn unknown(error: &io::Error) -> FullResult {
    FullResult::Unknown(error_chain::message(error))
}
