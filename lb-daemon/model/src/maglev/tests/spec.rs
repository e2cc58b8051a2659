use std::net::IpAddr;

use lb_common::abi::slot::SlotWord;

use super::{group, key};
use crate::maglev::{BuildError, MAX_MEMBERS, Member, MemberKey, TableSpec};

fn error(members: &[Member], slots: u32) -> BuildError {
    TableSpec::new(members, slots).unwrap_err()
}

#[test]
fn what_is_refused() {
    let three = group([1, 1, 1]);
    for slots in [0, 1, 4, 65_536, 65_535, 4_294_967_295] {
        assert_eq!(error(&three, slots), BuildError::NotPrime(slots));
    }
    assert_eq!(error(&[], 7), BuildError::NoWeight);
    assert_eq!(error(&group([0, 0]), 7), BuildError::NoWeight);
    let slots_2 = BuildError::MoreMembersThanSlots { members: 3, slots: 2 };
    assert_eq!(error(&three, 2), slots_2);
    assert!(TableSpec::new(&three, 3).is_ok());
    let [a, b, _] = three[..] else { panic!() };
    let duplicate = BuildError::Duplicate("10.0.0.0".parse().unwrap());
    assert_eq!(error(&[a, b, Member { weight: 7, ..a }], 7), duplicate);
}

#[test]
fn ranks_end_below_the_empty_one() {
    let most = group(vec![1; MAX_MEMBERS]);
    assert_eq!(most.len(), 65_534);
    assert!(TableSpec::new(&most, 65_537).is_ok());
    let more = group(vec![1; MAX_MEMBERS + 1]);
    assert_eq!(error(&more, 65_537), BuildError::TooManyMembers(65_535));
}

#[test]
fn errors_name_what_is_wrong() {
    let text = |error: BuildError| error.to_string();
    assert_eq!(text(BuildError::NotPrime(8)), "8 slots: not a prime");
    assert_eq!(text(BuildError::NoWeight), "members: none has a weight above 0");
    let too_many = "70000 members: at most 65534 are allowed";
    assert_eq!(text(BuildError::TooManyMembers(70_000)), too_many);
    assert_eq!(
        text(BuildError::MoreMembersThanSlots { members: 8, slots: 7 }),
        "8 members: more than the table's 7 slots"
    );
    assert_eq!(text(error(&[group([1])[0]; 2], 7)), "member 10.0.0.0: given twice");
}

#[test]
fn ranks_go_by_bytes_and_not_by_family() {
    let addresses: Vec<IpAddr> = ["2001:db8::1", "::1", "192.0.2.1", "10.0.0.9", "64:ff9b::1"]
        .map(|text| text.parse().unwrap())
        .into();
    let members: Vec<_> = addresses.iter().map(|&a| Member { key: a.into(), weight: 1 }).collect();
    let spec = TableSpec::new(&members, 7).unwrap();
    let by_rank: Vec<_> = spec.keys().iter().map(|key| key.address().to_string()).collect();
    assert_eq!(by_rank, ["::1", "10.0.0.9", "192.0.2.1", "64:ff9b::1", "2001:db8::1"]);
    assert_eq!(spec.rank(&MemberKey::from(addresses[0])), Some(4));
    assert_eq!(spec.rank(&key(1)), None);
}

#[test]
fn an_id_is_of_everything_the_table_depends_on() {
    let spec = |members: &[Member], slots| TableSpec::new(members, slots).unwrap();
    let ids = [
        spec(&group([1, 1, 1]), 251),
        spec(&group([1, 1, 1]), 257),
        spec(&group([1, 1, 2]), 251),
        spec(&group([1, 2, 1]), 251),
        spec(&group([1, 1, 1, 0]), 251),
        spec(&group([1, 1, 1, 1])[1..], 251),
    ]
    .map(|spec| spec.id());
    for (n, id) in ids.iter().enumerate() {
        assert!(!ids[..n].contains(id), "{n}");
    }
    assert_eq!(ids[0], spec(&group([5, 5, 5]), 251).id());
    assert_eq!(ids[0].to_string().len(), 32);
}

#[test]
fn the_owner_of_a_slot_is_the_first_of_its_list() {
    for (weights, slots) in [(vec![1, 1, 1], 7), (vec![0, 5, 2, 0], 251), (vec![3; 50], 1_009)] {
        let spec = TableSpec::new(&group(weights), slots).unwrap();
        let table = spec.build();
        let first = |list: &u64| SlotWord(*list).rank(0);
        assert_eq!(spec.owners(), table.words().iter().map(first).collect::<Vec<_>>());
    }
}
