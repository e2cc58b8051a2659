//! The rest of each list: an owner's slots dealt to the others, again and again.

use lb_common::abi::slot::{NO_RANK, RANKS_PER_SLOT};

use super::{
    MemberKey,
    hash::{DEAL, hash},
    ring::{Others, Ring},
};

/// A slot's list, owner first.
pub(super) type List = [u16; RANKS_PER_SLOT];

/// Deals the slots of owners.
pub(super) struct Dealer<'a> {
    keys: &'a [MemberKey],
    ring: Ring,
    lists: Vec<List>,
}

impl<'a> Dealer<'a> {
    /// A dealer for members, by rank; one weight at least is above 0.
    pub(super) fn new(keys: &'a [MemberKey], weights: &[u32]) -> Self {
        Self { keys, ring: Ring::new(weights), lists: Vec::new() }
    }

    /// The lists of an owner's `count` slots, in the order in which it took them.
    pub(super) fn lists_of(&mut self, owner: u16, count: usize) -> &[List] {
        self.lists.clear();
        self.lists.resize(count, [owner, NO_RANK, NO_RANK, NO_RANK]);
        deal(&mut self.lists, 1, self.keys, self.ring.whole(), DEAL);
        &self.lists
    }
}

/// Fills a deck's lists from a place on; they agree in all places before it. Of the member in the
/// last of these, `others` and `seed` do not know yet.
fn deal(lists: &mut [List], place: usize, keys: &[MemberKey], others: Others<'_>, seed: u64) {
    let Some(last) = lists.first().map(|list| list[place - 1]) else { return };
    let (others, seed) = (others.without(last), hash(seed, &keys[usize::from(last)]));
    if others.length() == 0 {
        return;
    }
    let points = Points::new(others.length(), lists.len() as u64, seed);
    for (list, point) in lists.iter_mut().zip(points) {
        list[place] = others.at(point);
    }
    if place + 1 < RANKS_PER_SLOT {
        // Points only rise, so the slots of one member stand together.
        for run in lists.chunk_by_mut(|a, b| a[place] == b[place]) {
            deal(run, place + 1, keys, others, seed);
        }
    }
}

/// `count` points at equal distances on a ring: `(j·length + s) / count`, by addition.
struct Points {
    point: u64,
    rest: u64,
    step: u64,
    step_rest: u64,
    count: u64,
}

impl Points {
    /// The phase `s` is the seed's part of the length.
    fn new(length: u64, count: u64, seed: u64) -> Self {
        let phase = ((u128::from(seed) * u128::from(length)) >> 64) as u64;
        if count == 1 {
            // In large groups nearly all: three divisions less.
            return Self { point: phase, rest: 0, step: 0, step_rest: 0, count };
        }
        Self {
            point: phase / count,
            rest: phase % count,
            step: length / count,
            step_rest: length % count,
            count,
        }
    }
}

impl Iterator for Points {
    type Item = u64;

    /// Never ends: lists end it.
    fn next(&mut self) -> Option<u64> {
        let point = self.point;
        self.point += self.step;
        self.rest += self.step_rest;
        if self.rest >= self.count {
            self.rest -= self.count;
            self.point += 1;
        }
        Some(point)
    }
}
