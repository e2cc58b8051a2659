//! Member words: a backend's place in a group, and whether it may have a packet.

/// Who may have a packet (`DESIGN`: up, unfit, dead). Zero is dead, so an unwritten word takes nothing.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberState {
    /// Takes nothing; its open connections move at once.
    Dead = 0,
    /// Keeps its open connections, takes no new ones.
    Unfit = 1,
    /// Takes new connections.
    Up = 2,
}

impl MemberState {
    /// The state with a number; unknown numbers are [`MemberState::Dead`].
    #[inline(always)]
    pub const fn from_number(number: u8) -> Self {
        match number {
            2 => Self::Up,
            1 => Self::Unfit,
            _ => Self::Dead,
        }
    }

    /// The state's name, as commands print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Unfit => "unfit",
            Self::Up => "up",
        }
    }
}

/// Full ramp: the member takes its whole share of new connections.
pub const FULL_RAMP: u8 = 255;

/// One member, in one word that is changed in place:
/// `{backend 24, incarnation 8, state 8, ramp 8, next hop 16}` from the low end. Of the state's bits
/// the highest says that it has a limit of its own, the next that it is a last resort, the third that
/// it is out of home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberWord(pub u64);

impl MemberWord {
    /// A word from its parts; `backend` is below 2^24.
    pub const fn new(
        backend: u32,
        incarnation: u8,
        state: MemberState,
        ramp: u8,
        next_hop: u16,
    ) -> Self {
        Self(
            (backend as u64 & 0xff_ffff)
                | (incarnation as u64) << 24
                | (state as u64) << 32
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

    /// The state.
    #[inline(always)]
    pub const fn state(self) -> MemberState {
        MemberState::from_number((self.0 >> 32) as u8 & 0x1f)
    }

    /// Whether it has a limit of its own: its meter is named by [`super::names::MEMBER_METERS`].
    #[inline(always)]
    pub const fn is_limited(self) -> bool {
        self.0 >> 39 & 1 != 0
    }

    /// Whether it may have new connections when nobody else may: too few are healthy, and neither
    /// was it drained or disabled nor is its host's next hop unknown.
    #[inline(always)]
    pub const fn is_last_resort(self) -> bool {
        self.0 >> 38 & 1 != 0
    }

    /// Whether no connection is at home here that nothing is remembered of: it was out of service for
    /// longer than the settle time, and home is the next of a slot's list that is not.
    #[inline(always)]
    pub const fn is_out_of_home(self) -> bool {
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

    /// The same member out of home, or not. Unlike the other bits it is changed with a new version of
    /// the pool only.
    #[must_use]
    pub const fn with_out_of_home(self, out: bool) -> Self {
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

    /// The same member in another state.
    #[must_use]
    pub const fn with_state(self, state: MemberState) -> Self {
        Self(self.0 & !(0x1f << 32) | (state as u64) << 32)
    }

    /// The same member behind another next hop.
    #[must_use]
    pub const fn with_next_hop(self, next_hop: u16) -> Self {
        Self(self.0 & !(0xffff << 48) | (next_hop as u64) << 48)
    }
}
