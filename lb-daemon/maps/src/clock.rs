//! The packet path's clock, read in user space.

use std::{fs, io, time::Duration};

use lb_common::abi::clock::{Nanoseconds, ticks_at_start};
use nix::time::{ClockId, clock_getres, clock_gettime};

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

/// The time of the packet path's clock to the tick, if the kernel shows the number of ticks; else as [`now`]. Whether
/// a limit is reached can depend on less than the difference of the two clocks.
///
/// # Errors
/// What the kernel answers.
pub fn now_by_ticks() -> io::Result<Nanoseconds> {
    let tick = tick()?;
    // Only root may read it, and kernels without high-resolution timers lack it.
    let ticks = fs::read_to_string("/proc/timer_list").ok().and_then(|text| ticks_in(&text));
    match ticks {
        Some(ticks) => Ok(ticks.wrapping_sub(ticks_at_start(tick)).wrapping_mul(tick)),
        None => now(),
    }
}

/// The number of ticks in /proc/timer_list (kernel/time/timer_list.c).
fn ticks_in(timers: &str) -> Option<u64> {
    timers.lines().find_map(|line| line.strip_prefix("jiffies: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_among_timers() {
        let text = "cpu: 0\n  .idle_jiffies   : 4300051221\njiffies: 4300051224\n\ncpu: 1\n";
        assert_eq!(ticks_in(text), Some(4_300_051_224));
        assert_eq!(ticks_in("cpu: 0\n"), None);
    }

    #[test]
    fn both_clocks_are_within_a_second() {
        let (ticks, exact) = (now_by_ticks().unwrap(), now().unwrap());
        assert!(ticks.abs_diff(exact) < 1_000_000_000, "{ticks}, {exact}");
    }
}
