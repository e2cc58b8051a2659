//! Members as intervals, as long as their weights, laid end to end.

/// The intervals of all members, and a guide to find the one that holds a point.
pub(super) struct Ring {
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
const GAPS: usize = lb_common::abi::slot::RANKS_PER_SLOT - 1;

/// A ring without some members; the rest have moved together.
#[derive(Clone, Copy)]
pub(super) struct Others<'a> {
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
