//! The kernel's neighbour table, as far as it tells what to send to.

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

/// What the kernel says of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) key: NeighbourKey,
    pub(super) state: NeighbourState,
    pub(super) mac: Option<Mac>,
}

impl Sighting {
    /// What a message says; `None` if it is not about an IP neighbour.
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

/// A neighbour as it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    /// Where to send to, until it is known that nobody is there.
    pub(super) mac: Option<Mac>,
    pub(super) phase: Phase,
}

/// How sure the kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Entered by hand.
    Permanent,
    /// Confirmed, or believed for a while yet.
    Confirmed,
    /// Nothing has confirmed it for some time.
    Stale,
    /// Being asked at its last known MAC.
    Probed,
    /// Being asked for.
    Asked,
    /// It has just failed: it did not answer, or somebody is deleting it.
    Failing,
    /// Taken out of the table, whether or not anybody is there.
    Removed,
    /// It did not answer.
    Silent,
}

impl Neighbour {
    /// What the kernel's telling `seen` makes of the neighbour that was `before`; `None`: nothing
    /// is known.
    ///
    /// To the kernel an entry that somebody deletes has failed too, and it says so just before it
    /// tells of the deletion (`neigh_delete` in net/core/neighbour.c). So what was known of one that
    /// fails stands until [`Neighbour::given_up`].
    pub(super) fn after(before: Option<Self>, seen: Sighting) -> Option<Self> {
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
            // Being asked for again does not undo that it did not answer.
            (NeighbourState::Incomplete | NeighbourState::None, Some(before)) => {
                match before.phase {
                    Phase::Failing | Phase::Silent => Some(before),
                    _ => with(before.mac, Phase::Asked),
                }
            }
            (NeighbourState::Incomplete | NeighbourState::None, None) => with(None, Phase::Asked),
            // On an interface without neighbours the kernel enters what suits itself.
            _ => None,
        }
    }

    /// What is left when its entry is gone: where it was last, while it is asked for again.
    pub(super) fn removed(self) -> Option<Self> {
        let phase = if self.phase == Phase::Silent { Phase::Silent } else { Phase::Removed };
        (self.mac.is_some() || phase == Phase::Silent).then_some(Self { phase, ..self })
    }

    /// One that has failed and is neither deleted nor heard since: nobody is there.
    pub(super) fn given_up(self) -> Self {
        match self.phase {
            Phase::Failing => Self { mac: None, phase: Phase::Silent },
            _ => self,
        }
    }

    /// Whether the kernel must be told to ask, lest it know nothing, or forget.
    pub(super) fn needs_asking(self) -> bool {
        !matches!(self.phase, Phase::Permanent | Phase::Confirmed | Phase::Probed)
    }
}

/// The whole table.
pub(super) async fn neighbours(handle: &Handle) -> Result<Vec<Sighting>, NetError> {
    let messages = handle.neighbours().get().execute().try_collect::<Vec<_>>().await;
    let messages = messages.map_err(NetError::request("list neighbours"))?;
    Ok(messages.into_iter().filter_map(Sighting::parse).collect())
}

/// Makes the kernel ask for a neighbour, as `ip neighbour replace … use` does: it looks for one that
/// it does not know, and makes sure of one that has gone stale.
pub(super) async fn ask(handle: Handle, key: NeighbourKey) -> Result<(), Error> {
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

    /// What a row of sightings comes to.
    fn after(seen: &[(NeighbourState, Option<Mac>)]) -> Option<Neighbour> {
        seen.iter().fold(None, |before, &(state, mac)| {
            Neighbour::after(before, Sighting { key: KEY, state, mac })
        })
    }

    #[test]
    fn one_that_fails_keeps_its_mac_until_it_is_given_up() {
        use NeighbourState::{Failed, Incomplete, Permanent, Probe, Reachable, Stale};
        for known in [Reachable, Stale, Probe, Permanent] {
            let seen = [(known, Some(A)), (Failed, None), (Incomplete, None), (Failed, None)];
            let failing = Neighbour { mac: Some(A), phase: Phase::Failing };
            let silent = Neighbour { mac: None, phase: Phase::Silent };
            assert_eq!(after(&seen), Some(failing));
            assert_eq!(failing.given_up(), silent);
            assert_eq!(failing.removed().map(Neighbour::given_up), failing.removed());
            assert_eq!(silent.removed(), Some(silent), "deleting it brings nobody back");
        }
    }

    #[test]
    fn one_that_was_never_known_is_silent_at_once() {
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
    fn the_last_mac_stands_while_a_removed_one_is_asked_for() {
        use NeighbourState::{Incomplete, Reachable};
        let removed = after(&[(Reachable, Some(A))]).and_then(Neighbour::removed);
        assert_eq!(removed, Some(Neighbour { mac: Some(A), phase: Phase::Removed }));
        let asked = Neighbour::after(removed, Sighting { key: KEY, state: Incomplete, mac: None });
        assert_eq!(asked, Some(Neighbour { mac: Some(A), phase: Phase::Asked }));
    }

    #[test]
    fn an_entry_of_an_interface_without_neighbours_is_none() {
        assert_eq!(after(&[(NeighbourState::Noarp, Some(A))]), None);
    }
}
