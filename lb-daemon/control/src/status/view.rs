//! Copies of what the member loop knows of members and next hops.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
    time::Instant,
};

use crate::{
    health_state::SavedHoldDown,
    members::{Member, Newest},
};
use lb_model::{
    AdminState, Configuration, Name, Pool, Scaler,
    mark_out::Availability,
    next_hop::{NextHop, NoNextHop},
    overrides::Overrides,
};

/// Pool and address.
pub(crate) type Key = (Name, IpAddr);

#[derive(Debug, Default)]
pub(crate) struct View {
    pools: BTreeMap<Name, PoolView>,
    /// Pools that contain an address, by name.
    pools_of: HashMap<IpAddr, Vec<Name>>,
    next_hops: BTreeMap<IpAddr, Result<NextHop, NoNextHop>>,
}

#[derive(Debug, Default)]
struct PoolView {
    configured: Arc<Pool>,
    /// `None` until the member loop has told of the member.
    members: BTreeMap<IpAddr, Option<Arc<Member>>>,
    /// Members that are not available, so that nobody has to look at all members for them.
    absent: BTreeSet<IpAddr>,
}

impl View {
    pub(crate) fn get(&self, pool: &Name, address: &IpAddr) -> Option<&Member> {
        self.pools.get(pool)?.members.get(address)?.as_deref()
    }

    /// The members whose hold-down must not be forgotten.
    pub(crate) fn hold_downs(&self) -> impl Iterator<Item = SavedHoldDown<Instant>> + '_ {
        self.pools.iter().flat_map(|(pool, known)| {
            known.members.iter().filter_map(move |(address, member)| {
                let (times, hold_down) = member.as_deref()?.hold_down()?;
                Some(SavedHoldDown { pool: pool.clone(), address: *address, times, hold_down })
            })
        })
    }

    /// Pools that contain an address, by name.
    pub(crate) fn pools_of(&self, address: &IpAddr) -> &[Name] {
        self.pools_of.get(address).map_or(&[], Vec::as_slice)
    }

    /// The next hop of a backend, or why there is none; `None` if it was not looked up yet.
    pub(crate) fn next_hop(&self, address: &IpAddr) -> Option<&Result<NextHop, NoNextHop>> {
        self.next_hops.get(address)
    }

    /// Whether a member can take new connections, or could if local overrides did not stop it.
    pub(crate) fn availability(&self, pool: &Name, address: &IpAddr) -> Availability {
        availability(self.get(pool, address), self.next_hop(address))
    }

    /// Whether a pool has a backend for new connections under overrides, by what is known of backends now. One whose state
    /// is unknown may become one, and in panic mode those whose checks fail get connections too.
    pub(crate) fn serves(&self, overrides: &Overrides, name: &Name, pool: &Pool) -> bool {
        pool.backends.iter().any(|(address, backend)| {
            let by = overrides.member(name, address, &backend.region);
            let is_asked = backend.admin_state == AdminState::Active
                && backend.weight > 0
                && pool.group(&backend.region).effective_scaler() != Scaler::NONE
                && !by.drained
                && !by.disabled;
            let is_well = pool.panic_threshold_percent > 0
                || self.get(name, address).is_none_or(Member::may_serve);
            is_asked && is_well && !matches!(self.next_hop(address), Some(Err(_)))
        })
    }

    /// Whether a pool is known as it is here, and each of its members is available.
    pub(crate) fn is_available(&self, name: &Name, pool: &Arc<Pool>) -> bool {
        let known = self.pools.get(name).filter(|known| known.configured == *pool);
        known.is_some_and(|known| known.absent.is_empty())
    }

    /// Takes all that the state loop's mailbox had.
    pub(crate) fn take(&mut self, newest: Newest) {
        for (key, member) in newest.members {
            self.set(&key, member);
        }
        for (address, hop) in newest.next_hops {
            self.set_next_hop(address, hop);
        }
    }

    /// Replaces a member. Returns the one before and the new one; `None` if the configuration has no such member.
    pub(crate) fn set(
        &mut self,
        (pool, address): &Key,
        member: Arc<Member>,
    ) -> Option<(Option<Arc<Member>>, Arc<Member>)> {
        let pool = self.pools.get_mut(pool)?;
        let before = pool.members.get_mut(address)?.replace(Arc::clone(&member));
        pool.note(address, self.next_hops.get(address));
        Some((before, member))
    }

    /// Replaces a backend's next hop.
    pub(crate) fn set_next_hop(&mut self, address: IpAddr, hop: Result<NextHop, NoNextHop>) {
        for name in self.pools_of.get(&address).into_iter().flatten() {
            if let Some(pool) = self.pools.get_mut(name) {
                pool.note(&address, Some(&hop));
            }
        }
        self.next_hops.insert(address, hop);
    }

    /// Takes over the members of a configuration.
    pub(crate) fn configure(&mut self, configuration: &Configuration) {
        let gone = self.pools.keys().filter(|name| !configuration.pools.contains_key(*name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.configure_pool(&name, &Arc::default());
            self.pools.remove(&name);
        }
        for (name, pool) in &configuration.pools {
            if self.pools.get(name).is_none_or(|known| known.configured != *pool) {
                self.configure_pool(name, pool);
            }
        }
    }

    fn configure_pool(&mut self, name: &Name, pool: &Arc<Pool>) {
        let known = self.pools.entry(name.clone()).or_default();
        for address in known.members.keys().filter(|it| !pool.backends.contains_key(it)) {
            if let Some(names) = self.pools_of.get_mut(address) {
                names.retain(|other| other != name);
                if names.is_empty() {
                    self.pools_of.remove(address);
                }
            }
        }
        let mut former = std::mem::take(&mut known.members);
        for address in pool.backends.keys() {
            let names = self.pools_of.entry(*address).or_default();
            if let Err(place) = names.binary_search(name) {
                names.insert(place, name.clone());
            }
            known.members.insert(*address, former.remove(address).flatten());
            known.note(address, self.next_hops.get(address));
        }
        known.absent.retain(|address| pool.backends.contains_key(address));
        known.configured = Arc::clone(pool);
    }

    /// Forgets the next hops of all other backends.
    pub(crate) fn keep_next_hops(&mut self, backends: &BTreeSet<IpAddr>) {
        self.next_hops.retain(|address, _| backends.contains(address));
    }
}

impl PoolView {
    /// Notes whether a member is available.
    fn note(&mut self, address: &IpAddr, hop: Option<&Result<NextHop, NoNextHop>>) {
        let Some(member) = self.members.get(address) else { return };
        match availability(member.as_deref(), hop) {
            Availability::Available => drop(self.absent.remove(address)),
            _ => drop(self.absent.insert(*address)),
        }
    }
}

fn availability(member: Option<&Member>, hop: Option<&Result<NextHop, NoNextHop>>) -> Availability {
    match (member, hop) {
        (None, _) => Availability::Unknown,
        (Some(member), _) if !member.is_decided => Availability::Unknown,
        (_, Some(Err(_))) => Availability::Unavailable,
        (Some(member), _) if member.is_available() => Availability::Available,
        _ => Availability::Unavailable,
    }
}
