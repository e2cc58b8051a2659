//! Slots: preference lists of member ranks.

/// No member: an empty entry of a preference list.
pub const NO_RANK: u16 = 0xffff;
/// Ranks in a slot's list: the owner and three alternates.
pub const RANKS_PER_SLOT: usize = 4;

/// A slot's preference list: four ranks, the owner in the low 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWord(pub u64);

impl SlotWord {
    /// A word from its list, owner first.
    pub const fn new(ranks: [u16; RANKS_PER_SLOT]) -> Self {
        Self(
            ranks[0] as u64
                | (ranks[1] as u64) << 16
                | (ranks[2] as u64) << 32
                | (ranks[3] as u64) << 48,
        )
    }

    /// The rank at a place of the list (0 is the owner; places above 3 wrap).
    #[inline(always)]
    pub const fn rank(self, place: u32) -> u16 {
        (self.0 >> (16 * (place & 3))) as u16
    }
}

/// The owners of four slots, one after the other from the low end.
///
/// A table is an array of words: the lists of all slots, then the owners once more. Nearly every packet needs only the
/// owner. The owners of a table of the default size take 128 KiB, which stay in a core's cache; the 512 KiB of lists do
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnersWord(pub u64);

impl OwnersWord {
    /// Owners in a word.
    pub const SLOTS: u32 = 4;

    /// Index of the word with a slot's owner, in a table of `slots` slots.
    #[inline(always)]
    pub const fn index(slots: u32, slot: u32) -> u32 {
        slots.wrapping_add(slot / Self::SLOTS)
    }

    /// Rank of a slot's owner.
    #[inline(always)]
    pub const fn owner(self, slot: u32) -> u16 {
        (self.0 >> (16 * (slot % Self::SLOTS))) as u16
    }

    /// The words of owners that follow a table's lists.
    pub fn from_lists(lists: &[u64]) -> impl ExactSizeIterator<Item = u64> + '_ {
        lists.chunks(Self::SLOTS as usize).map(|lists| {
            let owners = lists.iter().rev();
            owners.fold(0, |word, list| word << 16 | SlotWord(*list).rank(0) as u64)
        })
    }
}

/// Words of a table of `slots` slots: its lists and its owners.
pub const fn table_words(slots: u32) -> u32 {
    slots + slots.div_ceil(OwnersWord::SLOTS)
}

/// A group's standby: a rank plus one, or zero for *none*. Changed in place by the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandbyWord(pub u64);

impl StandbyWord {
    /// A word that points at a member, or at none.
    pub const fn new(rank: Option<u16>) -> Self {
        match rank {
            Some(rank) => Self(rank as u64 + 1),
            None => Self(0),
        }
    }

    /// The rank, or `None`.
    #[inline(always)]
    pub const fn rank(self) -> Option<u16> {
        match self.0 {
            0 => None,
            rank => Some((rank - 1) as u16),
        }
    }
}

/// Index into `TABLES`, or, with the top bit set, into `SIZED_TABLES`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableRef(pub u32);

impl TableRef {
    const SIZED: u32 = 1 << 31;

    /// A table of the default size.
    pub const fn default_size(index: u32) -> Self {
        Self(index)
    }

    /// A table of another size.
    pub const fn sized(index: u32) -> Self {
        Self(index | Self::SIZED)
    }

    /// Whether it stands in `SIZED_TABLES`.
    #[inline(always)]
    pub const fn is_sized(self) -> bool {
        self.0 & Self::SIZED != 0
    }

    /// Index in its map.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.0 & !Self::SIZED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn owners_stand_behind_the_lists() {
        let lists: Vec<u64> =
            (0..7).map(|slot| SlotWord::new([100 + slot, 1, 2, NO_RANK]).0).collect();
        let table: Vec<u64> = lists.iter().copied().chain(OwnersWord::from_lists(&lists)).collect();
        assert_eq!(table.len(), table_words(7) as usize);
        assert_eq!(table[7..], [0x0067_0066_0065_0064, 0x006a_0069_0068]);
        for slot in 0..7 {
            let word = OwnersWord(table[OwnersWord::index(7, slot) as usize]);
            assert_eq!(u32::from(word.owner(slot)), 100 + slot);
        }
        assert_eq!(table_words(65_537), 65_537 + 16_385);
    }
}
