//! Which next-hop word each backend uses.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use lb_common::abi::{
    limits::MAX_NEXT_HOPS,
    next_hop::{AWAITED, InterfaceWord, NextHopEntry, NextHopWord},
    service::address_words,
};

use crate::reconcile::free_space::{Full, FullMap, Indices};
use lb_model::next_hop::NextHop;

/// A neighbour on an interface, and the address of this host that tunnels by it come from. Backends that it leads to from
/// there share a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gateway {
    pub(super) address: IpAddr,
    pub(super) interface: u32,
    pub(super) source: Option<IpAddr>,
}

impl Gateway {
    /// What stands in the maps of it, for its word.
    pub(super) fn entry(&self, word: NextHopWord) -> NextHopEntry {
        let source = self.source.map_or([0; 4], address_words);
        NextHopEntry { word: word.0, reserved: 0, source }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    /// `None` if an earlier daemon wrote the word.
    gateway: Option<Gateway>,
    there: NextHopEntry,
    /// Number of backends that use it.
    users: u32,
}

#[derive(Clone, Debug)]
pub(super) struct NextHopTable {
    indices: Indices,
    entries: HashMap<u32, Entry>,
    by_gateway: HashMap<Gateway, u32>,
    by_backend: HashMap<IpAddr, u32>,
    /// Backends that lost theirs a moment ago.
    awaited: HashSet<IpAddr>,
    /// No longer used, but packets under way may still read them.
    leaving: Vec<u32>,
    /// The routes of all backends that were ever resolved.
    routes: HashMap<IpAddr, Route>,
    /// Interface words that this daemon wrote.
    interfaces: HashMap<u32, InterfaceWord>,
}

/// What a backend's entry says of the route to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    /// Largest packet, bytes.
    route_mtu: u16,
    /// Whether there is no gateway.
    on_link: bool,
}

/// What must be written for a backend's new next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    /// Index of the word.
    pub(super) index: u32,
    /// Whether the word itself must be written first.
    pub(super) write: bool,
}

impl NextHopTable {
    pub(super) fn new() -> Self {
        Self {
            // The last index is that of no next hop.
            indices: Indices::new(FullMap { what: "next hops", size: None }, MAX_NEXT_HOPS - 1),
            entries: HashMap::new(),
            by_gateway: HashMap::new(),
            by_backend: HashMap::new(),
            awaited: HashSet::new(),
            leaving: Vec::new(),
            routes: HashMap::new(),
            interfaces: HashMap::new(),
        }
    }

    /// Takes a member's word from the maps. All members of a backend share a next hop, so the first resolved
    /// one counts.
    pub(super) fn recover(&mut self, backend: IpAddr, index: u32, there: NextHopEntry) {
        if self.by_backend.contains_key(&backend) {
            return;
        }
        if index == u32::from(AWAITED) {
            self.awaited.insert(backend);
        }
        if index == 0 || !NextHopWord(there.word).is_resolved() {
            return;
        }
        self.awaited.remove(&backend);
        self.indices.reserve(index);
        let entry = self.entries.entry(index);
        entry.or_insert(Entry { gateway: None, there, users: 0 }).users += 1;
        self.by_backend.insert(backend, index);
    }

    /// 0 if there is none.
    pub(super) fn index_of(&self, backend: &IpAddr) -> u32 {
        self.by_backend.get(backend).copied().unwrap_or(0)
    }

    /// As [`Self::index_of`], or [`AWAITED`].
    pub(super) fn word_index(&self, backend: &IpAddr) -> u16 {
        if self.awaited.contains(backend) { AWAITED } else { self.index_of(backend) as u16 }
    }

    /// Takes a backend's next hop away, if it has one: it awaits another one. Returns whether it had one.
    pub(super) fn lose(&mut self, backend: &IpAddr) -> bool {
        let had_one = self.by_backend.contains_key(backend);
        if had_one {
            self.remove(backend);
            self.awaited.insert(*backend);
        }
        had_one
    }

    /// Whether a backend lost its next hop, and has not been given up since.
    pub(super) fn awaits(&self, backend: &IpAddr) -> bool {
        self.awaited.contains(backend)
    }

    /// Largest packet of the route, if known.
    pub(super) fn mtu(&self, backend: &IpAddr) -> Option<u16> {
        self.routes.get(backend).map(|route| route.route_mtu)
    }

    /// 1 if the backend is its own next hop, 0 if not.
    pub(super) fn on_link(&self, backend: &IpAddr) -> Option<u16> {
        self.routes.get(backend).map(|route| route.on_link.into())
    }

    pub(super) fn set_route(&mut self, backend: IpAddr, hop: &NextHop) {
        let NextHop { mtu: route_mtu, gateway, .. } = *hop;
        self.routes.insert(backend, Route { route_mtu, on_link: gateway == backend });
    }

