//! Limiters: how fast a group, or a member with a limit of its own, may be given new connections.

use core::num::NonZeroU32;

/// A limiter, alone on its cache line. The daemon writes the limit, packets write the arrival, which the daemon converts
/// when the limit changes.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limiter {
    /// A [`LimitWord`].
    pub limit: u64,
    /// When the next connection would arrive if all so far had come evenly (GCRA's theoretical
    /// arrival time), in [`LimitWord::PER_NANOSECOND`]ths of a nanosecond of the packet path's clock.
    pub arrival: u64,
    /// Zero.
    pub reserved: [u64; 6],
}

/// No limiter: no limit, nothing counted.
pub const NO_LIMITER: u32 = 0;
/// ICMP errors that the packet path makes itself.
pub const ERRORS: u32 = 1;
/// Echo requests that the packet path answers.
pub const ECHOES: u32 = 2;
/// Samples that a capture takes.
pub const SAMPLES: u32 = 3;
/// The first limiter that groups and members can have.
pub const FIRST_LIMITER: u32 = 4;

/// Words that networks and VIPs share by hash, for the limits of answers to one of them: arrivals as in [`Limiter`].
pub const ANSWER_WORDS: u32 = 1 << 13;
/// Of the answers that are sent in all, those that may go to one network: one of so many parts.
pub const NETWORK_PART: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// Of the answers that are sent in all, those in the name of one VIP: one of so many parts.
pub const VIP_PART: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// A limit, in one word that is changed in place: `{interval 40, burst 24}` from the low end, the burst
/// in [`LimitWord::PER_CONNECTION`]ths of a connection. Zero is [`LimitWord::UNLIMITED`], all ones is
/// [`LimitWord::CLOSED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitWord(pub u64);

impl LimitWord {
    /// Parts that a nanosecond is divided into: at ten million connections a second an interval is
    /// still exact to 0.07 percent.
    pub const PER_NANOSECOND: u64 = 16;
    /// The longest interval, 68 s.
    pub const MAX_INTERVAL: u64 = (1 << 40) - 1;
    /// Parts of a connection that a burst is counted in: at a burst of ten, whether the clock's tick costs
    /// one of them or a third of one is a third of what spills at four fifths of the limit.
    pub const PER_CONNECTION: u32 = 16;
    /// The largest burst, in parts.
    const MAX_PARTS: u32 = (1 << 24) - 2;
    /// The largest burst, connections.
    pub const MAX_BURST: u32 = Self::MAX_PARTS / Self::PER_CONNECTION;
    /// Everything is admitted.
    pub const UNLIMITED: Self = Self(0);
    /// Nothing is admitted.
    pub const CLOSED: Self = Self(u64::MAX);

    /// One connection an `interval` (in [`Self::PER_NANOSECOND`]ths of a nanosecond), `burst` of them in a burst after a
    /// pause. Both are at least 1, and the burst at most its maximum. An interval beyond the longest one is
    /// [`Self::CLOSED`]: the longest one would admit more.
    pub const fn new(interval: u64, burst: u32) -> Self {
        Self::in_parts(interval, burst.saturating_mul(Self::PER_CONNECTION))
    }

    /// As [`Self::new`], the burst in [`Self::PER_CONNECTION`]ths of a connection.
    #[inline(always)]
    pub const fn in_parts(interval: u64, burst: u32) -> Self {
        if interval > Self::MAX_INTERVAL {
            return Self::CLOSED;
        }
        let interval = if interval == 0 { 1 } else { interval };
        let burst = if burst > Self::MAX_PARTS { Self::MAX_PARTS } else { burst };
        let least = Self::PER_CONNECTION;
        let burst = if burst < least { least } else { burst };
        Self(interval | (burst as u64) << 40)
    }

    /// A limit of one of so many equal parts of this one, rate and burst: at least one in the longest interval, and one at
    /// once.
    #[inline(always)]
    #[must_use]
    pub const fn part(self, parts: NonZeroU32) -> Self {
        if self.is_unlimited() || self.is_closed() {
            return self;
        }
        let parts = parts.get();
        let interval = self.interval().wrapping_mul(parts as u64);
        let interval = if interval < Self::MAX_INTERVAL { interval } else { Self::MAX_INTERVAL };
        Self::in_parts(interval, (self.0 >> 40) as u32 / parts)
    }

    /// Admits nothing: the limit is reached, whatever the arrival. Not closed, because a change replaces it in a moment.
    pub const fn without_burst(interval: u64) -> Self {
        Self(interval & Self::MAX_INTERVAL)
    }

    /// Time between two connections, in [`Self::PER_NANOSECOND`]ths of a nanosecond.
    #[inline(always)]
    pub const fn interval(self) -> u64 {
        self.0 & Self::MAX_INTERVAL
    }

    /// Whole connections of the burst.
    #[inline(always)]
    pub const fn burst(self) -> u64 {
        (self.0 >> 40) / Self::PER_CONNECTION as u64
    }

    /// How far ahead of now the arrival may be: the time that a burst stands for, in
    /// [`Self::PER_NANOSECOND`]ths of a nanosecond.
    #[inline(always)]
    pub const fn allowance(self) -> u64 {
        (self.0 >> 40).wrapping_mul(self.interval()) / Self::PER_CONNECTION as u64
    }

    /// Whether everything is admitted.
    #[inline(always)]
    pub const fn is_unlimited(self) -> bool {
        self.0 == Self::UNLIMITED.0
    }

    /// Whether nothing is.
    #[inline(always)]
    pub const fn is_closed(self) -> bool {
        self.0 == Self::CLOSED.0
    }
}
