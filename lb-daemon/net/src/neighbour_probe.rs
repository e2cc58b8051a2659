//! Whether a host on a directly connected link answers ARP or neighbour discovery.

use std::{net::IpAddr, time::Duration};

use futures::StreamExt;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    RouteNetlinkMessage,
    neighbour::{NeighbourMessage, NeighbourState},
};
use nix::errno::Errno;
use rtnetlink::{Error, Handle};
use tokio::time::sleep;

use super::{
    NetError, connect,
    neighbour::{self, NeighbourKey, is_kernels},
    route::route_to,
};

/// Time between two looks at an entry in state `probe`: the first, and the longest. It doubles each time.
const LOOKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// Probes neighbours below IP, where no firewall interferes.
#[derive(Clone, Debug)]
pub struct NeighbourProbe {
    handle: Handle,
}

impl NeighbourProbe {
    /// Opens a netlink socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn open() -> Result<Self, NetError> {
        Ok(Self { handle: connect()?.0 })
    }

    /// Makes the kernel probe a host's neighbour entry, as it does before it gives a neighbour up. True as soon
    /// as the host answers; false if it does not within the kernel's limit (3 s), if it is behind a router, or if
    /// the kernel did not create the entry.
    ///
    /// # Errors
    /// The kernel refuses, for example without CAP_NET_ADMIN.
    pub async fn answers(&self, address: IpAddr) -> Result<bool, NetError> {
        Ok(self.probe(address).await? == Some(true))
    }

    /// The same, but distinguishes a neighbour that does not answer (`Some(false)`) from one that cannot be probed
    /// (`None`) because it is behind a router or the kernel did not create its entry.
    ///
    /// # Errors
    /// As [`Self::answers`].
    pub async fn probe(&self, address: IpAddr) -> Result<Option<bool>, NetError> {
        self.probe_entry(address).await.map_err(NetError::request("probe a neighbour"))
    }

    async fn probe_entry(&self, address: IpAddr) -> Result<Option<bool>, Error> {
        let Ok(route) = route_to(self.handle.clone(), address).await? else { return Ok(None) };
        let key = route.neighbour;
        if key.address != address {
            return Ok(None);
        }
        let known = self.entry(key).await?;
        if !known.is_some_and(|entry| may_be_probed(&entry)) {
            return Ok(None);
        }
        neighbour::probe(self.handle.clone(), key).await?;
        // An entry changes from `probe` to `reachable` only when an answer arrives.
        let (mut wait, longest) = LOOKS;
        loop {
            match self.entry(key).await?.map(|entry| entry.header.state) {
                Some(NeighbourState::Reachable) => return Ok(Some(true)),
                Some(NeighbourState::Probe) => sleep(wait).await,
                _ => return Ok(Some(false)),
            }
            wait = (2 * wait).min(longest);
        }
    }

    /// The kernel's entry of a neighbour.
    async fn entry(&self, key: NeighbourKey) -> Result<Option<NeighbourMessage>, Error> {
        let mut request =
            NetlinkMessage::from(RouteNetlinkMessage::GetNeighbour(neighbour::message(key)));
        request.header.flags = NLM_F_REQUEST;
        match self.handle.clone().request(request)?.next().await.map(|answer| answer.payload) {
            Some(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(entry))) => {
                Ok(Some(entry))
            }
            Some(NetlinkPayload::Error(error)) if -error.raw_code() == Errno::ENOENT as i32 => {
                Ok(None)
            }
            Some(NetlinkPayload::Error(error)) => Err(Error::NetlinkError(error)),
            _ => Err(Error::RequestFailed),
        }
    }
}

/// Whether an entry may be probed: its MAC is known, and nobody gave it. Those of administrators and routing daemons
/// are not touched.
fn may_be_probed(entry: &NeighbourMessage) -> bool {
    use NeighbourState::{Delay, Probe, Reachable, Stale};
    matches!(entry.header.state, Reachable | Stale | Delay | Probe) && is_kernels(entry)
}
