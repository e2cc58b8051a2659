//! Member words: a backend's place in a group, and which packets it accepts.

use super::next_hop::AWAITED;

/// Which packets a member or a backend accepts, as the maps say it. Zero is [`Accepts::Nothing`], so an unwritten
/// word accepts nothing.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accepts {
    /// No packets: its open connections move to other backends.
    Nothing = 0,
    /// Packets of open connections.
    OpenOnly = 1,
    /// New connections too.
    All = 2,
}

impl Accepts {
    /// The value with a number; unknown numbers are [`Accepts::Nothing`].
    #[inline(always)]
    pub const fn from_number(number: u8) -> Self {
        match number {
            2 => Self::All,
            1 => Self::OpenOnly,
            _ => Self::Nothing,
        }
    }

    /// The name, as commands print it: `nothing`, `open` (only packets of open connections) or `all`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::OpenOnly => "open",
            Self::All => "all",
        }
    }
}

/// Full ramp: the member takes its whole share of new connections.
pub const FULL_RAMP: u8 = 255;

/// One member, in one word that is changed in place:
/// `{backend 24, incarnation 8, state 8, ramp 8, next hop 16}` from the low end. Of the state's bits
/// the highest is set if it has a limit of its own, the next if it is a last resort, the third if it is
/// marked out; the two below say what the whole pool accepts, and the lowest three what the member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberWord(pub u64);

impl MemberWord {
    /// A word from its parts; `backend` is below 2^24.
    pub const fn new(
        backend: u32,
        incarnation: u8,
        accepts: Accepts,
        ramp: u8,
        next_hop: u16,
    ) -> Self {
        Self(
            (backend as u64 & 0xff_ffff)
                | (incarnation as u64) << 24
                | (accepts as u64) << 32
                | (ramp as u64) << 40
                | (next_hop as u64) << 48,
        )
    }

    /// Index of the backend.
    #[inline(always)]
    pub const fn backend(self) -> u32 {
        self.0 as u32 & 0xff_ffff
    }

    /// Incarnation of the backend's index: which of its successive users is meant.
    #[inline(always)]
    pub const fn incarnation(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Which packets it accepts.
    #[inline(always)]
    pub const fn accepts(self) -> Accepts {
        Accepts::from_number((self.0 >> 32) as u8 & 7)
    }

    /// The most that any member of its pool accepts, last resorts counted, as far as is known: a packet of a pool where
    /// nobody takes it need not ask each of them.
    #[inline(always)]
    pub const fn pool_accepts(self) -> Accepts {
        match self.0 >> 35 & 3 {
            0 => Accepts::All,
            1 => Accepts::OpenOnly,
            _ => Accepts::Nothing,
        }
    }

    /// The same member of a pool whose members accept no more than this. [`Accepts::All`] is always right.
    #[must_use]
    pub const fn with_pool_accepts(self, accepts: Accepts) -> Self {
        let less = Accepts::All as u64 - accepts as u64;
        Self(self.0 & !(3 << 35) | less << 35)
    }

    /// Whether it has a limit of its own: its limiter is named by [`super::arrays::Array::MemberLimiters`].
    #[inline(always)]
    pub const fn is_limited(self) -> bool {
        self.0 >> 39 & 1 != 0
    }

    /// Whether it may have new connections when no other member may: too few are healthy, it is neither drained
    /// nor disabled, and its next hop is known.
    #[inline(always)]
    pub const fn is_last_resort(self) -> bool {
        self.0 >> 38 & 1 != 0
    }

    /// Whether it is marked out: it was out of service for longer than the settle time, so home is the next of a
    /// slot's list that is not marked out.
    #[inline(always)]
    pub const fn is_marked_out(self) -> bool {
        self.0 >> 37 & 1 != 0
    }

    /// The same member with or without a limit of its own.
    #[must_use]
    pub const fn with_limit(self, limited: bool) -> Self {
        Self(self.0 & !(1 << 39) | (limited as u64) << 39)
    }

    /// The same member as a last resort, or not.
    #[must_use]
    pub const fn with_last_resort(self, last_resort: bool) -> Self {
        Self(self.0 & !(1 << 38) | (last_resort as u64) << 38)
    }

    /// The same member marked out, or not. Unlike the other bits it is changed with a new version of
    /// the pool only.
    #[must_use]
    pub const fn with_marked_out(self, out: bool) -> Self {
        Self(self.0 & !(1 << 37) | (out as u64) << 37)
    }

    /// Share of new connections it takes of its slots, [`FULL_RAMP`] for all (slow start).
    #[inline(always)]
    pub const fn ramp(self) -> u8 {
        (self.0 >> 40) as u8
    }

    /// The same member with another share of new connections.
    #[must_use]
    pub const fn with_ramp(self, ramp: u8) -> Self {
        Self(self.0 & !(0xff << 40) | (ramp as u64) << 40)
    }

    /// Index of its next hop; 0: none.
    #[inline(always)]
    pub const fn next_hop(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Whether it has a next hop.
    #[inline(always)]
    pub const fn has_next_hop(self) -> bool {
        self.next_hop() != 0 && !self.awaits_next_hop()
    }

    /// Whether it lost its next hop, and keeps its connections until it has one again or is given up.
    #[inline(always)]
    pub const fn awaits_next_hop(self) -> bool {
        self.next_hop() == AWAITED
    }

    /// The same member that accepts other packets.
    #[must_use]
    pub const fn with_accepts(self, accepts: Accepts) -> Self {
        Self(self.0 & !(7 << 32) | (accepts as u64) << 32)
    }

    /// The same member behind another next hop.
    #[must_use]
    pub const fn with_next_hop(self, next_hop: u16) -> Self {
        Self(self.0 & !(0xffff << 48) | (next_hop as u64) << 48)
    }
}
