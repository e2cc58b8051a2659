//! Standbys: eight members of a group that take a connection if no member of its slot's list can.

use std::net::IpAddr;

use lb_common::abi::{
    limits::STANDBYS_PER_GROUP,
    member::{Accepts, MemberWord},
    slot::StandbyWord,
};
use xxhash_rust::xxh64::xxh64;

use super::MemberWords;
use crate::reconcile::published::PublishedGroup;
use lb_model::maglev::MemberKey;

const STANDBYS: usize = STANDBYS_PER_GROUP as usize;

/// Score of a member as a standby. The live member with the highest score is chosen. So the standbys follow
/// from which members are live and are the same on all balancers, and a member that fails or returns changes
/// only its own standbys.
fn score(member: &IpAddr, place: usize) -> u64 {
    xxh64(&MemberKey::from(*member).0, place as u64)
}

/// The best rank for each standby.
fn choose<'a>(live: impl Iterator<Item = (u16, &'a IpAddr)>) -> [Option<u16>; STANDBYS] {
    let mut best = [None; STANDBYS];
    for (rank, address) in live {
        for (place, best) in best.iter_mut().enumerate() {
            let candidate = (score(address, place), rank);
            *best = (*best).max(Some(candidate));
        }
    }
    best.map(|best| best.map(|(_, rank)| rank))
}

impl MemberWords {
    /// Updates a group's standbys after a change of the members of these ranks.
    pub(super) fn update_standbys_after(&self, at: u32, ranks: &[u16]) {
        let Some(group) = self.groups.get(&at) else { return };
        let held = |place: usize| self.maps.standby(at, place as u32).rank();
        let is_held = |rank: u16| (0..STANDBYS).any(|place| held(place) == Some(rank));
        // A member that is not live is replaced, which compares all members, so once for all that changed.
        if ranks.iter().any(|rank| self.live(group, *rank).is_none() && is_held(*rank)) {
            return self.write_standbys(at, group);
        }
        for rank in ranks {
            let Some(member) = self.live(group, *rank) else { continue };
            for place in 0..STANDBYS {
                let scored = |rank| Some((score(&self.live(group, rank)?, place), rank));
                if held(place).and_then(scored) < Some((score(&member, place), *rank)) {
                    self.maps.set_standby(at, place as u32, StandbyWord::new(Some(*rank)));
                }
            }
        }
    }

    /// Updates the standbys of a published group.
    pub(super) fn update_standbys(&self, at: u32) {
        if let Some(group) = self.groups.get(&at) {
            self.write_standbys(at, group);
        }
    }

    /// Chooses a group's standbys among its live members.
    pub(super) fn write_standbys(&self, at: u32, group: &PublishedGroup) {
        let ranks = 0..group.members.len() as u16;
        let live: Vec<_> = ranks.filter_map(|rank| Some((rank, self.live(group, rank)?))).collect();
        let chosen = choose(live.iter().map(|(rank, address)| (*rank, address)));
        for (place, rank) in chosen.into_iter().enumerate() {
            let word = StandbyWord::new(rank);
            if self.maps.standby(at, place as u32) != word {
                self.maps.set_standby(at, place as u32, word);
            }
        }
    }

    /// The address of a member, if it can be a standby.
    fn live(&self, group: &PublishedGroup, rank: u16) -> Option<IpAddr> {
        let member = group.members.get(usize::from(rank))?;
        let word = self.maps.member(group.group.head.members + u32::from(rank))?;
        (is_live(word) && member.weighted != Some(false)).then_some(member.address)
    }
}

/// Whether new connections can go to a member.
fn is_live(word: MemberWord) -> bool {
    word.accepts() == Accepts::All && word.next_hop() != 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::btree_set, prelude::*};

    use super::*;

    fn chosen(live: &BTreeSet<u16>) -> [Option<u16>; STANDBYS] {
        let addresses: Vec<_> =
            live.iter().map(|n| IpAddr::from([10, 0, (n >> 8) as u8, *n as u8])).collect();
        choose(live.iter().copied().zip(&addresses))
    }

    #[test]
    fn without_live_members_there_is_no_standby() {
        assert_eq!(chosen(&BTreeSet::new()), [None; STANDBYS]);
        assert_eq!(chosen(&[7].into()), [Some(7); STANDBYS]);
    }

    proptest! {
        #[test]
        fn a_failed_member_changes_only_its_own_standbys(
            live in btree_set(0u16..1000, 2..200), which in any::<prop::sample::Index>(),
        ) {
            let before = chosen(&live);
            let failed = *which.get(&live.iter().copied().collect::<Vec<_>>());
            let mut rest = live.clone();
            rest.remove(&failed);
            let after = chosen(&rest);
            for (before, after) in before.into_iter().zip(after) {
                prop_assert!(after.is_some_and(|rank| rest.contains(&rank)));
                prop_assert!(before == after || before == Some(failed));
            }
        }
    }

    #[test]
    fn standbys_are_spread_over_the_members() {
        let all: BTreeSet<u16> = (0..1000).collect();
        let distinct: BTreeSet<_> = chosen(&all).into_iter().collect();
        assert!(distinct.len() >= STANDBYS - 1, "{distinct:?}");
    }
}
