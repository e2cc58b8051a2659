use super::*;
use crate::Rate;

#[test]
fn slots_that_change_their_owner_are_counted() {
    // 1 2 1 2 1 2 1 becomes 1 2 4 1 2 4 1: slots 2 to 5 differ.
    assert_eq!(
        changed(|new| drop(web(new).backends.insert(ip(4), backend("eu")))),
        [
            entry(Kind::Changed, "pool web", &["backends in eu: 2 -> 3 (1 new)"], 4),
            entry(Kind::Added, "pool web: backend 10.0.0.4", &[], 0),
        ]
    );
    // 1 2 1 2 1 2 1 becomes 2 2 2 2 2 2 2.
    assert_eq!(
        changed(|new| drop(web(new).backends.remove(&ip(1)))),
        [
            entry(Kind::Changed, "pool web", &["backends in eu: 2 -> 1 (1 gone)"], 4),
            entry(Kind::Removed, "pool web: backend 10.0.0.1", &[], 0),
        ]
    );
}

#[test]
fn a_table_that_goes_counts_whole_and_one_that_comes_not() {
    assert_eq!(
        changed(|new| web(new).backends.get_mut(&ip(3)).unwrap().region = name("eu")),
        [
            entry(
                Kind::Changed,
                "pool web",
                &["backends in eu: 2 -> 3 (1 new)", "backends in us: 1 -> 0 (1 gone)"],
                4 + 7,
            ),
            entry(Kind::Changed, "pool web: backend 10.0.0.3", &["region: us -> eu"], 0),
        ]
    );
    assert_eq!(
        changed(|new| web(new).backends.get_mut(&ip(2)).unwrap().region = name("asia")),
        [
            entry(
                Kind::Changed,
                "pool web",
                &["backends in asia: 0 -> 1 (1 new)", "backends in eu: 2 -> 1 (1 gone)"],
                3,
            ),
            entry(Kind::Changed, "pool web: backend 10.0.0.2", &["region: eu -> asia"], 0),
        ]
    );
    assert_eq!(
        changed(|new| web(new).slots = 11),
        [entry(Kind::Changed, "pool web", &["slots: 7 -> 11"], 22)]
    );
}

#[test]
fn what_touches_no_table_moves_no_slot() {
    assert_eq!(
        changed(|new| {
            let backend = web(new).backends.get_mut(&ip(1)).unwrap();
            backend.admin_state = AdminState::Drain;
            backend.mtu = Some(1400);
            backend.max_connection_rate = Rate::new(0.5);
        }),
        [entry(
            Kind::Changed,
            "pool web: backend 10.0.0.1",
            &[
                "admin_state: active -> drain",
                "mtu: unset -> 1400",
                "max_connection_rate: unset -> 0.5/s",
            ],
            0,
        )]
    );
}

#[test]
fn a_weight_is_a_matter_of_the_table() {
    assert_eq!(
        changed(|new| web(new).backends.get_mut(&ip(1)).unwrap().weight = 3),
        [
            entry(Kind::Changed, "pool web", &["backends in eu: 2 -> 2 (1 of another weight)"], 0,),
            entry(Kind::Changed, "pool web: backend 10.0.0.1", &["weight: 1 -> 3"], 0),
        ]
    );
}

/// Whoever leaves leaves at least its own slots; the exact quotas of equal members are known.
#[test]
fn the_owners_that_packets_meet_have_exact_quotas() {
    let members: Vec<_> = (1..=4).map(|n| (ip(n), 1)).collect();
    let owners = owners(&TableMembers { members, slots: 65_537 });
    let count = |n| owners.iter().filter(|owner| **owner == ip(n)).count();
    assert_eq!([count(1), count(2), count(3), count(4)], [16_385, 16_384, 16_384, 16_384]);

    let mut old = configuration();
    let pool = web(&mut old);
    pool.slots = 65_537;
    pool.backends = (1..=4).map(|n| (ip(n), backend("eu"))).collect();
    let mut new = old.clone();
    web(&mut new).backends.remove(&ip(4));
    let diffs = TableDiffs::new(&old, &new, &super::owners);
    let moved = super::super::between(&old, &new, &diffs)[0].slots_moved;
    assert!((16_384..20_000).contains(&moved), "{moved}");
}
