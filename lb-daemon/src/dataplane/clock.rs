//! The packet path's clock, seen from here.

use std::{io, time::Duration};

use lb_common::abi::clock::Nanoseconds;
use nix::time::{ClockId, clock_getres, clock_gettime};

/// Length of the kernel's tick (time(7): the resolution of the coarse clocks).
///
/// # Errors
/// What the kernel answers.
pub fn tick() -> io::Result<Nanoseconds> {
    let tick = Duration::from(clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)?);
    Ok(tick.as_nanos().max(1) as Nanoseconds)
}

/// What time it is there, to within a second: its ticks follow this clock.
///
/// # Errors
/// What the kernel answers.
pub fn now() -> io::Result<Nanoseconds> {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
    Ok(now.as_nanos() as Nanoseconds)
}
