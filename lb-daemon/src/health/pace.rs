//! When the checks of a probe start.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

/// Starts of one probe: the first at once, the second anywhere in the interval after it, so that
/// probes that began together do not go on together; each later one an interval, give or take the
/// jitter, after the one before.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    jitter: f64,
    spread: bool,
    random: Rng,
}

impl Pace {
    pub(super) fn new(interval: Duration, jitter_percent: u32, random: Rng) -> Self {
        Self { interval, jitter: f64::from(jitter_percent) / 100.0, spread: false, random }
    }

    /// When the check after the one that began at `started` begins.
    pub(super) fn next(&mut self, started: Instant) -> Instant {
        let draw = self.random.f64();
        let part = if self.spread { 1.0 + self.jitter * (2.0 * draw - 1.0) } else { draw };
        self.spread = true;
        started + self.interval.mul_f64(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn probes_that_begin_together_spread_over_the_interval_and_stay_spread() {
        let start = Instant::now();
        let mut starts: Vec<_> = (0..10_000u64)
            .map(|seed| (start, Pace::new(INTERVAL, 10, Rng::with_seed(seed))))
            .collect();
        for round in 0..20 {
            let mut tenths = [0; 10];
            for (last, pace) in &mut starts {
                let next = pace.next(*last);
                let gap = next - *last;
                if round > 0 {
                    assert!(
                        gap >= INTERVAL.mul_f64(0.9) && gap <= INTERVAL.mul_f64(1.1),
                        "{gap:?}"
                    );
                }
                *last = next;
                tenths[((next - start).as_millis() / 100 % 10) as usize] += 1;
            }
            // Even would be 1,000 in each; 150 is 5 standard deviations.
            assert!(tenths.iter().all(|n| (850..1150).contains(n)), "round {round}: {tenths:?}");
        }
    }

    #[tokio::test]
    async fn without_jitter_the_interval_is_exact_from_the_second_check_on() {
        let mut pace = Pace::new(INTERVAL, 0, Rng::with_seed(1));
        let second = pace.next(Instant::now());
        assert_eq!(pace.next(second), second + INTERVAL);
    }
}
