//! Times that outlive a process: nanoseconds since the kernel started, with the id of that start. Unlike the wall clock
//! nobody sets it, and unlike the monotonic clock it goes on while the host sleeps.

use std::{
    fs, io,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// The kernel's id of its start, random (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Nanoseconds since the kernel started, CLOCK_BOOTTIME.
pub type BootTime = u64;

/// The clock as it was read at one moment, to convert other times by their distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootClock {
    /// Times of another boot mean nothing.
    pub boot_id: String,
    /// The same moment by both clocks.
    pub time: BootTime,
    pub instant: Instant,
}

/// The time since the kernel started, which goes on while the host sleeps.
pub fn now() -> Duration {
    // The kernel gives no negative time since its start.
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

impl BootClock {
    /// Reads it.
    ///
    /// # Errors
    /// procfs is not mounted.
    pub fn read() -> io::Result<Self> {
        let boot_id = fs::read_to_string(BOOT_ID)?.trim().to_owned();
        let time = clock_gettime(ClockId::Boottime);
        let time = Duration::try_from(time).map_err(io::Error::other)?;
        Ok(Self { boot_id, time: nanoseconds(time), instant: Instant::now() })
    }

    pub fn boot_time(&self, instant: Instant) -> BootTime {
        match instant.checked_duration_since(self.instant) {
            Some(later) => self.time.saturating_add(nanoseconds(later)),
            None => self.time.saturating_sub(nanoseconds(self.instant - instant)),
        }
    }

    /// A time that this process's clock cannot show becomes the moment of reading.
    pub fn instant(&self, time: BootTime) -> Instant {
        let instant = match time.checked_sub(self.time) {
            Some(later) => self.instant.checked_add(Duration::from_nanos(later)),
            None => self.instant.checked_sub(Duration::from_nanos(self.time - time)),
        };
        instant.unwrap_or(self.instant)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_within_one_boot_and_converts_both_ways() {
        let (first, second) = (BootClock::read().unwrap(), BootClock::read().unwrap());
        assert_eq!((first.boot_id.len(), &first.boot_id), (36, &second.boot_id));
        assert!(first.time < second.time);
        // By the distance of the two readings, to within what lies between reading one clock and the other.
        let apart = second.boot_time(first.instant).abs_diff(first.time);
        assert!(apart < 1_000_000_000, "{apart} ns");
        for distance in [0, 1, 5_000_000_000, 100_000_000_000] {
            let later = first.instant + Duration::from_nanos(distance);
            assert_eq!(first.boot_time(later), first.time + distance);
            assert_eq!(first.instant(first.time + distance), later);
        }
        let clock = BootClock { time: 7, ..first };
        let earlier = clock.instant - Duration::from_nanos(3);
        assert_eq!((clock.boot_time(earlier), clock.instant(4)), (4, earlier));
        assert_eq!(clock.boot_time(clock.instant - Duration::from_secs(1)), 0);
        // Whatever a file says, there is a time.
        let _ = (clock.instant(u64::MAX), clock.instant(0));
    }
}
