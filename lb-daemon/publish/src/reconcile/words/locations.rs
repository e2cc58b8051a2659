use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
};

use crate::reconcile::published::PublishedGroup;

/// Where a member's word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberLocation {
    /// Index of its pool.
    pub(super) pool: u32,
    /// Index of its group.
    pub(super) group: u32,
    pub(super) rank: u16,
    /// Index of its word.
    pub(super) word: u32,
}

/// The words of each backend, in all versions of all pools, and the groups of each pool.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberLocations {
    members: HashMap<IpAddr, Vec<MemberLocation>>,
    /// Indices of groups by index of the pool.
    groups: HashMap<u32, BTreeSet<u32>>,
}

impl MemberLocations {
    pub(super) fn add(&mut self, index: u32, group: &PublishedGroup) {
        self.groups.entry(group.pool).or_default().insert(index);
        for (rank, member) in group.members.iter().enumerate() {
            let word = group.group.head.members + rank as u32;
            let location =
                MemberLocation { pool: group.pool, group: index, rank: rank as u16, word };
            self.members.entry(member.address).or_default().push(location);
        }
    }

    pub(super) fn remove(&mut self, index: u32, group: &PublishedGroup) {
        if let Some(groups) = self.groups.get_mut(&group.pool) {
            groups.remove(&index);
            if groups.is_empty() {
                self.groups.remove(&group.pool);
            }
        }
        for member in &group.members {
            let Some(locations) = self.members.get_mut(&member.address) else { continue };
            locations.retain(|location| location.group != index);
            if locations.is_empty() {
                self.members.remove(&member.address);
            }
        }
    }

    pub(super) fn contains(&self, address: &IpAddr) -> bool {
        self.members.contains_key(address)
    }

    pub(super) fn get(&self, address: &IpAddr) -> &[MemberLocation] {
        self.members.get(address).map_or(&[], Vec::as_slice)
    }

    /// Indices of the groups of all versions of a pool.
    pub(super) fn groups(&self, pool: u32) -> impl Iterator<Item = u32> {
        self.groups.get(&pool).into_iter().flatten().copied()
    }
}
