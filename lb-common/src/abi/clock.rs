//! The clock of the packet path: ticks of the kernel since its start, in nanoseconds.
//!
//! It advances by a tick (4 ms at 250 Hz) and follows `CLOCK_MONOTONIC` within a second. Reading it costs almost nothing;
//! reading the exact clock costs 30 ns.
//!
//! User space reads `CLOCK_MONOTONIC_COARSE`, which the same tick advances, and adds a difference that is constant since
//! the kernel's start ([`super::arrays::CLOCK_AHEAD_WORD`]).

/// A time since the kernel's start, in nanoseconds.
pub type Nanoseconds = u64;

/// A time in units of 2^30 ns (1.07 s), as cells of the flow table hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarse(pub u64);

impl Coarse {
    /// The unit that a time is in.
    #[inline(always)]
    pub const fn from_nanoseconds(now: Nanoseconds) -> Self {
        Self(now >> 30)
    }

    /// Seconds of so many units, rounded down.
    pub const fn seconds(self) -> u32 {
        ((self.0 << 30) / 1_000_000_000) as u32
    }

    /// Units for a number of seconds, rounded up.
    pub const fn units(seconds: u64) -> u64 {
        (seconds * 1_000_000_000).div_ceil(1 << 30)
    }
}

/// Name of the programs' constant that holds a tick's length in nanoseconds, set when they are loaded.
pub const TICK: &str = "TICK_NANOSECONDS";
/// Name of the programs' constant that holds what the kernel's ticks begin to count at.
pub const TICKS_AT_START: &str = "TICKS_AT_START";
/// The default length of a tick: 250 Hz.
pub const USUAL_TICK: Nanoseconds = 4_000_000;

/// What a kernel's ticks begin to count at: five minutes before its 32-bit counter wraps
/// (`INITIAL_JIFFIES`, include/linux/jiffies.h).
pub const fn ticks_at_start(tick: Nanoseconds) -> u64 {
    (300 * 1_000_000_000_u64 / tick).wrapping_neg() & 0xffff_ffff
}
