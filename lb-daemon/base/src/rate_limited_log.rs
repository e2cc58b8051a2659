//! Rate-limits log lines that untrusted peers can trigger, and counts the suppressed ones.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Limits lines per second of the monotonic clock.
#[derive(Debug, Default)]
pub struct RateLimit(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
    logged: u32,
    suppressed: u64,
}

impl RateLimit {
    /// `Some` if the line may be logged, with the number of lines suppressed before it; at most `most` a second.
    pub fn now(&self, most: u32) -> Option<u64> {
        self.at(Instant::now(), most)
    }

    fn at(&self, now: Instant, most: u32) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |since| now.duration_since(since) >= Duration::from_secs(1);
        if window.since.is_none_or(over) {
            (window.since, window.logged) = (Some(now), 0);
        }
        if window.logged >= most {
            window.suppressed += 1;
            return None;
        }
        window.logged += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_limit_are_suppressed_and_counted() {
        let (limit, start) = (RateLimit::default(), Instant::now());
        let at = |ms| limit.at(start + Duration::from_millis(ms), 2);
        assert_eq!([at(0), at(1), at(2), at(999)], [Some(0), Some(0), None, None]);
        assert_eq!([at(1000), at(1001), at(1002)], [Some(2), Some(0), None]);
        assert_eq!(at(5000), Some(1));
    }
}
