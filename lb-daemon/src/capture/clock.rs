//! From the packet path's exact clock to the time of day, to show it.

use std::{
    io,
    time::{Duration, SystemTime},
};

use lb_common::abi::clock::Nanoseconds;

use lb_maps::clock;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    monotonic: Nanoseconds,
    day: SystemTime,
}

impl Clocks {
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self { monotonic: clock::now()?, day: SystemTime::now() })
    }

    /// The time of day of a moment shortly before.
    pub(super) fn day_of(&self, moment: Nanoseconds) -> SystemTime {
        self.day - Duration::from_nanos(self.monotonic.saturating_sub(moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_keep_their_distance() {
        let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let clocks = Clocks { monotonic: 5_000_000_007, day };
        let nanoseconds = |moment| day.duration_since(clocks.day_of(moment)).unwrap().as_nanos();
        assert_eq!(nanoseconds(5_000_000_007), 0);
        assert_eq!(nanoseconds(5_000_000_006), 1);
        assert_eq!(nanoseconds(1_000_000_000), 4_000_000_007);
    }
}
