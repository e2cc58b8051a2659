//! Shares, and what becomes of them when members fail.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{first_alive, group, lists, loads};
use crate::maglev::build;

proptest! {
    #[test]
    fn shares_are_within_a_slot_of_exact(
        weights in vec(prop_oneof![Just(1_u32), 0_u32..10, any::<u32>()], 1..60),
        slots in select(vec![61_u32, 251, 4_093]),
    ) {
        prop_assume!(weights.iter().any(|&weight| weight > 0));
        let shares = build(&group(weights.iter().copied()), slots).unwrap().shares();
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        prop_assert_eq!(shares.len(), weights.len());
        prop_assert_eq!(shares.iter().sum::<u32>(), slots);
        for (&share, &weight) in shares.iter().zip(&weights) {
            let exact = u128::from(slots) * u128::from(weight);
            let have = u128::from(share) * u128::from(total);
            prop_assert!(have.abs_diff(exact) < u128::from(total), "{share} for {weight} of {total}");
            prop_assert!(weight > 0 || share == 0);
        }
    }

    /// A list names each member once, nobody without weight, and ends only where members do.
    #[test]
    fn lists_are_as_long_as_they_can_be(
        weights in vec(prop_oneof![Just(0_u32), Just(1), 0_u32..100_000], 1..12),
        slots in select(vec![13_u32, 251, 4_093]),
    ) {
        let usable = weights.iter().filter(|&&weight| weight > 0).count();
        prop_assume!(usable > 0);
        let table = build(&group(weights.iter().copied()), slots).unwrap();
        for list in lists(&table) {
            prop_assert_eq!(list.len(), usable.min(4));
            for (place, &rank) in list.iter().enumerate() {
                prop_assert!(weights[usize::from(rank)] > 0);
                prop_assert!(!list[..place].contains(&rank), "{:?}", &list);
            }
        }
    }
}

#[test]
fn slots_of_equal_members_differ_by_at_most_one() {
    for members in [1, 2, 3, 10, 99, 100, 101, 1_000, 32_768, 65_534] {
        let shares = build(&group(vec![1; members]), 65_537).unwrap().shares();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(most - least <= 1, "{members} members: {least} to {most} slots");
    }
}

/// Every failure of one, two or three of ten moves no slot of a living member and burdens the living
/// evenly: in each deck of the failed (owner; owner and first; …) theirs differ by one at most.
#[test]
fn up_to_three_of_ten_fail() {
    let table = lists(&build(&group([1; 10]), 65_537).unwrap());
    let mut cases = 0;
    for failed in 1_u32..1 << 10 {
        // Decks: ordered ways to pick one, two or three of the failed.
        let decks = match failed.count_ones() {
            1 => 1,
            2 => 2 + 2,
            3 => 3 + 6 + 6,
            _ => continue,
        };
        cases += 1;
        let dead: Vec<bool> = (0..10).map(|n| failed & 1 << n != 0).collect();
        let mut gains = [0; 10];
        for list in &table {
            let chosen = usize::from(first_alive(list, &dead).unwrap());
            let owner = usize::from(list[0]);
            assert!(dead[owner] || chosen == owner);
            gains[chosen] += u32::from(chosen != owner);
        }
        let gains = || gains.iter().zip(&dead).filter(|(_, dead)| !**dead).map(|(gain, _)| *gain);
        let spread = gains().max().unwrap() - gains().min().unwrap();
        assert!(spread <= decks, "{dead:?}: gains differ by {spread}");
    }
    assert_eq!(cases, 10 + 45 + 120);
}

/// What a failed member leaves goes to the others by weight.
#[test]
fn a_failure_is_shared_by_weight() {
    let weights = [1, 2, 3, 4, 10, 0, 20];
    let table = build(&group(weights), 65_537).unwrap();
    let lists = lists(&table);
    for failed in 0..weights.len() {
        let dead: Vec<bool> = (0..weights.len()).map(|n| n == failed).collect();
        let before = table.shares();
        let rest = f64::from(weights.iter().sum::<u32>() - weights[failed]);
        for (n, load) in loads(&lists, &dead).into_iter().enumerate().filter(|&(n, _)| n != failed)
        {
            let gain = f64::from(load - before[n]);
            let exact = f64::from(before[failed]) * f64::from(weights[n]) / rest;
            assert!((gain - exact).abs() < 1.0, "{failed} fails: {n} gets {gain}, not {exact}");
        }
    }
}
