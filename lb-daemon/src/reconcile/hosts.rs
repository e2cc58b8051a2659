//! Hosts: a backend whatever the pool, for connections that are not at home.

use std::{collections::BTreeMap, net::IpAddr};

use lb_common::abi::host::HostWord;

use super::{Reconciler, published::Published};
use crate::ids::BackendId;

impl Reconciler {
    /// Makes a host's word say the best of its states: one store, and one more where a former version
    /// knows the address by another number. Whoever raises a member does this first, whoever fells one
    /// last, so that no connection is where its host's word says that it cannot be.
    pub(super) fn write_host(&self, address: &IpAddr) {
        let planned = self.backends.get(address).map(|backend| backend.id);
        if let Some(id) = planned {
            self.set_host(id, address);
        }
        let mut others: Vec<BackendId> = self.ids_in_places(address).collect();
        others.retain(|id| Some(*id) != planned);
        others.dedup();
        others.into_iter().for_each(|id| self.set_host(id, address));
    }

    /// Raises the hosts of a plan, and of former versions, to what their members say, before packets
    /// see these.
    pub(super) fn raise_hosts(&self, published: &Published) {
        for (index, (id, address)) in self.hosts_of(published) {
            let (there, word) = (self.maps.host(index), self.host(id, &address));
            let falls = there.incarnation() == word.incarnation()
                && there.state() as u8 > word.state() as u8;
            if there != word && !falls {
                self.maps.set_host(index, word);
            }
        }
    }

    /// Makes the words of all hosts of a plan and of former versions right, and those of all others
    /// [`HostWord::GONE`], once packets see these members and no others.
    pub(super) fn settle_hosts(&self) {
        let hosts = self.hosts_of(&self.published);
        for (id, address) in hosts.values() {
            self.set_host(*id, address);
        }
        for (index, _) in self.maps.hosts() {
            if !hosts.contains_key(&index) {
                self.maps.set_host(index, HostWord::GONE);
            }
        }
    }

    /// Hosts by index: those of the plan, and those that only a former version names.
    fn hosts_of(&self, published: &Published) -> BTreeMap<u32, (BackendId, IpAddr)> {
        let members = published.groups.values().flat_map(|group| &group.members);
        let members = members.map(|member| (member.id, member.address));
        let planned = self.backends.iter().map(|(address, backend)| (backend.id, *address));
        members.chain(planned).map(|(id, address)| (id.index, (id, address))).collect()
    }

    fn ids_in_places(&self, address: &IpAddr) -> impl Iterator<Item = BackendId> {
        self.places.of_backend(address).iter().filter_map(|place| {
            let group = self.published.groups.get(&place.group)?;
            Some(group.members.get(usize::from(place.rank))?.id)
        })
    }

    fn set_host(&self, id: BackendId, address: &IpAddr) {
        let word = self.host(id, address);
        if self.maps.host(id.index) != word {
            self.maps.set_host(id.index, word);
        }
    }

    /// What a host's word should say.
    fn host(&self, id: BackendId, address: &IpAddr) -> HostWord {
        let hop = self.hops.of_backend(address) as u16;
        HostWord::new(id.incarnation, self.states.best(address), hop)
    }
}
