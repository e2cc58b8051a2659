//! The rest of each list: an owner's slots dealt to the others, again and again.

use lb_common::abi::slot::{NO_RANK, RANKS_PER_SLOT};

use super::{
    MemberKey,
    spec::{DEAL, hash},
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

/// The intervals of all members, and a guide to find the one that holds a point.
struct Ring {
    /// Where each member's interval ends, by rank.
    ends: Vec<u64>,
    /// Of the first point of each bucket of `2^shift` points: the rank. One entry more at the end.
    guide: Vec<u16>,
    shift: u32,
}

impl Ring {
    /// Lays out weights, of which one at least is above 0.
    pub(super) fn new(weights: &[u32]) -> Self {
        let ends: Vec<u64> = weights
            .iter()
            .scan(0, |end, &weight| {
                *end += u64::from(weight);
                Some(*end)
            })
            .collect();
        let length = ends.last().copied().unwrap_or(0);
        // About two buckets a member: a search in one is a step or two.
        let mut shift = 0;
        while length >> shift > 2 * weights.len() as u64 {
            shift += 1;
        }
        let guide = (0..=(length >> shift) + 1)
            .map(|bucket| rank_at(&ends, 0, weights.len() - 1, bucket << shift))
            .collect();
        Self { ends, guide, shift }
    }

    /// The rank whose interval holds a point.
    fn at(&self, point: u64) -> u16 {
        let bucket = (point >> self.shift) as usize;
        let (low, high) = (self.guide[bucket], self.guide[bucket + 1]);
        rank_at(&self.ends, low.into(), high.into(), point)
    }

    /// The interval of a rank: its begin and its length.
    fn interval(&self, rank: u16) -> (u64, u64) {
        let rank = usize::from(rank);
        let begin = if rank == 0 { 0 } else { self.ends[rank - 1] };
        (begin, self.ends[rank] - begin)
    }

    /// The ring with nobody taken out.
    pub(super) fn whole(&self) -> Others<'_> {
        let length = self.ends.last().copied().unwrap_or(0);
        Others { ring: self, gaps: [(u64::MAX, 0); GAPS], length }
    }
}

/// The first of the ranks `low..=high` whose interval ends after a point, or `high`.
fn rank_at(ends: &[u64], low: usize, high: usize, point: u64) -> u16 {
    (low + ends[low..high].partition_point(|&end| end <= point)) as u16
}

/// Members that stand before the last place of a list.
const GAPS: usize = RANKS_PER_SLOT - 1;

/// A ring without some members; the rest have moved together.
#[derive(Clone, Copy)]
struct Others<'a> {
    ring: &'a Ring,
    /// Begin and length, in order of begin, of what was taken out; unused ones come last.
    gaps: [(u64, u64); GAPS],
    length: u64,
}

impl Others<'_> {
    /// The sum of the weights that are left.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Takes one more member out, up to three.
    pub(super) fn without(mut self, rank: u16) -> Self {
        let mut gap = self.ring.interval(rank);
        self.length -= gap.1;
        for other in &mut self.gaps {
            (*other, gap) = if gap.0 < other.0 { (gap, *other) } else { (*other, gap) };
        }
        self
    }

    /// The rank whose interval holds a point below [`length`](Self::length).
    pub(super) fn at(&self, mut point: u64) -> u16 {
        for (begin, length) in self.gaps {
            point += if point >= begin { length } else { 0 };
        }
        self.ring.at(point)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a ring with every point written out.
        #[test]
        fn finds_every_point(
            weights in prop::collection::vec(prop_oneof![0_u32..4, 0_u32..200], 1..40),
            taken in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            prop_assume!(weights.iter().any(|&w| w > 0));
            let mut points: Vec<u16> = weights.iter().enumerate()
                .flat_map(|(rank, &w)| std::iter::repeat_n(rank as u16, w as usize))
                .collect();
            let ring = Ring::new(&weights);
            let mut others = ring.whole();
            for index in taken {
                if points.is_empty() {
                    break;
                }
                let rank = *index.get(&points);
                points.retain(|&other| other != rank);
                others = others.without(rank);
                if others.gaps[GAPS - 1].1 > 0 {
                    break;
                }
            }
            prop_assert_eq!(others.length(), points.len() as u64);
            for (point, &rank) in points.iter().enumerate() {
                prop_assert_eq!(others.at(point as u64), rank, "point {}", point);
            }
        }
    }

    #[test]
    fn the_largest_weights_fit() {
        let ring = Ring::new(&[u32::MAX; 65_534]);
        let length = ring.whole().length();
        assert_eq!(length, u64::from(u32::MAX) * 65_534);
        assert_eq!(ring.whole().at(length - 1), 65_533);
        assert_eq!(ring.whole().without(65_533).at(length - 1 - u64::from(u32::MAX)), 65_532);
        assert_eq!(ring.whole().without(0).at(0), 1);
    }
}
