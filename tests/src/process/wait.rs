//! Waiting for a condition. The only place that lets time pass, and only between two looks.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long anything may take that takes a moment on an idle machine: others may have its CPUs. Who waits
/// for a condition loses nothing by it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at first.
const SHORTEST: Duration = Duration::from_millis(2);

/// Time between two looks when there were many: a look may start a program, and others want the CPUs.
const LONGEST: Duration = Duration::from_millis(50);

/// Until the next look, after waiting for so long: a twentieth of that more at the most.
fn interval(waited: Duration) -> Duration {
    (waited / 20).clamp(SHORTEST, LONGEST)
}

/// Looks until `look` gives a value.
///
/// # Errors
/// When `limit` has passed without one, or `look` itself fails.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = look()? {
            return Ok(value);
        }
        if start.elapsed() >= limit {
            bail!("{what}: not within {limit:?}");
        }
        std::thread::park_timeout(interval(start.elapsed()));
    }
}

/// Looks until `look` is true.
///
/// # Errors
/// When `limit` has passed before.
pub fn eventually(what: &str, limit: Duration, mut look: impl FnMut() -> bool) -> Result<()> {
    until(what, limit, || Ok(look().then_some(())))
}

/// Lets time pass. Not for waiting until something has happened; for tests that choose a moment.
pub fn pause(time: Duration) {
    let start = Instant::now();
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}
