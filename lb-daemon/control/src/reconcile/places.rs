//! Where the words of a backend's members are, so that a change of health or next hop finds them at
//! once whatever the size of the pool.

use std::{collections::HashMap, net::IpAddr};

use super::published::Published;

/// Where a member's word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of its pool.
    pub(super) pool: u32,
    /// Index of its group.
    pub(super) group: u32,
    /// Its rank there.
    pub(super) rank: u16,
    /// Index of its word.
    pub(super) word: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Places(HashMap<IpAddr, Vec<Place>>);

impl Places {
    /// The places of all members.
    pub(super) fn of(published: &Published) -> Self {
        let mut places: HashMap<IpAddr, Vec<Place>> = HashMap::new();
        for (&group, of) in &published.groups {
            for (rank, member) in of.members.iter().enumerate() {
                let word = of.group.head.members + rank as u32;
                let place = Place { pool: of.pool, group, rank: rank as u16, word };
                places.entry(member.address).or_default().push(place);
            }
        }
        Self(places)
    }

    /// Whether some version of some pool has an address.
    pub(super) fn has(&self, address: &IpAddr) -> bool {
        self.0.contains_key(address)
    }

    /// Those of a backend, in all versions of all pools.
    pub(super) fn of_backend(&self, address: &IpAddr) -> &[Place] {
        self.0.get(address).map_or(&[], Vec::as_slice)
    }
}
