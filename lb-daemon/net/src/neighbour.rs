//! The kernel's neighbour table: which MAC a next hop has.

use std::net::IpAddr;

use futures::TryStreamExt;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
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
}

impl NeighbourEntry {
    /// Reads a message; `None` if it is not about an IP neighbour.
    pub(super) fn parse(message: NeighbourMessage) -> Option<Self> {
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
        (!proxied).then_some(Self { key, state: message.header.state, mac })
    }
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
}

impl Neighbour {
    /// The neighbour after the kernel's event `seen`; `None`: nothing is known.
    ///
    /// The kernel reports an entry that is being deleted as failed just before it reports the deletion
    /// (`neigh_delete` in net/core/neighbour.c). So the MAC of a failed entry is kept until
    /// [`Neighbour::given_up`].
    pub(super) fn after(before: Option<Self>, seen: NeighbourEntry) -> Option<Self> {
        let mac = seen.mac;
        let with = |mac, phase| Some(Self { mac, phase });
        match (seen.state, before) {
            (NeighbourState::Permanent, _) => with(mac, Phase::Permanent),
            (NeighbourState::Reachable | NeighbourState::Delay, _) => with(mac, Phase::Confirmed),
            (NeighbourState::Stale, _) => with(mac, Phase::Stale),
            (NeighbourState::Probe, _) => with(mac, Phase::Probed),
            (NeighbourState::Failed, Some(before)) if before.mac.is_some() => {
                with(before.mac, Phase::Failing)
            }
            (NeighbourState::Failed, _) => with(None, Phase::Silent),
            // A new request does not undo that the last one failed.
            (NeighbourState::Incomplete | NeighbourState::None, Some(before)) => {
                match before.phase {
                    Phase::Failing | Phase::Silent => Some(before),
                    _ => with(before.mac, Phase::Resolving),
                }
            }
            (NeighbourState::Incomplete | NeighbourState::None, None) => {
                with(None, Phase::Resolving)
            }
            // On an interface without ARP the kernel adds entries of its own.
            _ => None,
        }
    }

    /// After its entry was removed: keeps the MAC while it is resolved again.
    pub(super) fn removed(self) -> Option<Self> {
        let phase = if self.phase == Phase::Silent { Phase::Silent } else { Phase::Removed };
        (self.mac.is_some() || phase == Phase::Silent).then_some(Self { phase, ..self })
    }

    /// After a failed entry was neither deleted nor confirmed in time: the neighbour does not answer.
    pub(super) fn given_up(self) -> Self {
        match self.phase {
            Phase::Failing => Self { mac: None, phase: Phase::Silent },
            _ => self,
        }
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
            Neighbour::after(before, NeighbourEntry { key: KEY, state, mac })
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
        use NeighbourState::{Failed, Incomplete, Stale};
        let silent = Some(Neighbour { mac: None, phase: Phase::Silent });
        for seen in [vec![], vec![(Incomplete, None)]] {
            let failed = [seen, vec![(Failed, None)]].concat();
            assert_eq!(after(&failed), silent);
            let asked_again = [failed, vec![(Incomplete, None)]].concat();
            assert_eq!(after(&asked_again), silent);
            let back = [asked_again, vec![(Stale, Some(B))]].concat();
            assert_eq!(after(&back), Some(Neighbour { mac: Some(B), phase: Phase::Stale }));
        }
    }

    #[test]
    fn the_last_mac_stands_while_a_removed_neighbour_is_resolved() {
        use NeighbourState::{Incomplete, Reachable};
        let removed = after(&[(Reachable, Some(A))]).and_then(Neighbour::removed);
        assert_eq!(removed, Some(Neighbour { mac: Some(A), phase: Phase::Removed }));
        let asked =
            Neighbour::after(removed, NeighbourEntry { key: KEY, state: Incomplete, mac: None });
        assert_eq!(asked, Some(Neighbour { mac: Some(A), phase: Phase::Resolving }));
    }

    #[test]
    fn an_entry_without_arp_is_ignored() {
        assert_eq!(after(&[(NeighbourState::Noarp, Some(A))]), None);
    }
}
