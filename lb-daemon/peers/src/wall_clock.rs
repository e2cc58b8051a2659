//! The wall clock, which balancers compare: they have no other clock in common.

use std::time::SystemTime;

/// Milliseconds since 1970.
pub(crate) fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
