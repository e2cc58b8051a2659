//! How the slots of two tables differ. Tables take long to build, so those of a whole configuration are compared on all
//! CPUs, each pair once. Those of the former configuration are dropped again.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use lb_common::abi::slot::NO_RANK;

use super::join;
use crate::{
    Configuration, Name, Pool,
    maglev::{BuiltTables, Member, MemberKey, TableSpec},
};

/// Computes the owner of each slot of a table.
pub type Owners<'a> = dyn Fn(&TableMembers) -> Vec<IpAddr> + Sync + 'a;

/// What a table is built from: members with a weight, sorted by address, and a number of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableMembers {
    pub members: Vec<(IpAddr, u32)>,
    pub slots: u32,
}

/// The owners in the packet path.
pub fn owners(table: &TableMembers) -> Vec<IpAddr> {
    owners_by(table, TableSpec::owners)
}

/// As [`owners`], of tables that are then kept.
pub fn kept_owners(table: &TableMembers, built: &BuiltTables) -> Vec<IpAddr> {
    owners_by(table, |spec| built.owners(spec))
}

fn owners_by(table: &TableMembers, ranks: impl FnOnce(&TableSpec) -> Vec<u16>) -> Vec<IpAddr> {
    let members = table.members.iter();
    let members: Vec<_> = members
        .map(|(address, weight)| Member { key: (*address).into(), weight: *weight })
        .collect();
    // A valid configuration always has a table.
    let Ok(spec) = TableSpec::new(&members, table.slots) else { return Vec::new() };
    let keys: Vec<IpAddr> = spec.keys().iter().map(MemberKey::address).collect();
    let owners = ranks(&spec).into_iter().filter(|rank| *rank != NO_RANK);
    owners.filter_map(|rank| keys.get(usize::from(rank)).copied()).collect()
}

/// How two tables differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TableDiff {
    /// Slots whose owner differs; all of the second table if it has another number of slots.
    pub(super) slots: u64,
    /// Share of hashes whose owner differs, 0 to 1.
    pub(super) share: f64,
}

impl TableDiff {
    fn between(before: &TableMembers, after: &TableMembers, owners: BothOwners<'_>) -> Self {
        let slots = after.slots;
        let (before, after) = ((owners.before)(before), (owners.after)(after));
        // The hash is spread evenly over both tables. This many points of it hit every slot of each.
        let points = before.len().max(after.len()) as u64;
        let at = |table: &[IpAddr], point: u64| {
            let slot = (2 * point + 1) * table.len() as u64 / (2 * points.max(1));
            table.get(usize::try_from(slot).unwrap_or(usize::MAX)).copied()
        };
        let moved = (0..points).filter(|point| at(&before, *point) != at(&after, *point)).count();
        Self {
            slots: if before.len() == after.len() { moved as u64 } else { slots.into() },
            share: moved as f64 / points.max(1) as f64,
        }
    }
}

/// Computes the owners in the tables of the former configuration and of the next one.
#[derive(Clone, Copy)]
struct BothOwners<'o> {
    before: &'o Owners<'o>,
    after: &'o Owners<'o>,
}

/// The differences between the tables of two configurations.
pub struct TableDiffs<'o> {
    owners: BothOwners<'o>,
    known: HashMap<(TableMembers, TableMembers), TableDiff>,
}

impl<'o> TableDiffs<'o> {
    /// Compares the tables of each region of each pool that both configurations have, on all CPUs.
    pub fn new(old: &Configuration, new: &Configuration, owners: &'o Owners<'o>) -> Self {
        Self::with(old, new, owners, owners)
    }

    /// As [`Self::new`]; `after` computes the owners in the tables of the next configuration.
    pub fn with(
        old: &Configuration,
        new: &Configuration,
        before: &'o Owners<'o>,
        after: &'o Owners<'o>,
    ) -> Self {
        let owners = BothOwners { before, after };
        let mut pairs = Vec::new();
        for (_, before, after) in join(&old.pools, &new.pools) {
            let (Some(before), Some(after)) = (before, after) else { continue };
            if before == after {
                continue;
            }
            for (_, before, after) in join(&tables(before), &tables(after)) {
                if let (Some(before), Some(after)) = (before, after)
                    && before != after
                {
                    pairs.push((before.clone(), after.clone()));
                }
            }
        }
        let (next, pairs) = (AtomicUsize::new(0), &pairs);
        let compare = || {
            let mut diffs = Vec::new();
            while let Some((before, after)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let diff = TableDiff::between(before, after, owners);
                diffs.push(((before.clone(), after.clone()), diff));
            }
            diffs
        };
        let cpus = thread::available_parallelism().map_or(1, NonZero::get).min(pairs.len());
        let known = thread::scope(|scope| {
            let others: Vec<_> = (1..cpus).map(|_| scope.spawn(compare)).collect();
            let own = compare();
            let others = others.into_iter().filter_map(|other| other.join().ok());
            others.flatten().chain(own).collect()
        });
        Self { owners, known }
    }

    pub(super) fn get(&self, before: &TableMembers, after: &TableMembers) -> TableDiff {
        let key = (before.clone(), after.clone());
        let known = self.known.get(&key).copied();
        known.unwrap_or_else(|| TableDiff::between(before, after, self.owners))
    }
}

/// What the tables of a pool are built from, by region.
pub(super) fn tables(pool: &Pool) -> BTreeMap<&Name, TableMembers> {
    let mut regions: BTreeMap<&Name, TableMembers> = BTreeMap::new();
    for (address, backend) in pool.backends.iter().filter(|(_, backend)| backend.weight > 0) {
        let table = regions.entry(&backend.region).or_default();
        table.slots = pool.slots;
        table.members.push((*address, backend.weight));
    }
    regions
}
