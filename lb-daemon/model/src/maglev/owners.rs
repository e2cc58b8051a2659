//! The owner of each slot: Maglev's fill.

use std::cmp::Reverse;

use lb_common::abi::slot::NO_RANK;

use super::{
    MemberKey,
    spec::{OFFSET, SKIP, hash},
};

/// The order in which a member prefers slots: `offset`, `offset + skip` … modulo their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    /// The first one.
    pub(super) offset: u32,
    /// From one to the next; not 0, so that a prime number of slots is walked whole.
    pub(super) skip: u32,
}

impl Permutation {
    /// The permutation of a member among `slots` slots.
    pub(super) fn for_member(member: &MemberKey, slots: u32) -> Self {
        Self::from_hashes(hash(OFFSET, member), hash(SKIP, member), slots)
    }

    /// The permutation that two hashes make.
    pub(super) fn from_hashes(offset: u64, skip: u64, slots: u32) -> Self {
        let slots = u64::from(slots);
        Self { offset: (offset % slots) as u32, skip: (skip % (slots - 1)) as u32 + 1 }
    }

    /// The slot after `slot`.
    fn next(self, slot: u32, slots: u32) -> u32 {
        let to_the_end = slots - self.skip;
        if slot >= to_the_end { slot - to_the_end } else { slot + self.skip }
    }
}

/// The slots of each member, in the order in which it took them.
#[derive(Debug)]
pub(super) struct Owned {
    slots: Vec<u32>,
    ends: Vec<u32>,
}

impl Owned {
    /// Gives each member as many slots as its quota; the quotas sum to `slots`.
    pub(super) fn fill(permutations: &[Permutation], quotas: &[u32], slots: u32) -> Self {
        let mut taken = vec![0_u64; slots as usize / 64 + 1];
        let mut owned = vec![0; slots as usize];
        let mut ends = begins(quotas);
        let mut next: Vec<u32> = permutations.iter().map(|p| p.offset).collect();
        for rank in turns(quotas).into_iter().map(usize::from) {
            let permutation = permutations[rank];
            let mut slot = next[rank];
            while taken[slot as usize / 64] & 1 << (slot % 64) != 0 {
                slot = permutation.next(slot, slots);
            }
            taken[slot as usize / 64] |= 1 << (slot % 64);
            next[rank] = slot;
            owned[ends[rank] as usize] = slot;
            ends[rank] += 1;
        }
        Self { slots: owned, ends }
    }

    /// The rank of the owner of each slot.
    pub(super) fn ranks(&self) -> Vec<u16> {
        let mut ranks = vec![NO_RANK; self.slots.len()];
        for (owner, slots) in self.by_rank().enumerate() {
            slots.iter().for_each(|slot| ranks[*slot as usize] = owner as u16);
        }
        ranks
    }

    /// The slots of each member, by rank.
    pub(super) fn by_rank(&self) -> impl Iterator<Item = &[u32]> {
        let begins = std::iter::once(&0).chain(&self.ends);
        begins.zip(&self.ends).map(|(&begin, &end)| &self.slots[begin as usize..end as usize])
    }
}

/// Where each member's slots begin.
fn begins(quotas: &[u32]) -> Vec<u32> {
    quotas.iter().scan(0, |end, &quota| Some(std::mem::replace(end, *end + quota))).collect()
}

/// The ranks in the order of their turns: turn `k` of a quota `q` is in round `k·qmax / q`, and a
/// round goes by rank. As many entries as the quotas sum to.
fn turns(quotas: &[u32]) -> Vec<u16> {
    let rounds = quotas.iter().copied().max().unwrap_or(0);
    // A counting sort by round, stable in rank: first where each round begins, then who is in it.
    let mut place = vec![0_u32; rounds as usize];
    for &quota in quotas {
        rounds_of(quota, rounds).for_each(|round| place[round] += 1);
    }
    let mut total = 0;
    for begin in &mut place {
        total += std::mem::replace(begin, total);
    }
    let mut turns = vec![0; total as usize];
    for (rank, &quota) in quotas.iter().enumerate() {
        for round in rounds_of(quota, rounds) {
            turns[place[round] as usize] = rank as u16;
            place[round] += 1;
        }
    }
    turns
}

/// `k·rounds / quota` for `k` in `0..quota`, by addition: a division for each turn would cost more
/// than the turn.
fn rounds_of(quota: u32, rounds: u32) -> impl Iterator<Item = usize> {
    let divisor = quota.max(1);
    let (step, step_rest) = (rounds / divisor, rounds % divisor);
    let (mut round, mut rest) = (0, 0);
    (0..quota).map(move |_| {
        let this = round as usize;
        (round, rest) = (round + step, rest + step_rest);
        // Both terms are below the divisor, which is at most the number of slots.
        if rest >= divisor {
            (round, rest) = (round + 1, rest - divisor);
        }
        this
    })
}

/// Quotas by largest remainder; they sum to `slots`. Ties go to the lower ranks.
///
/// At least one weight is above 0, and there are fewer than 2^16, so that no sum overflows.
pub(super) fn quotas(weights: &[u32], slots: u32) -> Vec<u32> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let exact = |weight: u32| u64::from(slots) * u64::from(weight);
    let mut quotas: Vec<u32> = weights.iter().map(|&w| (exact(w) / total) as u32).collect();
    let missing = slots - quotas.iter().sum::<u32>();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|&rank| Reverse(exact(weights[rank]) % total));
    for &rank in &by_remainder[..missing as usize] {
        quotas[rank] += 1;
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_members_take_turns() {
        assert_eq!(turns(&[3, 2, 2]), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_light_member_waits() {
        // Quota 2 of 5 rounds: rounds 0 and 2 (2.5). Quota 3: rounds 0, 1 (1.67) and 3 (3.33).
        assert_eq!(turns(&[2, 5, 0, 3]), [0, 1, 3, 1, 3, 0, 1, 1, 3, 1]);
    }

    #[test]
    fn by_hand() {
        assert_eq!(quotas(&[1], 7), [7]);
        assert_eq!(quotas(&[1, 1, 1], 7), [3, 2, 2]);
        // 7 of 10: 0.7, 1.4, 2.1, 2.8.
        assert_eq!(quotas(&[1, 2, 3, 4], 7), [1, 1, 2, 3]);
        // 5 of 8: 0.625, 1.875, 0, 2.5.
        assert_eq!(quotas(&[1, 3, 0, 4], 5), [1, 2, 0, 2]);
        assert_eq!(quotas(&[u32::MAX, 1], 65_537), [65_537, 0]);
    }
}
