//! Whether a host that lets a check's connection hang is there at all.
//!
//! It is asked in ways that need no privilege that the daemon lacks, at once, and the first answer
//! counts. That a way is barred here, or that nothing comes of it, says nothing.

pub mod echo;

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use tracing::{debug, warn};

use super::check::{
    Destination, is_shortage,
    tcp::{self, is_answer},
};
use lb_base::error_chain;
use lb_net::NeighbourProbe;

/// A port that nobody serves (tcpmux, RFC 1078): a host that is there refuses it, as often as it is
/// asked. What is unreachable over UDP Linux says once a second only.
pub const UNSERVED: u16 = 1;

/// What a host showed of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It answered a SYN to [`UNSERVED`].
    Port,
    /// It returned an echo request.
    Echo,
    /// It answered for its address on the link.
    Neighbour,
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Port => "answers on another port",
            Self::Echo => "answers echo requests",
            Self::Neighbour => "answers for its address on the link",
        })
    }
}

/// Asks hosts.
#[derive(Clone, Debug)]
pub struct Asker {
    neighbour_probe: Option<Arc<NeighbourProbe>>,
}

impl Asker {
    /// In the network namespace of the calling thread.
    pub fn open() -> Self {
        let neighbour_probe = NeighbourProbe::open().map_err(|error| {
            let error = error_chain::message(&error);
            warn!("health: neighbours cannot be asked whether they are there: {error}");
        });
        Self { neighbour_probe: neighbour_probe.ok().map(Arc::new) }
    }

    /// Waits for a sign of a host; ends without one only where no way of asking leads to it.
    ///
    /// # Errors
    /// This host has no room to ask.
    pub async fn sign_of(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        let ways = [self.port(host).boxed(), echo::ask(host).boxed(), self.neighbour(host).boxed()];
        let mut ways: FuturesUnordered<_> = ways.into_iter().collect();
        while let Some(answer) = ways.next().await {
            match answer {
                Ok(Some(sign)) => return Ok(Some(sign)),
                Ok(None) => {}
                Err(error) if is_shortage(&error) => return Err(error),
                Err(error) => debug!("health: {host} cannot be asked one way: {error}"),
            }
        }
        Ok(None)
    }

    async fn port(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        match tcp::connect(Destination::of(SocketAddr::new(host, UNSERVED))).await {
            Ok(_) => Ok(Some(Sign::Port)),
            Err(error) if is_answer(&error) => Ok(Some(Sign::Port)),
            Err(error) => Err(error),
        }
    }

    async fn neighbour(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        let Some(neighbour_probe) = &self.neighbour_probe else { return Ok(None) };
        let answers = neighbour_probe.answers(host).await.map_err(io::Error::other)?;
        Ok(answers.then_some(Sign::Neighbour))
    }
}
