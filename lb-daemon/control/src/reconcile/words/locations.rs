use std::{collections::HashMap, net::IpAddr};

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

/// The words of each backend, in all versions of all pools.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberLocations(HashMap<IpAddr, Vec<MemberLocation>>);

impl MemberLocations {
    pub(super) fn add(&mut self, index: u32, group: &PublishedGroup) {
        for (rank, member) in group.members.iter().enumerate() {
            let word = group.group.head.members + rank as u32;
            let location =
                MemberLocation { pool: group.pool, group: index, rank: rank as u16, word };
            self.0.entry(member.address).or_default().push(location);
        }
    }

    pub(super) fn remove(&mut self, index: u32, group: &PublishedGroup) {
        for member in &group.members {
            let Some(locations) = self.0.get_mut(&member.address) else { continue };
            locations.retain(|location| location.group != index);
            if locations.is_empty() {
                self.0.remove(&member.address);
            }
        }
    }

    pub(super) fn contains(&self, address: &IpAddr) -> bool {
        self.0.contains_key(address)
    }

    pub(super) fn get(&self, address: &IpAddr) -> &[MemberLocation] {
        self.0.get(address).map_or(&[], Vec::as_slice)
    }
}
