use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::select,
};

use super::{group, key, lists, reference};
use crate::maglev::{Member, MemberKey, TableSpec, build};

/// Few heavy and many light ones, and some without weight.
fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1_u32..4, 2 => 0_u32..100, 1 => any::<u32>(), 1 => Just(0)]
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    let address = prop_oneof![
        any::<[u8; 16]>().prop_map(MemberKey),
        (0_u32..40).prop_map(key), // neighbours
    ];
    btree_map(address, weight(), 1..14)
        .prop_map(|map| map.into_iter().map(|(key, weight)| Member { key, weight }).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn small_groups(
        members in members().prop_shuffle(),
        slots in select(vec![2_u32, 3, 5, 7, 13, 31, 61, 127, 251]),
    ) {
        prop_assume!(members.len() <= slots as usize && members.iter().any(|m| m.weight > 0));
        // The reference tries every divisor: keep the largest weight small, not the ratio.
        let scale = members.iter().map(|m| m.weight).max().unwrap() / 100_000 + 1;
        let members: Vec<_> =
            members.into_iter().map(|m| Member { weight: m.weight.div_ceil(scale), ..m }).collect();
        let table = build(&members, slots).unwrap();
        prop_assert_eq!(lists(&table), reference::lists(&members, slots));
    }

    #[test]
    fn order_and_common_factors_do_not_matter(
        (sorted, shuffled) in members().prop_flat_map(|m| (Just(m.clone()), Just(m).prop_shuffle())),
        factor: u32,
    ) {
        prop_assume!(sorted.iter().any(|m| m.weight > 0));
        let heaviest = sorted.iter().map(|m| m.weight).max().unwrap();
        let factor = 1 + factor % (u32::MAX / heaviest);
        let scaled: Vec<_> =
            shuffled.iter().map(|m| Member { weight: m.weight * factor, ..*m }).collect();
        let (one, other) = (spec(&sorted), spec(&scaled));
        prop_assert_eq!(one.id(), other.id());
        prop_assert_eq!(one.build(), other.build());
    }

    /// Members come, go and change weight; the table is that of who is there in the end.
    #[test]
    fn history_does_not_matter(events in vec((0_u32..20, prop::option::of(1_u32..5)), 1..60)) {
        let mut live: Vec<Member> = Vec::new();
        for (n, weight) in &events {
            live.retain(|member| member.key != key(*n));
            live.extend(weight.map(|weight| Member { key: key(*n), weight }));
        }
        let mut last: Vec<Option<u32>> = vec![None; 20];
        events.iter().for_each(|&(n, weight)| last[n as usize] = weight);
        let expected: Vec<_> = (0_u32..).zip(last)
            .filter_map(|(n, weight)| Some(Member { key: key(n), weight: weight? }))
            .collect();
        prop_assert_eq!(build(&live, 251), build(&expected, 251));
    }
}

fn spec(members: &[Member]) -> TableSpec {
    TableSpec::new(members, 251).unwrap()
}

#[test]
fn a_group_of_a_hundred() {
    let members = group((0..100).map(|n| n % 7));
    let table = build(&members, 4_093).unwrap();
    assert_eq!(lists(&table), reference::lists(&members, 4_093));
}
