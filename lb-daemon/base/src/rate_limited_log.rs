//! Lines of the log that others can cause at will: so many a second, and how many were left out.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Says whether it is time for a line. It goes by the monotonic clock.
#[derive(Debug, Default)]
pub struct RateLimit(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
    said: u32,
    left_out: u64,
}

impl RateLimit {
    /// `Some` as long as there were fewer than `most` in this second: how many were left out before.
    pub fn now(&self, most: u32) -> Option<u64> {
        self.at(Instant::now(), most)
    }

    fn at(&self, now: Instant, most: u32) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |since| now.duration_since(since) >= Duration::from_secs(1);
        if window.since.is_none_or(over) {
            (window.since, window.said) = (Some(now), 0);
        }
        if window.said >= most {
            window.left_out += 1;
            return None;
        }
        window.said += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_the_others_are_counted() {
        let (seldom, start) = (RateLimit::default(), Instant::now());
        let at = |ms| seldom.at(start + Duration::from_millis(ms), 2);
        assert_eq!([at(0), at(1), at(2), at(999)], [Some(0), Some(0), None, None]);
        assert_eq!([at(1000), at(1001), at(1002)], [Some(2), Some(0), None]);
        assert_eq!(at(5000), Some(1));
    }
}
