//! What the state loop knows of members and next hops: copies of what the member loop has.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use crate::members::Member;
use lb_model::{Configuration, Name, next_hop::NextHop};

/// Pool and address.
pub(super) type Key = (Name, IpAddr);

#[derive(Debug, Default)]
pub(super) struct View {
    members: BTreeMap<Name, BTreeMap<IpAddr, Arc<Member>>>,
    pools: HashMap<IpAddr, Vec<Name>>,
    /// Next hops of backends, or why there is none.
    pub(super) next_hops: BTreeMap<IpAddr, Result<NextHop, String>>,
}

impl View {
    pub(super) fn get(&self, (pool, address): &Key) -> Option<&Member> {
        self.members.get(pool)?.get(address).map(Arc::as_ref)
    }

    pub(super) fn pool_members(&self, pool: &Name) -> Option<&BTreeMap<IpAddr, Arc<Member>>> {
        self.members.get(pool)
    }

    /// Pools that contain an address, by name.
    pub(super) fn pools_of(&self, address: &IpAddr) -> &[Name] {
        self.pools.get(address).map_or(&[], Vec::as_slice)
    }

    /// Replaces a member. Returns the one before.
    pub(super) fn set(&mut self, (pool, address): Key, member: Arc<Member>) -> Option<Arc<Member>> {
        self.members.entry(pool).or_default().insert(address, member)
    }

    /// Forgets members that a configuration does not have.
    pub(super) fn configure(&mut self, configuration: &Configuration) {
        self.members.retain(|name, members| {
            let pool = configuration.pools.get(name);
            members.retain(|address, _| pool.is_some_and(|it| it.backends.contains_key(address)));
            pool.is_some()
        });
        self.pools.clear();
        for (name, pool) in &configuration.pools {
            for address in pool.backends.keys() {
                self.pools.entry(*address).or_default().push(name.clone());
            }
        }
    }
}
