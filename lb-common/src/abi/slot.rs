//! Slots: preference lists of member ranks.

/// No member: an empty place in a preference list.
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
