//! The kernel's neighbour table: which MAC a next hop has.

use std::net::IpAddr;

use futures::{StreamExt, TryStreamExt};
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    neighbour::{
        NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
    },
};
use rtnetlink::{Error, Handle};

use super::{Mac, NetError};

/// Names a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NeighbourKey {
    /// Index of the interface it is on.
    pub(super) interface: u32,
    pub(super) address: IpAddr,
}

/// An entry of the kernel's neighbour table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeighbourEntry {
    pub(super) key: NeighbourKey,
    pub(super) state: NeighbourState,
    pub(super) mac: Option<Mac>,
    /// Whether the kernel found it out; false: an administrator or a routing daemon did.
    pub(super) is_kernels: bool,
}

impl NeighbourEntry {
    /// Reads a message; `None` if it is not about an IP neighbour.
    pub(super) fn parse(message: NeighbourMessage) -> Option<Self> {
        let is_kernels = is_kernels(&message);
        let mut address = None;
        let mut mac = None;
        for attribute in message.attributes {
            match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => {
                    address = Some(v4.into());
                }
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => {
                    address = Some(v6.into());
                }
                NeighbourAttribute::LinkLayerAddress(bytes) => mac = bytes.try_into().ok(),
                _ => {}
            }
        }
        let key = NeighbourKey { interface: message.header.ifindex, address: address? };
        let proxied = message.header.flags.contains(NeighbourFlags::Proxy);
        (!proxied).then_some(Self { key, state: message.header.state, mac, is_kernels })
    }
}

/// Whether the kernel found an entry out itself.
pub(super) fn is_kernels(entry: &NeighbourMessage) -> bool {
    // The kernel sets only the router flag itself (IPv6).
    let given = entry.header.flags - NeighbourFlags::Router;
    let given_more = entry.attributes.iter().any(|attribute| match attribute {
        NeighbourAttribute::ExtFlags(flags) => !flags.is_empty(),
        _ => false,
    });
    given.is_empty() && !given_more
}

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    /// Last known MAC; `None` once the neighbour has failed to answer.
    pub(super) mac: Option<Mac>,
    pub(super) phase: Phase,
}

/// The state that follows from the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A static entry.
    Permanent,
    /// Confirmed, or about to be checked.
    Confirmed,
    /// Not confirmed for some time.
    Stale,
    /// The kernel asks at the last known MAC.
    Probed,
    /// The kernel resolves it.
    Resolving,
    /// The entry has just failed: no answer, or it is being deleted.
    Failing,
    /// The entry was removed, which says nothing about the neighbour.
    Removed,
    /// It does not answer.
    Silent,
    /// It does not answer, but has sent something itself since.
    Unconfirmed,
}

impl Neighbour {
    /// The neighbour after the kernel's event `seen`; `None`: nothing is known.
    ///
    /// The kernel reports an entry that is being deleted as failed just before it reports the deletion
    /// (`neigh_delete` in net/core/neighbour.c). So the MAC of a failed entry is kept until
    /// [`Neighbour::given_up`].
    pub(super) fn after(before: Option<Self>, seen: NeighbourEntry) -> Option<Self> {
        use NeighbourState::{Delay, Failed, Incomplete, Permanent, Probe, Reachable, Stale};
        let mac = seen.mac;
        let with = |mac, phase| Some(Self { mac, phase });
        let unanswered = seen.is_kernels && before.is_some_and(Self::is_silent);
        match (seen.state, before) {
            // A gateway's own ARP request or solicitation does not show that it answers ours.
            (Stale | Delay, _) if unanswered => with(None, Phase::Unconfirmed),
            (Probe, _) if unanswered => with(None, Phase::Probed),
            (Permanent, _) => with(mac, Phase::Permanent),
            (Reachable | Delay, _) => with(mac, Phase::Confirmed),
            (Stale, _) => with(mac, Phase::Stale),
            (Probe, _) => with(mac, Phase::Probed),
            (Failed, Some(before)) if before.mac.is_some() => with(before.mac, Phase::Failing),
            (Failed, _) => with(None, Phase::Silent),
            // A new request does not undo that the last one failed.
            (Incomplete | NeighbourState::None, Some(before)) => match before.phase {
                Phase::Failing => Some(before),
                _ if before.is_silent() => with(None, Phase::Silent),
                _ => with(before.mac, Phase::Resolving),
            },
            (Incomplete | NeighbourState::None, None) => with(None, Phase::Resolving),
            // On an interface without ARP the kernel adds entries of its own.
            _ => None,
        }
    }

    /// After its entry was removed: keeps the MAC while it is resolved again.
    pub(super) fn removed(self) -> Option<Self> {
        let phase = if self.is_silent() { Phase::Silent } else { Phase::Removed };
        (self.mac.is_some() || self.is_silent()).then_some(Self { phase, ..self })
    }

    /// After a failed entry was neither deleted nor confirmed in time: the neighbour does not answer.
    pub(super) fn given_up(self) -> Self {
        match self.phase {
            Phase::Failing => Self { mac: None, phase: Phase::Silent },
            _ => self,
        }
    }

    /// Whether it did not answer when it was last asked.
    pub(super) fn is_silent(self) -> bool {
        self.mac.is_none()
            && matches!(self.phase, Phase::Silent | Phase::Unconfirmed | Phase::Probed)
    }

    /// Whether the kernel has to be told to resolve it, as XDP's packets do not cause that.
    pub(super) fn needs_request(self) -> bool {
        !matches!(self.phase, Phase::Permanent | Phase::Confirmed | Phase::Probed)
    }
}

