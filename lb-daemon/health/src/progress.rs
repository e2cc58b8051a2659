//! Whether a probe's loop goes on as it should.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// How late a loop may be before it counts as standing still: far above what a busy machine delays,
/// far below the patience of a service manager.
const GRACE: Duration = Duration::from_secs(1);

/// Not waiting for time: something else that is watched must go on first.
const EXCUSED: u64 = u64::MAX;

/// What a loop has promised: to show itself again by then.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// Microseconds after `began`.
    due: AtomicU64,
}

impl Progress {
    pub(super) fn new() -> Self {
        let progress = Self { began: Instant::now(), due: AtomicU64::new(EXCUSED) };
        progress.expect_by(progress.began);
        progress
    }

    /// The loop will be further by `time`.
    pub(super) fn expect_by(&self, time: Instant) {
        let due = (time + GRACE).saturating_duration_since(self.began).as_micros();
        self.due.store(u64::try_from(due).unwrap_or(EXCUSED), Ordering::Relaxed);
    }

    /// The loop waits for its turn, behind others that have promised.
    pub(super) fn excuse(&self) {
        self.due.store(EXCUSED, Ordering::Relaxed);
    }

    /// Whether the promise is kept so far.
    pub(super) fn is_on_time(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.began).as_micros();
        u128::from(self.due.load(Ordering::Relaxed)) >= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_promise_is_broken_one_second_after_its_time() {
        let progress = Progress::new();
        let start = progress.began;
        let at = |seconds| start + Duration::from_secs_f64(seconds);
        assert!(progress.is_on_time(at(1.0)) && !progress.is_on_time(at(1.1)));
        progress.expect_by(at(60.0));
        assert!(progress.is_on_time(at(61.0)) && !progress.is_on_time(at(61.1)));
        progress.excuse();
        assert!(progress.is_on_time(at(1e6)));
    }
}
