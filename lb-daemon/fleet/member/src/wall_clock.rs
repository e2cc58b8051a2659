//! The times that a fleet shares: of the wall clock, because balancers have no other one in common. They say when something
//! was changed and when an override ends; nothing waits by them.

use std::time::{Duration, Instant, SystemTime};

use lb_fleet::documents::WallTime;
use lb_model::overrides::Moment;

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
