//! Whether a host on a link of this one is there.

use std::{net::IpAddr, time::Duration};

use futures::StreamExt;
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState},
};
use nix::errno::Errno;
use rtnetlink::{Error, Handle};
use tokio::time::sleep;

use super::{NetError, connect, neighbour::NeighbourKey, route::route_to};

/// Time between two looks at an entry that is being asked for: at first, and at most. Twice as long
/// after each.
const LOOKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// NeighbourRequests hosts whether they are there, below IP: what a firewall drops, they answer.
#[derive(Clone, Debug)]
pub struct Presence {
    handle: Handle,
}

impl Presence {
    /// In the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn open() -> Result<Self, NetError> {
        Ok(Self { handle: connect()?.0 })
    }

    /// Has the kernel ask a host for its address once more, as it does before it gives a neighbour
    /// up. True as soon as the host has answered that; false when it does not within the kernel's
    /// patience (3 s), when it is behind a router, or when its entry is not the kernel's own.
    ///
    /// # Errors
    /// The kernel will not, as without CAP_NET_ADMIN.
    pub async fn answers(&self, address: IpAddr) -> Result<bool, NetError> {
        Ok(self.asked(address).await? == Some(true))
    }

    /// The same, telling a neighbour that does not answer (`Some(false)`) from one that cannot be asked
    /// (`None`): it is behind a router, or its entry is not the kernel's own.
    ///
    /// # Errors
    /// As [`Self::answers`].
    pub async fn asked(&self, address: IpAddr) -> Result<Option<bool>, NetError> {
        self.ask(address).await.map_err(NetError::request("ask for a neighbour"))
    }

    async fn ask(&self, address: IpAddr) -> Result<Option<bool>, Error> {
        let Ok(route) = route_to(self.handle.clone(), address, 0).await? else { return Ok(None) };
        let key = route.neighbour;
        if key.address != address {
            return Ok(None);
        }
        let known = self.entry(key).await?;
        if !known.is_some_and(|entry| is_kernels(&entry)) {
            return Ok(None);
        }
        self.probe(key).await?;
        // An entry leaves that state for `reachable` when an answer comes, and for no other reason.
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

    /// What the kernel has of a neighbour.
    async fn entry(&self, key: NeighbourKey) -> Result<Option<NeighbourMessage>, Error> {
        let mut question = NetlinkMessage::from(RouteNetlinkMessage::GetNeighbour(message(key)));
        question.header.flags = NLM_F_REQUEST;
        match self.handle.clone().request(question)?.next().await.map(|answer| answer.payload) {
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

    /// Makes it doubt one that it knows, so that it asks at once, at the last known MAC.
    async fn probe(&self, key: NeighbourKey) -> Result<(), Error> {
        let mut message = message(key);
        message.header.state = NeighbourState::Probe;
        let mut order = NetlinkMessage::from(RouteNetlinkMessage::NewNeighbour(message));
        order.header.flags = NLM_F_REQUEST | NLM_F_ACK;
        match self.handle.clone().request(order)?.next().await.map(|answer| answer.payload) {
            Some(NetlinkPayload::Error(error)) if error.code.is_some() => {
                Err(Error::NetlinkError(error))
            }
            _ => Ok(()),
        }
    }
}

/// Whether the kernel found the neighbour itself, and knows a MAC: nobody else's entry is touched.
fn is_kernels(entry: &NeighbourMessage) -> bool {
    use NeighbourState::{Delay, Probe, Reachable, Stale};
    let known = matches!(entry.header.state, Reachable | Stale | Delay | Probe);
    // That it is a router it says itself, in IPv6; all else somebody gave it.
    let given = entry.header.flags - NeighbourFlags::Router;
    let given_more = entry.attributes.iter().any(|attribute| match attribute {
        NeighbourAttribute::ExtFlags(flags) => !flags.is_empty(),
        _ => false,
    });
    known && given.is_empty() && !given_more
}

fn message(key: NeighbourKey) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family =
        if key.address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.header.ifindex = key.interface;
    let address = match key.address {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => v6.into(),
    };
    message.attributes.push(NeighbourAttribute::Destination(address));
    message
}
