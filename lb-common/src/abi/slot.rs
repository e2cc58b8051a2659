//! Slots: preference lists of member ranks; and the tables that they make up, which stand in chunks.

use super::limits::CHUNK_WORDS;

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

/// What of a table its place does not say: a [`super::pool::GroupHead`] has it.
///
/// A table is a run of words: [`TABLE_HEAD`] words of head, the list of each slot ([`SlotWord`]), then the owners once
/// more, closely packed. Nearly every packet needs only the owner, and the fewer bits a rank has, the more tables stay
/// in a core's cache: the owners of 65,537 slots take 32 KiB up to [`Self::NIBBLE_MEMBERS`] members, whose ranks have
/// four bits, and 64 KiB up to [`Self::BYTE_MEMBERS`]; the lists take 512 KiB. Above, a rank has two bytes. Every slot
/// has an owner, so no value has to mean *none*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Slots, a prime.
    pub slots: u32,
    /// Members of the groups that use it.
    pub members: u32,
}

impl TableShape {
    /// Most members whose ranks have four bits among the owners.
    pub const NIBBLE_MEMBERS: u32 = 16;
    /// Most members whose ranks have eight.
    pub const BYTE_MEMBERS: u32 = 256;

    /// Words of a table, its head included. A shape that was read from a map may be any.
    pub const fn words(self) -> u32 {
        (TABLE_HEAD + self.owner_words()).saturating_add(self.slots)
    }

    /// Words of owners.
    const fn owner_words(self) -> u32 {
        ((self.slots as u64) << self.rank_width()).div_ceil(64) as u32
    }

    /// Index of the word with a slot's owner, counted from the first list.
    #[inline(always)]
    pub const fn owner_index(self, slot: u32) -> u32 {
        self.slots.wrapping_add((slot << self.rank_width()) >> 6)
    }

    /// The rank of a slot's owner, from the word at [`Self::owner_index`].
    #[inline(always)]
    pub const fn owner(self, word: u64, slot: u32) -> u16 {
        let above = u64::MAX << (1 << self.rank_width());
        (word >> self.owner_bit(slot) & !above) as u16
    }

    /// Where in its word a slot's owner begins.
    #[inline(always)]
    const fn owner_bit(self, slot: u32) -> u32 {
        (slot << self.rank_width()) & 63
    }

    /// The words of owners of a table, from its lists.
    pub fn owners<'l>(self, list: impl Fn(u32) -> SlotWord + 'l) -> impl Iterator<Item = u64> + 'l {
        let in_word = 64 >> self.rank_width();
        (0..self.owner_words()).map(move |word| {
            let slots = word * in_word..self.slots.min((word + 1) * in_word);
            slots.fold(0, |owners, slot| {
                owners | (list(slot).rank(0) as u64) << self.owner_bit(slot)
            })
        })
    }

    /// The last word of a table's head, which tells a whole table: it is written last, and erased before anything else
    /// of the table changes.
    pub const fn head_word(self) -> u64 {
        self.slots as u64 | (self.members as u64) << 32
    }

    /// Binary logarithm of the bits of a rank among the owners: 2, 3 or 4. These are the signs of differences and no
    /// comparisons, because a comparison would be a branch, and each of its ways would be verified.
    #[inline(always)]
    const fn rank_width(self) -> u32 {
        2 + (Self::NIBBLE_MEMBERS.wrapping_sub(self.members) >> 31)
            + (Self::BYTE_MEMBERS.wrapping_sub(self.members) >> 31)
    }
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

/// Words before a table's first list: two of the digest that names it, and [`TableShape::head_word`].
pub const TABLE_HEAD: u32 = 3;

/// What the first word of a chunk says while the chunk is in `TABLES`, at the index that its pin is named for. Tables
/// stand behind it. So no table is at word 0, and no extent of free words reaches from one chunk into the next.
pub const CHUNK_IN_USE: u64 = 1;

/// Where a table is: the word of its first list, counted through all chunks. 0: nowhere.
///
/// A table lies within one chunk, so that the kernel finds its words with two look-ups in arrays, both of which it
/// inlines: that takes chunks of one known size.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableRef(pub u32);

impl TableRef {
    /// Chunk, and word there, of a table's word; `index` counts from the first list. The chunk follows from the table
    /// alone, so that a packet's hash and the look-up of the chunk do not wait for each other.
    #[inline(always)]
    pub const fn word(self, index: u32) -> (u32, u32) {
        (self.0 / CHUNK_WORDS, self.0.wrapping_add(index) % CHUNK_WORDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A table whose owners are 1 and the following, as many as there are members, and the words of its owners.
    fn owners(slots: u32, members: u32) -> (TableShape, Vec<u64>) {
        let shape = TableShape { slots, members };
        let list = move |slot| SlotWord::new([owner(slot, members), 1, 2, NO_RANK]);
        (shape, shape.owners(list).collect())
    }

    fn owner(slot: u32, members: u32) -> u16 {
        ((slot + 1) % members) as u16
    }

    #[test]
    fn owners_have_four_bits_up_to_16_members_eight_up_to_256_and_sixteen_above() {
        let (narrow, words) = owners(19, 16);
        assert_eq!(words, [0x0fed_cba9_8765_4321, 0x0000_0000_0000_0321]);
        assert_eq!(narrow.words(), 3 + 19 + 2);
        for members in [17, 256] {
            let (byte, words) = owners(11, members);
            assert_eq!(words, [0x0807_0605_0403_0201, 0x000b_0a09]);
            assert_eq!(byte.words(), 3 + 11 + 2);
        }
        let (wide, words) = owners(7, 257);
        assert_eq!(words, [0x0004_0003_0002_0001, 0x0007_0006_0005]);
        assert_eq!(wide.words(), 3 + 7 + 2);
        for (slots, members) in [(31, 1), (37, 16), (37, 17), (11, 256), (7, 257), (11, 65_534)] {
            let (shape, words) = owners(slots, members);
            for slot in 0..slots {
                let word = words[(shape.owner_index(slot) - slots) as usize];
                assert_eq!(shape.owner(word, slot), owner(slot, members), "{members}, {slot}");
            }
        }
        assert_eq!(TableShape { slots: 65_537, members: 16 }.words(), 3 + 65_537 + 4_097);
        assert_eq!(TableShape { slots: 65_537, members: 256 }.words(), 3 + 65_537 + 8_193);
        assert_eq!(TableShape { slots: 65_537, members: 257 }.words(), 3 + 65_537 + 16_385);
    }

    #[test]
    fn the_highest_ranks_keep_all_their_bits() {
        for members in [16, 17, 256, 257, 65_534] {
            let (shape, rank) = (TableShape { slots: 37, members }, (members - 1) as u16);
            let list = |slot| SlotWord::new([if slot == 5 { rank } else { 0 }, 1, 2, 3]);
            let words: Vec<u64> = shape.owners(list).collect();
            for slot in 0..37 {
                let word = words[(shape.owner_index(slot) - 37) as usize];
                assert_eq!(shape.owner(word, slot), if slot == 5 { rank } else { 0 }, "{members}");
            }
        }
    }

    #[test]
    fn a_table_is_in_one_chunk() {
        assert_eq!(TableRef(4).word(0), (0, 4));
        assert_eq!(TableRef(3 * CHUNK_WORDS + 9).word(100), (3, 109));
        assert_eq!(TableRef(CHUNK_WORDS - 1).word(0), (0, CHUNK_WORDS - 1));
        // A wrong word leads somewhere, and breaks nothing.
        assert_eq!(TableRef(u32::MAX).word(1), (u32::MAX / CHUNK_WORDS, 0));
    }
}