/// Lists the table.
pub(super) async fn neighbours(handle: &Handle) -> Result<Vec<NeighbourEntry>, NetError> {
    let messages = handle.neighbours().get().execute().try_collect::<Vec<_>>().await;
    let messages = messages.map_err(NetError::request("list neighbours"))?;
    Ok(messages.into_iter().filter_map(NeighbourEntry::parse).collect())
}

/// Makes the kernel resolve an unknown neighbour, or check a stale one, as `ip neighbour replace … use` does.
pub(super) async fn request(handle: Handle, key: NeighbourKey) -> Result<(), Error> {
    let add = handle.neighbours().add(key.interface, key.address).replace();
    add.state(NeighbourState::None).flags(NeighbourFlags::Use).execute().await
}

/// Makes the kernel ask a neighbour at once, at its last known MAC, and give it up after three requests.
pub(super) async fn probe(mut handle: Handle, key: NeighbourKey) -> Result<(), Error> {
    let mut message = message(key);
    message.header.state = NeighbourState::Probe;
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewNeighbour(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
    match handle.request(request)?.next().await.map(|answer| answer.payload) {
        Some(NetlinkPayload::Error(error)) if error.code.is_some() => {
            Err(Error::NetlinkError(error))
        }
        _ => Ok(()),
    }
}

/// A message about a neighbour, without a state.
pub(super) fn message(key: NeighbourKey) -> NeighbourMessage {
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

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: NeighbourKey =
        NeighbourKey { interface: 2, address: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST) };
    const A: Mac = [2, 0, 0, 0, 0, 0xa];
    const B: Mac = [2, 0, 0, 0, 0, 0xb];

    /// The neighbour after a sequence of events.
    fn after(seen: &[(NeighbourState, Option<Mac>)]) -> Option<Neighbour> {
        seen.iter().fold(None, |before, &(state, mac)| {
            Neighbour::after(before, NeighbourEntry { key: KEY, state, mac, is_kernels: true })
        })
    }

    #[test]
    fn a_failing_neighbour_keeps_its_mac_until_it_is_given_up() {
        use NeighbourState::{Failed, Incomplete, Permanent, Probe, Reachable, Stale};
        for known in [Reachable, Stale, Probe, Permanent] {
            let seen = [(known, Some(A)), (Failed, None), (Incomplete, None), (Failed, None)];
            let failing = Neighbour { mac: Some(A), phase: Phase::Failing };
            let silent = Neighbour { mac: None, phase: Phase::Silent };
            assert_eq!(after(&seen), Some(failing));
            assert_eq!(failing.given_up(), silent);
            assert_eq!(failing.removed().map(Neighbour::given_up), failing.removed());
            assert_eq!(silent.removed(), Some(silent), "deleting it does not bring it back");
        }
    }

    #[test]
    fn an_unknown_neighbour_that_fails_is_silent_at_once() {
        use NeighbourState::{Failed, Incomplete, Reachable};
        let silent = Some(Neighbour { mac: None, phase: Phase::Silent });
        for seen in [vec![], vec![(Incomplete, None)]] {
            let failed = [seen, vec![(Failed, None)]].concat();
            assert_eq!(after(&failed), silent);
            let asked_again = [failed, vec![(Incomplete, None)]].concat();
            assert_eq!(after(&asked_again), silent);
            let back = [asked_again, vec![(Reachable, Some(B))]].concat();
            assert_eq!(after(&back), Some(Neighbour { mac: Some(B), phase: Phase::Confirmed }));
        }
    }

    #[test]
    fn a_silent_neighbour_that_sends_something_has_to_answer_first() {
        use NeighbourState::{Delay, Failed, Incomplete, Probe, Reachable, Stale};
        let without_mac = |phase| Some(Neighbour { mac: None, phase });
        let failed = vec![(Failed, None)];
        for unconfirmed in [Stale, Delay] {
            let unconfirmed = [failed.clone(), vec![(unconfirmed, Some(A))]].concat();
            assert_eq!(after(&unconfirmed), without_mac(Phase::Unconfirmed));
            let probed = [unconfirmed, vec![(Probe, Some(A))]].concat();
            assert_eq!(after(&probed), without_mac(Phase::Probed));
            for (answer, expected) in [
                ((Failed, None), without_mac(Phase::Silent)),
                ((Incomplete, None), without_mac(Phase::Silent)),
                ((Stale, Some(B)), without_mac(Phase::Unconfirmed)),
                ((Reachable, Some(B)), Some(Neighbour { mac: Some(B), phase: Phase::Confirmed })),
            ] {
                assert_eq!(after(&[probed.clone(), vec![answer]].concat()), expected);
            }
            assert_eq!(after(&probed).and_then(Neighbour::removed), without_mac(Phase::Silent));
        }
        let given = NeighbourEntry { key: KEY, state: Stale, mac: Some(A), is_kernels: false };
        let stale = Some(Neighbour { mac: Some(A), phase: Phase::Stale });
        assert_eq!(Neighbour::after(after(&failed), given), stale, "an administrator's word");
    }

    #[test]
    fn the_last_mac_stands_while_a_removed_neighbour_is_resolved() {
        use NeighbourState::{Incomplete, Reachable};
        let removed = after(&[(Reachable, Some(A))]).and_then(Neighbour::removed);
        assert_eq!(removed, Some(Neighbour { mac: Some(A), phase: Phase::Removed }));
        let asked = NeighbourEntry { key: KEY, state: Incomplete, mac: None, is_kernels: true };
        let asked = Neighbour::after(removed, asked);
        assert_eq!(asked, Some(Neighbour { mac: Some(A), phase: Phase::Resolving }));
    }

    #[test]
    fn an_entry_without_arp_is_ignored() {
        assert_eq!(after(&[(NeighbourState::Noarp, Some(A))]), None);
    }
}
