//! When the checks of a probe start.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use crate::model::HealthCheck;

/// Starts of one probe: the first at once, the second anywhere in the interval after it, so that
/// probes that began together do not go on together; each later one an interval, give or take the
/// jitter, after the one before. In doubt it is the fast interval, at once.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    fast_interval: Duration,
    jitter: f64,
    spread: bool,
    random: Rng,
}

impl Pace {
    pub(super) fn new(check: &HealthCheck, random: Rng) -> Self {
        let HealthCheck { interval, fast_interval, jitter_percent, .. } = *check;
        let jitter = f64::from(jitter_percent) / 100.0;
        Self { interval, fast_interval, jitter, spread: false, random }
    }

    /// When the check after the one that began at `started` begins.
    pub(super) fn next(&mut self, started: Instant, in_doubt: bool) -> Instant {
        let draw = self.random.f64();
        let jittered = 1.0 + self.jitter * (2.0 * draw - 1.0);
        if in_doubt && self.fast_interval < self.interval {
            return started + self.fast_interval.mul_f64(jittered);
        }
        let part = if self.spread { jittered } else { draw };
        self.spread = true;
        started + self.interval.mul_f64(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::model::{Probe, Via};

    const INTERVAL: Duration = Duration::from_secs(1);
    const FAST: Duration = Duration::from_millis(100);

    fn pace(fast_interval: Duration, jitter_percent: u32, seed: u64) -> Pace {
        let check = HealthCheck {
            probe: Probe::Tcp,
            tls: None,
            via: Via::Address,
            port: 80,
            interval: INTERVAL,
            fast_interval,
            timeout: INTERVAL,
            rise: 1,
            fall: 1,
            jitter_percent,
        };
        Pace::new(&check, Rng::with_seed(seed))
    }

    #[tokio::test]
    async fn probes_that_begin_together_spread_over_the_interval_and_stay_spread() {
        let start = Instant::now();
        let mut starts: Vec<_> =
            (0..10_000u64).map(|seed| (start, pace(INTERVAL, 10, seed))).collect();
        for round in 0..20 {
            let mut tenths = [0; 10];
            for (last, pace) in &mut starts {
                let next = pace.next(*last, round == 7);
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
        let mut pace = pace(FAST, 0, 1);
        let second = pace.next(Instant::now(), false);
        assert_eq!(pace.next(second, false), second + INTERVAL);
    }

    #[tokio::test]
    async fn in_doubt_the_fast_interval_is_kept_and_spreading_is_put_off() {
        let start = Instant::now();
        for seed in 0..1000 {
            let mut pace = pace(FAST, 10, seed);
            let second = pace.next(start, true);
            let gap = second - start;
            assert!(gap >= FAST.mul_f64(0.9) && gap <= FAST.mul_f64(1.1), "{gap:?}");
            let third = pace.next(second, false) - second;
            assert!(third <= INTERVAL, "anywhere in the interval: {third:?}");
            let gap = pace.next(start, false) - start;
            assert!(gap >= INTERVAL.mul_f64(0.9), "{gap:?}");
        }
    }
}
