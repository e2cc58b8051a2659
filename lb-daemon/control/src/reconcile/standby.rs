//! Standbys: the eight members of a group that take what a flow's lists have nobody for.

use std::net::IpAddr;

use lb_common::abi::limits::STANDBYS_PER_GROUP;
use xxhash_rust::xxh64::xxh64;

use lb_model::maglev::MemberKey;

/// Standbys of a group.
pub(super) const STANDBYS: usize = STANDBYS_PER_GROUP as usize;

/// How much a member is worth as the standby of a place: the live member of the highest score is
/// the one. So each is a function of who is alive, the same on all balancers, and a member that
/// dies or comes back changes only the standbys that are its own.
pub(super) fn score(member: &IpAddr, place: usize) -> u64 {
    xxh64(&MemberKey::from(*member).0, place as u64)
}

/// The best of some ranks, by their addresses, for each place.
pub(super) fn choose<'a>(live: impl Iterator<Item = (u16, &'a IpAddr)>) -> [Option<u16>; STANDBYS] {
    let mut best = [None; STANDBYS];
    for (rank, address) in live {
        for (place, best) in best.iter_mut().enumerate() {
            let candidate = (score(address, place), rank);
            *best = (*best).max(Some(candidate));
        }
    }
    best.map(|best| best.map(|(_, rank)| rank))
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
    fn nobody_alive_is_nobody_standing_by() {
        assert_eq!(chosen(&BTreeSet::new()), [None; STANDBYS]);
        assert_eq!(chosen(&[7].into()), [Some(7); STANDBYS]);
    }

    proptest! {
        #[test]
        fn a_death_moves_only_the_dead_members_places(
            live in btree_set(0u16..1000, 2..200), which in any::<prop::sample::Index>(),
        ) {
            let before = chosen(&live);
            let dead = *which.get(&live.iter().copied().collect::<Vec<_>>());
            let mut rest = live.clone();
            rest.remove(&dead);
            let after = chosen(&rest);
            for (before, after) in before.into_iter().zip(after) {
                prop_assert!(after.is_some_and(|rank| rest.contains(&rank)));
                prop_assert!(before == after || before == Some(dead));
            }
        }
    }

    #[test]
    fn places_are_spread_over_the_members() {
        let all: BTreeSet<u16> = (0..1000).collect();
        let distinct: BTreeSet<_> = chosen(&all).into_iter().collect();
        assert!(distinct.len() >= STANDBYS - 1, "{distinct:?}");
    }
}
