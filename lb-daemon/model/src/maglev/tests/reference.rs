//! The algorithm again, as its description in the module's head reads: slow, with nothing clever.

use std::{cmp::Reverse, collections::BTreeMap};

use xxhash_rust::xxh64::xxh64;

use crate::maglev::Member;

/// The list of each slot.
pub(super) fn lists(members: &[Member], slots: u32) -> Vec<Vec<u16>> {
    let mut members = members.to_vec();
    members.sort_by_key(|member| member.key);
    let divisor = (1..=members.iter().map(|m| m.weight).max().unwrap())
        .rev()
        .find(|divisor| members.iter().all(|m| m.weight % divisor == 0))
        .unwrap();
    members.iter_mut().for_each(|m| m.weight /= divisor);

    let taken = owners(&members, &quotas(&members, slots), slots);
    let mut lists = vec![Vec::new(); slots as usize];
    for &(slot, rank) in &taken {
        lists[slot as usize].push(rank);
    }
    for _ in 0..3 {
        let mut decks: BTreeMap<Vec<u16>, Vec<u32>> = BTreeMap::new();
        for &(slot, _) in &taken {
            decks.entry(lists[slot as usize].clone()).or_default().push(slot);
        }
        for (before, deck) in decks {
            for (&slot, rank) in deck.iter().zip(dealt(&members, &before, deck.len())) {
                lists[slot as usize].push(rank);
            }
        }
    }
    lists
}

fn quotas(members: &[Member], slots: u32) -> Vec<u32> {
    let total: u128 = members.iter().map(|m| u128::from(m.weight)).sum();
    let exact = |m: &Member| u128::from(slots) * u128::from(m.weight);
    let mut quotas: Vec<u32> = members.iter().map(|m| (exact(m) / total) as u32).collect();
    while quotas.iter().sum::<u32>() < slots {
        // What is owed, in parts of a slot; who got one more already is owed less than nothing.
        let owed = |rank: usize| {
            exact(&members[rank]) as i128 - (u128::from(quotas[rank]) * total) as i128
        };
        let next = (0..members.len()).min_by_key(|&rank| (Reverse(owed(rank)), rank)).unwrap();
        quotas[next] += 1;
    }
    quotas
}

/// Slot and owner, in the order of turns.
fn owners(members: &[Member], quotas: &[u32], slots: u32) -> Vec<(u32, u16)> {
    let most = u64::from(*quotas.iter().max().unwrap());
    let mut turns: Vec<(u64, usize)> = Vec::new();
    for (rank, &quota) in quotas.iter().enumerate() {
        turns.extend((0..u64::from(quota)).map(|k| (k * most / u64::from(quota), rank)));
    }
    turns.sort();
    let preferences: Vec<Vec<u64>> = members
        .iter()
        .map(|m| {
            let size = u64::from(slots);
            let (offset, skip) = (xxh64(&m.key.0, 0) % size, xxh64(&m.key.0, 1) % (size - 1) + 1);
            (0..size).map(|n| (offset + n * skip) % size).collect()
        })
        .collect();
    let mut free = vec![true; slots as usize];
    let mut taken = Vec::new();
    for (_, rank) in turns {
        let slot = *preferences[rank].iter().find(|&&slot| free[slot as usize]).unwrap();
        free[slot as usize] = false;
        taken.push((slot as u32, rank as u16));
    }
    taken
}

/// To whom the slots of the members `before` go; nobody, if nobody is left.
fn dealt(members: &[Member], before: &[u16], count: usize) -> Vec<u16> {
    let seed = before.iter().fold(2, |seed, &rank| xxh64(&members[usize::from(rank)].key.0, seed));
    let others: Vec<u16> =
        (0..members.len() as u16).filter(|rank| !before.contains(rank)).collect();
    let weight = |rank: u16| u128::from(members[usize::from(rank)].weight);
    let length: u128 = others.iter().map(|&rank| weight(rank)).sum();
    if length == 0 {
        return Vec::new();
    }
    let phase = u128::from(seed) * length / (1 << 64);
    let holder = |point: u128| {
        let mut end = 0;
        let holds = |rank: &u16| {
            end += weight(*rank);
            end > point
        };
        others.iter().copied().find(holds).unwrap()
    };
    (0..count as u128).map(|j| holder((j * length + phase) / count as u128)).collect()
}
