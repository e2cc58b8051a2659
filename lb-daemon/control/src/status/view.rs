//! Copies of what the member loop knows of members and next hops.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use crate::members::{Member, Newest};
use lb_model::{Configuration, Name, next_hop::NextHop};

/// Pool and address.
pub(crate) type Key = (Name, IpAddr);

#[derive(Debug, Default)]
pub(crate) struct View {
    /// Of the pools of a configuration; `None` until the member loop has told of the member.
    members: BTreeMap<Name, BTreeMap<IpAddr, Option<Arc<Member>>>>,
    pools: HashMap<IpAddr, Vec<Name>>,
    next_hops: BTreeMap<IpAddr, Result<NextHop, String>>,
}

impl View {
    pub(crate) fn get(&self, pool: &Name, address: &IpAddr) -> Option<&Member> {
        self.members.get(pool)?.get(address)?.as_deref()
    }

    /// Pools that contain an address, by name.
    pub(crate) fn pools_of(&self, address: &IpAddr) -> &[Name] {
        self.pools.get(address).map_or(&[], Vec::as_slice)
    }

    /// The next hop of a backend, or why there is none; `None` if it was not looked up yet.
    pub(crate) fn next_hop(&self, address: &IpAddr) -> Option<&Result<NextHop, String>> {
        self.next_hops.get(address)
    }

    /// Takes all that the state loop's mailbox had.
    pub(crate) fn take(&mut self, newest: Newest) {
        for (key, member) in newest.members {
            self.set(&key, member);
        }
        self.next_hops.extend(newest.next_hops);
    }

    /// Replaces a member. Returns the one before and the new one; `None` if the configuration has no such member.
    pub(crate) fn set(
        &mut self,
        (pool, address): &Key,
        member: Arc<Member>,
    ) -> Option<(Option<Arc<Member>>, Arc<Member>)> {
        let there = self.members.get_mut(pool)?.get_mut(address)?;
        Some((there.replace(Arc::clone(&member)), member))
    }

    /// Replaces a backend's next hop.
    pub(crate) fn set_next_hop(&mut self, address: IpAddr, hop: Result<NextHop, String>) {
        self.next_hops.insert(address, hop);
    }

    /// Takes over the members of a configuration.
    pub(crate) fn configure(&mut self, configuration: &Configuration) {
        let mut before = std::mem::take(&mut self.members);
        self.pools.clear();
        for (name, pool) in &configuration.pools {
            let mut former = before.remove(name).unwrap_or_default();
            let members = pool.backends.keys();
            let members = members.map(|it| (*it, former.remove(it).flatten())).collect();
            self.members.insert(name.clone(), members);
            for address in pool.backends.keys() {
                self.pools.entry(*address).or_default().push(name.clone());
            }
        }
    }

    /// Forgets the next hops of all other backends.
    pub(crate) fn keep_next_hops(&mut self, backends: &BTreeSet<IpAddr>) {
        self.next_hops.retain(|address, _| backends.contains(address));
    }
}
