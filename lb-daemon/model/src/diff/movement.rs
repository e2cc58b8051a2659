//! Which share of the open connections a change moves. It follows from the tables alone: health is ignored, and
//! displaced connections are remembered one by one whatever changes.
//!
//! Absolute numbers are unknown, because the packet path keeps nothing for connections at home.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{TableDiffs, TableMembers, join};
use crate::{
    AdminState, Configuration, Name, ObjectReference, Pool, PortList, Ports, Protocol, Service,
    plan,
};

/// An effect on the open connections of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    /// A service, a pool, or a backend of a pool.
    pub object: ObjectReference,
    pub effect: Effect,
    /// Share of the object's open connections that are at home, 0 to 1.
    pub share: f64,
}

/// What happens to open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They stay for the settle time; those that send nothing in that time may be reset then.
    Settle,
    /// They go to another backend at once, which resets TCP.
    AtOnce,
    /// They are no longer balanced.
    End,
}

/// What a change from `old` to `new` does to the open connections of a daemon in region `own`. Objects whose
/// connections all stay are left out. A configuration without a hash key has `own_key`.
pub fn movements(
    old: &Configuration,
    new: &Configuration,
    own: Option<&Name>,
    own_key: [u64; 2],
    diffs: &TableDiffs<'_>,
) -> Vec<Movement> {
    let mut movements = Vec::new();
    // Without this, homes follow from the pool alone.
    let key = |configuration: &Configuration| configuration.hash_key.unwrap_or(own_key);
    let rehashed = key(old) != key(new);
    let elsewhere = rehashed || old.regions != new.regions;
    let remembered = old.services.values().filter(|service| is_remembered(service));
    let served: BTreeSet<&Name> = remembered.map(|service| &service.pool).collect();
    for (name, before, after) in join(&old.pools, &new.pools) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        if before == after && !elsewhere {
            continue;
        }
        let homes = (Home::of_pool(old, own, before), Home::of_pool(new, own, after));
        let share = homes.0.moved(&homes.1, rehashed, diffs);
        if served.contains(name) && share > 0.0 {
            let object = ObjectReference::Pool(name.clone());
            movements.push(Movement { object, effect: Effect::Settle, share });
        }
        for (address, before, after) in join(&before.backends, &after.backends) {
            let is_off = |state| state == AdminState::Disabled;
            if let (Some(before), Some(after)) = (before, after)
                && is_off(after.admin_state)
                && !is_off(before.admin_state)
                && before.weight > 0
            {
                let (pool, address) = (Some(name.clone()), *address);
                let object = ObjectReference::Backend { pool, address };
                movements.push(Movement { object, effect: Effect::AtOnce, share: 1.0 });
            }
        }
    }
    for (name, before, after) in join(&old.services, &new.services) {
        let Some(before) = before else { continue };
        let is_same_pool = || old.pools.get(&before.pool) == new.pools.get(&before.pool);
        if after == Some(before) && !elsewhere && is_same_pool() {
            continue;
        }
        let object = ObjectReference::Service(name.clone());
        let key = |service: &Service| (service.address, service.protocol);
        let Some(after) = after.filter(|after| key(after) == key(before)) else {
            movements.push(Movement { object, effect: Effect::End, share: 1.0 });
            continue;
        };
        let share = ended(&before.ports, &after.ports);
        if share > 0.0 {
            let object = object.clone();
            movements.push(Movement { object, effect: Effect::End, share });
        }
        if share == 1.0 {
            continue;
        }
        let home = |configuration: &Configuration, service: &Service| {
            let pool = configuration.pools.get(&service.pool);
            pool.map(|pool| Home::of_pool(configuration, own, pool)).unwrap_or_default()
        };
        let hashed_anew = rehashed || before.affinity != after.affinity;
        let other = before.pool != after.pool || before.affinity != after.affinity;
        if other || !is_remembered(before) {
            let share = home(old, before).moved(&home(new, after), hashed_anew, diffs);
            if share > 0.0 {
                movements.push(Movement { object, effect: Effect::AtOnce, share });
            }
        }
    }
    movements
}

/// Share of connections whose port a service loses, if all ports have equally many.
fn ended(before: &Ports, after: &Ports) -> f64 {
    let every = PortList::new([(1, u16::MAX)]);
    let (Some(before), Some(after)) = (before.listed().or(every.as_ref()), after.listed()) else {
        return 0.0;
    };
    let kept = before.each().filter(|port| after.has(*port)).count();
    1.0 - kept as f64 / before.count() as f64
}

/// Whether the packet path remembers flows of the service.
fn is_remembered(service: &Service) -> bool {
    service.protocol == Protocol::Tcp || service.idle_timeout.is_some()
}

/// The table that homes connections: that of the first region of the order.
#[derive(Debug, Default, PartialEq)]
struct Home(TableMembers);

impl Home {
    fn of_pool(configuration: &Configuration, own: Option<&Name>, pool: &Pool) -> Self {
        let first = plan::regions(configuration, own, pool).first().copied();
        let here = pool.backends.iter().filter(|(_, b)| b.weight > 0 && Some(&b.region) == first);
        let members = here.map(|(address, backend)| (*address, backend.weight)).collect();
        Self(TableMembers { members, slots: pool.slots })
    }

    /// Share of connections that have another backend in `new`.
    fn moved(&self, new: &Self, hashed_anew: bool, diffs: &TableDiffs<'_>) -> f64 {
        match (self.0.members.is_empty(), new.0.members.is_empty()) {
            (true, _) => return 0.0,
            (false, true) => return 1.0,
            (false, false) => {}
        }
        if hashed_anew {
            let (before, after) = (self.shares(), new.shares());
            let same = before.iter().filter_map(|(address, a)| Some(a * after.get(address)?));
            return 1.0 - same.sum::<f64>();
        }
        if self == new {
            return 0.0;
        }
        diffs.get(&self.0, &new.0).share
    }

    /// Share of the slots that each owns.
    fn shares(&self) -> BTreeMap<IpAddr, f64> {
        let all: f64 = self.0.members.iter().map(|(_, weight)| f64::from(*weight)).sum();
        self.0.members.iter().map(|(a, weight)| (*a, f64::from(*weight) / all)).collect()
    }
}