    pub(super) fn is_new_interface(&self, interface: u32, word: InterfaceWord) -> bool {
        self.interfaces.get(&interface) != Some(&word)
    }

    pub(super) fn learn_interface(&mut self, interface: u32, word: InterfaceWord) {
        self.interfaces.insert(interface, word);
    }

    /// Assigns a backend to a gateway, of which `wanted` should stand in the maps.
    ///
    /// # Errors
    /// [`Full`]; nothing changes.
    pub(super) fn assign(
        &mut self,
        backend: IpAddr,
        gateway: Gateway,
        wanted: NextHopEntry,
    ) -> Result<Assignment, Full> {
        let index = match self.by_gateway.get(&gateway) {
            Some(index) => *index,
            None => {
                self.adopt(backend, gateway, wanted).map_or_else(|| self.allocate(gateway), Ok)?
            }
        };
        let mut write = false;
        if let Some(entry) = self.entries.get_mut(&index) {
            write = entry.there != wanted;
            entry.there = wanted;
        }
        if self.index_of(&backend) != index {
            self.remove(&backend);
            self.by_backend.insert(backend, index);
            if let Some(entry) = self.entries.get_mut(&index) {
                entry.users += 1;
            }
        }
        Ok(Assignment { index, write })
    }

    /// Takes over the word that an earlier daemon assigned to the backend, if it is right for the gateway.
    fn adopt(&mut self, backend: IpAddr, gateway: Gateway, wanted: NextHopEntry) -> Option<u32> {
        let index = *self.by_backend.get(&backend)?;
        let entry = self.entries.get_mut(&index)?;
        if entry.gateway.is_some() || entry.there != wanted {
            return None;
        }
        entry.gateway = Some(gateway);
        self.by_gateway.insert(gateway, index);
        Some(index)
    }

    fn allocate(&mut self, gateway: Gateway) -> Result<u32, Full> {
        let index = self.indices.allocate()?;
        let entry = Entry { gateway: Some(gateway), there: NextHopEntry::UNRESOLVED, users: 0 };
        self.entries.insert(index, entry);
        self.by_gateway.insert(gateway, index);
        Ok(index)
    }

    /// Returns whether the backend had a next hop, or awaited one.
    pub(super) fn remove(&mut self, backend: &IpAddr) -> bool {
        let awaited = self.awaited.remove(backend);
        let Some(index) = self.by_backend.remove(backend) else { return awaited };
        let Some(entry) = self.entries.get_mut(&index) else { return true };
        entry.users -= 1;
        if entry.users == 0 {
            if let Some(gateway) = entry.gateway {
                self.by_gateway.remove(&gateway);
            }
            self.entries.remove(&index);
            self.leaving.push(index);
        }
        true
    }

    /// Forgets a backend that is no longer needed, and its route.
    pub(super) fn forget(&mut self, backend: &IpAddr) {
        self.routes.remove(backend);
        self.remove(backend);
    }

    /// Backends that have a next hop, await one or have a route.
    pub(super) fn backends(&self) -> impl Iterator<Item = &IpAddr> {
        self.by_backend.keys().chain(&self.awaited).chain(self.routes.keys())
    }

    /// How many words wait for a grace period.
    pub(super) fn unreleased(&self) -> usize {
        self.leaving.len()
    }

