//! The owner of each slot: Maglev's fill.

use super::{MemberKey, hash, turns::turns};

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
    pub(super) fn of(member: &MemberKey, slots: u32) -> Self {
        Self::from_hashes(hash::hash(hash::OFFSET, member), hash::hash(hash::SKIP, member), slots)
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
