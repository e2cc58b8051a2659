//! The times that a fleet shares: of the wall clock, because balancers have no other one in common. They say when something
//! was changed and when an override ends; nothing waits by them.

use std::time::{Duration, Instant, SystemTime};

use lb_fleet::documents::WallTime;
use lb_model::overrides::{CLOCK_TOLERANCE, Moment};

pub(super) fn now() -> WallTime {
    WallTime::from(SystemTime::now())
}

/// Both clocks at one moment.
pub(super) fn moment() -> Moment {
    Moment { wall: SystemTime::now(), instant: Instant::now() }
}

/// So long before now.
pub(super) fn ago(time: Duration) -> Option<SystemTime> {
    SystemTime::now().checked_sub(time)
}

/// Whether it was set between two moments: what ends by it ends at another moment then.
pub(super) fn was_set(before: Moment, now: Moment) -> bool {
    let passed = now.instant.saturating_duration_since(before.instant);
    let Some(expected) = before.wall.checked_add(passed) else { return true };
    let difference = now.wall.duration_since(expected).unwrap_or_else(|error| error.duration());
    difference >= CLOCK_TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_was_not_set() {
        let before = Moment { wall: SystemTime::now(), instant: Instant::now() };
        let after = |passed: u64, shown: u64| Moment {
            wall: before.wall + Duration::from_millis(shown),
            instant: before.instant + Duration::from_millis(passed),
        };
        for (passed, shown, expected) in [
            (0, 0, false),
            (86_400_000, 86_400_000, false),
            (10_000, 10_999, false),
            (10_000, 11_000, true),
            (10_000, 9_001, false),
            (10_000, 9_000, true),
            (10_000, 3_610_000, true),
        ] {
            assert_eq!(was_set(before, after(passed, shown)), expected, "{passed} {shown}");
        }
        let behind = Moment { wall: before.wall - Duration::from_secs(3_600), ..before };
        assert!(was_set(before, behind));
    }
}