    /// Call this with what [`Self::unreleased`] returned, once a grace period has passed since then.
    pub(super) fn release(&mut self, words: usize) {
        for index in self.leaving.drain(..words.min(self.leaving.len())) {
            self.indices.free(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn gateway(n: u8) -> Gateway {
        Gateway { address: [192, 0, 2, n].into(), interface: 3, source: Some([10, 0, 0, 1].into()) }
    }

    fn word(n: u8) -> NextHopEntry {
        gateway(1).entry(NextHopWord::new([2, 0, 0, 0, 0, n], 3))
    }

    #[test]
    fn a_change_of_a_gateway_is_one_write() {
        let mut table = NextHopTable::new();
        let first = table.assign(backend(1), gateway(1), word(1)).unwrap();
        assert_eq!(first, Assignment { index: 1, write: true });
        for n in 2..100 {
            let next = table.assign(backend(n), gateway(1), word(1)).unwrap();
            assert_eq!(next, Assignment { index: 1, write: false });
        }
        assert_eq!(
            table.assign(backend(7), gateway(1), word(9)).unwrap(),
            Assignment { index: 1, write: true }
        );
        for n in 1..100 {
            let same = table.assign(backend(n), gateway(1), word(9)).unwrap();
            assert_eq!(same, Assignment { index: 1, write: false });
        }
    }

    #[test]
    fn a_word_is_reused_only_after_a_grace_period() {
        let mut table = NextHopTable::new();
        table.assign(backend(1), gateway(1), word(1)).unwrap();
        assert!(table.remove(&backend(1)));
        assert!(!table.remove(&backend(1)));
        assert_eq!(table.unreleased(), 1);
        assert_eq!(table.assign(backend(1), gateway(1), word(1)).unwrap().index, 2);
        table.release(1);
        assert_eq!(table.assign(backend(2), gateway(2), word(2)).unwrap().index, 1);
    }

    #[test]
    fn words_of_an_earlier_daemon_are_taken_over_if_still_right() {
        let mut table = NextHopTable::new();
        table.recover(backend(1), 0, word(0));
        for n in [1, 2, 3] {
            table.recover(backend(n), 5, word(5));
        }
        table.recover(backend(1), 6, word(6));
        assert_eq!([1, 2, 3, 9].map(|n| table.index_of(&backend(n))), [5, 5, 5, 0]);
        let same = table.assign(backend(1), gateway(1), word(5)).unwrap();
        assert_eq!(same, Assignment { index: 5, write: false });
        // An equal word turns out to be another gateway's, whether its MAC differs or not.
        let other = table.assign(backend(2), gateway(2), word(5)).unwrap();
        assert_eq!(other, Assignment { index: 1, write: true });
        let changed = table.assign(backend(3), gateway(1), word(8)).unwrap();
        assert_eq!(changed, Assignment { index: 5, write: true });
    }

    #[test]
    fn another_source_is_another_word() {
        let mut table = NextHopTable::new();
        let renumbered = Gateway { source: Some([10, 0, 0, 22].into()), ..gateway(1) };
        let unnumbered = Gateway { source: None, ..gateway(1) };
        let at = NextHopWord::new([2, 0, 0, 0, 0, 1], 3);
        table.recover(backend(1), 5, gateway(1).entry(at));
        for (to, index) in [(renumbered, 1), (unnumbered, 2), (gateway(1), 3)] {
            let assigned = table.assign(backend(1), to, to.entry(at)).unwrap();
            assert_eq!(assigned, Assignment { index, write: true });
        }
        assert_eq!(table.unreleased(), 3);
        assert_eq!(renumbered.entry(at).source[3], u32::from_ne_bytes([10, 0, 0, 22]));
        assert_eq!(unnumbered.entry(at).source, [0; 4]);
    }

    #[test]
    fn a_lost_next_hop_is_awaited_until_there_is_one_or_it_is_given_up() {
        let mut table = NextHopTable::new();
        assert!(!table.lose(&backend(1)) && !table.awaits(&backend(1)), "it had none");
        for n in [1, 2, 3] {
            table.assign(backend(n), gateway(n), word(n)).unwrap();
            assert!(table.lose(&backend(n)) && !table.lose(&backend(n)));
        }
        let all = |table: &NextHopTable| [1, 2, 3].map(|n| table.word_index(&backend(n)));
        assert_eq!((all(&table), table.index_of(&backend(1))), ([AWAITED; 3], 0));
        assert_eq!(table.unreleased(), 3, "others may have their words");
        let again = table.assign(backend(1), gateway(1), word(1)).unwrap();
        assert_eq!(again, Assignment { index: 4, write: true });
        assert!(table.remove(&backend(2)) && !table.remove(&backend(2)));
        assert_eq!(all(&table), [4, 0, AWAITED]);
        // A daemon that starts again finds it in the maps.
        let mut later = NextHopTable::new();
        later.recover(backend(3), AWAITED.into(), NextHopEntry::UNRESOLVED);
        assert!(later.awaits(&backend(3)) && later.word_index(&backend(3)) == AWAITED);
        assert!(later.backends().eq([&backend(3)]));
        // It was about to write one of its words only.
        later.recover(backend(3), 9, word(3));
        later.recover(backend(3), AWAITED.into(), NextHopEntry::UNRESOLVED);
        assert_eq!((later.awaits(&backend(3)), later.word_index(&backend(3))), (false, 9));
    }

    #[test]
    fn forgetting_backends_keeps_the_words_of_others() {
        let mut table = NextHopTable::new();
        table.assign(backend(1), gateway(1), word(1)).unwrap();
        table.assign(backend(2), gateway(1), word(1)).unwrap();
        table.assign(backend(3), gateway(3), word(3)).unwrap();
        [1, 3].into_iter().for_each(|n| table.forget(&backend(n)));
        assert_eq!([1, 2, 3].map(|n| table.index_of(&backend(n))), [0, 1, 0]);
        assert_eq!(table.unreleased(), 1);
    }
}
