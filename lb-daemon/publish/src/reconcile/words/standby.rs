//! Standbys: eight members of a group that take a connection if no member of its slot's list can. A member that gives some of
//! its new connections away might refuse one, so it is a standby only if there is no other.

use std::net::IpAddr;

use lb_common::abi::{
    limits::STANDBYS_PER_GROUP,
    member::{Accepts, FULL_RAMP, MemberWord},
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

/// A member that can be a standby.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    rank: u16,
    address: IpAddr,
    /// Whether it takes all new connections of its slots.
    is_whole: bool,
}

impl Candidate {
    /// The candidate with the highest one is chosen.
    fn merit(&self, place: usize) -> (bool, u64, u16) {
        (self.is_whole, score(&self.address, place), self.rank)
    }
}

/// The best rank for each standby.
fn choose(live: &[Candidate]) -> [Option<u16>; STANDBYS] {
    std::array::from_fn(|place| {
        let best = live.iter().max_by_key(|candidate| candidate.merit(place));
        best.map(|candidate| candidate.rank)
    })
}

impl MemberWords {
    /// Updates a group's standbys after a change of the members of these ranks.
    pub(super) fn update_standbys_after(&self, at: u32, ranks: &[u16]) {
        let Some(group) = self.groups.get(&at) else { return };
        let held = |place: usize| self.maps.standby(at, place as u32).rank();
        let is_held = |rank: u16| (0..STANDBYS).any(|place| held(place) == Some(rank));
        // One that is no longer live or whole may be replaced, which compares all members, so once for all that changed.
        let is_worse = |rank: u16| !self.live(group, rank).is_some_and(|it| it.is_whole);
        if ranks.iter().any(|rank| is_worse(*rank) && is_held(*rank)) {
            return self.write_standbys(at, group);
        }
        for rank in ranks {
            let Some(candidate) = self.live(group, *rank) else { continue };
            for place in 0..STANDBYS {
                let merit = |rank| Some(self.live(group, rank)?.merit(place));
                if held(place).and_then(merit) < Some(candidate.merit(place)) {
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
        let live: Vec<_> = ranks.filter_map(|rank| self.live(group, rank)).collect();
        let chosen = choose(&live);
        for (place, rank) in chosen.into_iter().enumerate() {
            let word = StandbyWord::new(rank);
            if self.maps.standby(at, place as u32) != word {
                self.maps.set_standby(at, place as u32, word);
            }
        }
    }

    /// A member, if it can be a standby.
    fn live(&self, group: &PublishedGroup, rank: u16) -> Option<Candidate> {
        let member = group.members.get(usize::from(rank))?;
        let word = self.maps.member(group.group.head.members + u32::from(rank))?;
        (is_live(word) && member.weighted != Some(false)).then_some(Candidate {
            rank,
            address: member.address,
            is_whole: word.ramp() == FULL_RAMP,
        })
    }
}

/// Whether new connections can go to a member.
fn is_live(word: MemberWord) -> bool {
    word.accepts() == Accepts::All && word.has_next_hop()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::btree_set, prelude::*};

    use super::*;

    fn chosen(live: &BTreeSet<u16>) -> [Option<u16>; STANDBYS] {
        choose(&live.iter().map(|rank| candidate(*rank, true)).collect::<Vec<_>>())
    }

    fn candidate(rank: u16, is_whole: bool) -> Candidate {
        let address = IpAddr::from([10, 0, (rank >> 8) as u8, rank as u8]);
        Candidate { rank, address, is_whole }
    }

    #[test]
    fn one_that_gives_connections_away_is_a_standby_only_if_all_do() {
        let some = [candidate(1, false), candidate(2, true), candidate(3, false)];
        assert_eq!(choose(&some), [Some(2); STANDBYS]);
        let none = [candidate(1, false), candidate(3, false)];
        assert_eq!(choose(&none), chosen(&[1, 3].into()));
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
