mod equals_reference;
mod even;
mod failures;
mod golden;
mod reference;
mod spec;
mod vectors;

use std::net::{IpAddr, Ipv4Addr};

use lb_common::abi::slot::{NO_RANK, SlotWord};

use super::{Member, MemberKey, Table};

/// Members with addresses that count up from 10.0.0.0, by weight.
fn group(weights: impl IntoIterator<Item = u32>) -> Vec<Member> {
    (0..).zip(weights).map(|(n, weight)| Member { key: key(n), weight }).collect()
}

fn key(n: u32) -> MemberKey {
    IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + n)).into()
}

/// The lists of a table, without its empty places.
fn lists(table: &Table) -> Vec<Vec<u16>> {
    let list = |&word: &u64| {
        (0..4).map(|place| SlotWord(word).rank(place)).take_while(|&rank| rank != NO_RANK).collect()
    };
    table.words().iter().map(list).collect()
}

/// The first of a list that lives.
fn first_alive(list: &[u16], dead: &[bool]) -> Option<u16> {
    list.iter().copied().find(|&rank| !dead[usize::from(rank)])
}

/// Slots that each member has when some are dead; `None` of a list counts for nobody.
fn loads(lists: &[Vec<u16>], dead: &[bool]) -> Vec<u32> {
    let mut loads = vec![0; dead.len()];
    for rank in lists.iter().filter_map(|list| first_alive(list, dead)) {
        loads[usize::from(rank)] += 1;
    }
    loads
}

/// `count` of `of` members, picked by a number.
fn some_dead(count: usize, of: usize, pick: u64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..of).collect();
    order.sort_by_key(|&n| xxhash_rust::xxh64::xxh64(&n.to_le_bytes(), pick));
    let mut dead = vec![false; of];
    order[..count].iter().for_each(|&n| dead[n] = true);
    dead
}
