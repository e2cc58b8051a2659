//! The packet path's clock, read in user space.

use std::{io, sync::Arc, time::Duration};

use lb_common::abi::{arrays::CLOCK_AHEAD_WORD, clock::Nanoseconds};
use nix::time::{ClockId, clock_getres, clock_gettime};

use super::raw::Mapping;

/// Length of the kernel's tick (time(7): the resolution of the coarse clocks).
///
/// # Errors
/// What the kernel answers.
pub fn tick() -> io::Result<Nanoseconds> {
    let tick = Duration::from(clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)?);
    Ok(tick.as_nanos().max(1) as Nanoseconds)
}

/// The time of the packet path's clock, to within a second: its ticks follow CLOCK_MONOTONIC.
///
/// # Errors
/// What the kernel answers.
pub fn now() -> io::Result<Nanoseconds> {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
    Ok(now.as_nanos() as Nanoseconds)
}

/// The packet path's clock to within a tick, as [`now`] is not: what a limit admits can depend on less than the difference.
#[derive(Debug)]
pub(super) struct PacketClock<M> {
    arrays: Arc<M>,
}

impl<M> PacketClock<M> {
    pub(super) fn new(arrays: Arc<M>) -> Self {
        Self { arrays }
    }
}

impl<M: AsRef<Mapping>> PacketClock<M> {
    pub(super) fn now(&self) -> Nanoseconds {
        let ahead = (*self.arrays).as_ref().load(CLOCK_AHEAD_WORD).unwrap_or(0);
        coarse().wrapping_add(ahead)
    }
}

/// CLOCK_MONOTONIC_COARSE, which every kernel has.
fn coarse() -> Nanoseconds {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).map(Duration::from);
    now.map_or(0, |now| now.as_nanos() as Nanoseconds)
}

/// By how many nanoseconds the packet path's clock is ahead of CLOCK_MONOTONIC_COARSE. One tick advances both, so that
/// is constant to within a tick for as long as the kernel runs.
///
/// `ticks` reads the low half of the number of ticks since the kernel's start; the two clocks differ by far less than
/// what that is unique for.
///
/// # Errors
/// What `ticks` or the kernel answers.
pub(super) fn measure_ahead<E: From<io::Error>>(
    ticks: impl Fn() -> Result<u32, E>,
) -> Result<i64, E> {
    let tick = tick()?;
    let mut samples = Vec::new();
    for _ in 0..ATTEMPTS {
        let (before, ticks, after) = (coarse(), ticks()?, coarse());
        if before == after {
            let by_ticks = nearest(after / tick, ticks).wrapping_mul(tick);
            samples.push(by_ticks.wrapping_sub(after).cast_signed());
        }
        if samples.len() == SAMPLES {
            break;
        }
    }
    // The kernel counts a tick before it advances the clock: a sample in between is a tick too large.
    let smallest = samples.into_iter().min();
    smallest.ok_or_else(|| io::Error::other("each reading took longer than a tick").into())
}

/// How often both clocks are read if a tick comes in between.
const ATTEMPTS: u32 = 100;

/// How many readings between two ticks are enough.
const SAMPLES: usize = 5;

/// The number with this low half that is nearest to another number.
fn nearest(number: u64, low: u32) -> u64 {
    let ahead = low.wrapping_sub(number as u32).cast_signed();
    number.wrapping_add_signed(ahead.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_half_is_that_of_the_nearest_number() {
        const HALF: u64 = 1 << 32;
        for number in [5, HALF - 1, HALF, 7 * HALF + 5, 7 * HALF - 5] {
            for other in [number.saturating_sub(250), number, number + 250] {
                assert_eq!(nearest(other, number as u32), number);
            }
        }
    }

    #[test]
    fn the_difference_is_measured_between_two_ticks() {
        // Ticks that are a hundred ahead.
        let ticks = || Ok::<_, io::Error>((coarse() / tick()?) as u32 + 100);
        let ahead = measure_ahead(ticks).unwrap();
        let tick = tick().unwrap().cast_signed();
        assert!((99 * tick..=100 * tick).contains(&ahead), "{ahead}");
    }
}
