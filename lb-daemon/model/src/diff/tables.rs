//! The effect of changed members, weights or slots on a pool's tables.

use std::{collections::BTreeMap, net::IpAddr};

use lb_common::abi::slot::SlotWord;

use super::join;
use crate::{
    Name, Pool,
    maglev::{Member, MemberKey, TableSpec},
};

/// Computes the owner of each slot of a table, from members (address and weight) and a number of slots.
pub type Owners<'a> = dyn Fn(&[(IpAddr, u32)], u32) -> Vec<IpAddr> + 'a;

/// The owners in the packet path.
pub fn owners(members: &[(IpAddr, u32)], slots: u32) -> Vec<IpAddr> {
    let members: Vec<_> = members
        .iter()
        .map(|(address, weight)| Member { key: (*address).into(), weight: *weight })
        .collect();
    // A valid configuration always has a table.
    let Ok(spec) = TableSpec::new(&members, slots) else { return Vec::new() };
    let keys: Vec<IpAddr> = spec.keys().iter().map(MemberKey::address).collect();
    let owner = |word: &u64| SlotWord(*word).rank(0);
    let table = spec.build();
    table.words().iter().filter_map(|word| keys.get(usize::from(owner(word))).copied()).collect()
}

#[derive(Default)]
pub(super) struct Moved {
    /// Slots whose owner differs: all slots of a removed table, none of a new one.
    pub(super) slots: u64,
    /// One line for each region whose members differ.
    pub(super) details: Vec<String>,
}

/// Members of a table with their weights.
type Members = BTreeMap<IpAddr, u32>;

/// Compares the tables of two versions of a pool.
pub(super) fn moved(old: &Pool, new: &Pool, owners: &Owners<'_>) -> Moved {
    let mut moved = Moved::default();
    let none = Members::new();
    for (region, before, after) in join(&tables(old), &tables(new)) {
        if before != after {
            let members = (before.unwrap_or(&none), after.unwrap_or(&none));
            moved.details.push(format!("backends in {region}: {}", sizes(members.0, members.1)));
        } else if old.slots == new.slots {
            continue;
        }
        moved.slots += match (before, after) {
            (None, _) => 0,
            (Some(_), None) => old.slots.into(),
            (Some(_), Some(_)) if old.slots != new.slots => new.slots.into(),
            (Some(before), Some(after)) => differing(before, after, new.slots, owners),
        };
    }
    moved
}

/// Weighted members by region: what tables are built from.
fn tables(pool: &Pool) -> BTreeMap<&Name, Members> {
    let mut regions: BTreeMap<&Name, Members> = BTreeMap::new();
    for (address, backend) in pool.backends.iter().filter(|(_, backend)| backend.weight > 0) {
        regions.entry(&backend.region).or_default().insert(*address, backend.weight);
    }
    regions
}

/// `2 -> 3 (2 new, 1 gone, 1 of another weight)`
fn sizes(before: &Members, after: &Members) -> String {
    let [mut new, mut gone, mut reweighted] = [0; 3];
    for (_, before, after) in join(before, after) {
        match (before, after) {
            (None, _) => new += 1,
            (_, None) => gone += 1,
            (before, after) => reweighted += u32::from(before != after),
        }
    }
    let parts = [(new, "new"), (gone, "gone"), (reweighted, "of another weight")];
    let parts: Vec<_> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    format!("{} -> {} ({})", before.len(), after.len(), parts.join(", "))
}

fn differing(before: &Members, after: &Members, slots: u32, owners: &Owners<'_>) -> u64 {
    let owners = |members: &Members| {
        let members: Vec<_> = members.iter().map(|(address, weight)| (*address, *weight)).collect();
        owners(&members, slots)
    };
    let (before, after) = (owners(before), owners(after));
    before.iter().zip(&after).filter(|(before, after)| before != after).count() as u64
}
