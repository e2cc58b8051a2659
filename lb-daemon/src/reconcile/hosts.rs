//! Hosts: a backend whatever the pool, for connections that are not at home.

use std::{collections::BTreeSet, net::IpAddr};

use lb_common::abi::host::HostWord;

use super::Reconciler;

impl Reconciler {
    /// Makes a host's word say the best of its states: one store. Whoever raises a member does this
    /// first, whoever fells one last, so that no connection is where its host's word says that it
    /// cannot be.
    pub(super) fn write_host(&self, address: &IpAddr) {
        if let Some((index, word)) = self.host(address)
            && self.maps.host(index) != word
        {
            self.maps.set_host(index, word);
        }
    }

    /// Raises the hosts of a plan to what its members say, before packets see these.
    pub(super) fn raise_hosts(&self) {
        for (index, word) in self.backends.keys().filter_map(|address| self.host(address)) {
            let there = self.maps.host(index);
            let falls = there.incarnation() == word.incarnation()
                && there.state() as u8 > word.state() as u8;
            if there != word && !falls {
                self.maps.set_host(index, word);
            }
        }
    }

    /// Makes the words of all hosts of a plan right, and those of all others [`HostWord::GONE`], once
    /// packets see its members and no others.
    pub(super) fn settle_hosts(&self) {
        self.backends.keys().for_each(|address| self.write_host(address));
        let planned: BTreeSet<u32> = self.backends.values().map(|b| b.id.index).collect();
        for (index, _) in self.maps.hosts() {
            if !planned.contains(&index) {
                self.maps.set_host(index, HostWord::GONE);
            }
        }
    }

    /// Index of a host of the plan, and what its word should say.
    fn host(&self, address: &IpAddr) -> Option<(u32, HostWord)> {
        let id = self.backends.get(address)?.id;
        let hop = self.hops.of_backend(address) as u16;
        Some((id.index, HostWord::new(id.incarnation, self.states.best(address), hop)))
    }
}
