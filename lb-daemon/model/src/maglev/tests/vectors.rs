//! Published tables that independent implementations agree on.

use serde_json::Value;
use xxhash_rust::xxh64::xxh64;

use crate::maglev::owners::{Owned, Permutation, quotas};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../testdata/maglev-vectors.json")).unwrap()
}

fn number(value: &Value) -> u64 {
    match value {
        Value::String(hexadecimal) => u64::from_str_radix(&hexadecimal[2..], 16).unwrap(),
        number => number.as_u64().unwrap(),
    }
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn permutations(value: &Value) -> Vec<Permutation> {
    let pair = |pair: &Value| match numbers(pair)[..] {
        [offset, skip] => Permutation { offset: offset as u32, skip: skip as u32 },
        _ => panic!("not an offset and a skip: {pair}"),
    };
    value.as_array().unwrap().iter().map(pair).collect()
}

/// The owner of each slot, for members of equal weight of which some are left out.
fn owners(permutations: &[Permutation], without: &[usize], slots: &Value) -> Vec<u64> {
    let slots = number(slots) as u32;
    let there: Vec<usize> = (0..permutations.len()).filter(|n| !without.contains(n)).collect();
    let theirs: Vec<Permutation> = there.iter().map(|&n| permutations[n]).collect();
    let owned = Owned::fill(&theirs, &quotas(&vec![1; theirs.len()], slots), slots);
    let mut owners = vec![u64::MAX; slots as usize];
    for (&n, slots) in there.iter().zip(owned.by_rank()) {
        slots.iter().for_each(|&slot| owners[slot as usize] = n as u64);
    }
    owners
}

#[test]
fn table_1_of_the_paper() {
    let vectors = &vectors()["paper_table1"];
    let permutations = permutations(&vectors["offset_skip"]);
    assert_eq!(owners(&permutations, &[], &vectors["M"]), numbers(&vectors["before"]));
    assert_eq!(owners(&permutations, &[1], &vectors["M"]), numbers(&vectors["after_removing_1"]));
}

#[test]
fn go_maglev() {
    let vectors = &vectors()["go_maglev"];
    let (permutations, slots) = (permutations(&vectors["offset_skip"]), number(&vectors["M"]));
    let from_hashes: Vec<_> = numbers(&vectors["siphash"])
        .iter()
        .map(|hash| Permutation::from_hashes(hash >> 32, hash & 0xffff_ffff, slots as u32))
        .collect();
    assert_eq!(permutations, from_hashes);
    assert_eq!(owners(&permutations, &[], &vectors["M"]), numbers(&vectors["table"]));
    assert_eq!(owners(&permutations, &[1], &vectors["M"]), numbers(&vectors["table_dead_1"]));
}

#[test]
fn envoy() {
    let vectors = &vectors()["envoy"];
    for case in ["Basic", "BasicWithHostName"] {
        let case = &vectors[case];
        let permutations: Vec<_> = case["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| {
                let published = numbers(&vectors["xxh64"][key.as_str().unwrap()]);
                let key = key.as_str().unwrap().as_bytes();
                assert_eq!(vec![xxh64(key, 0), xxh64(key, 1)], published);
                Permutation::from_hashes(published[0], published[1], number(&case["M"]) as u32)
            })
            .collect();
        assert_eq!(owners(&permutations, &[], &case["M"]), numbers(&case["table"]));
    }
}

/// The permutation of a member is the one that the published tables use, over its key.
#[test]
fn a_member_prefers_slots_by_its_key() {
    let key = super::key(1);
    assert_eq!(key.0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1]);
    assert_eq!(
        Permutation::for_member(&key, 65_537),
        Permutation {
            offset: (xxh64(&key.0, 0) % 65_537) as u32,
            skip: (xxh64(&key.0, 1) % 65_536 + 1) as u32
        }
    );
}
