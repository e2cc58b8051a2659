//! When the checks of a probe start.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use fastrand::Rng;
use tokio::time::Instant;

use lb_model::HealthCheck;

/// Schedules the checks of one probe. If a target waits for it, the first check starts at once, and the second at a
/// random time in the interval after it, so that probes that started together spread out. Otherwise the first
/// starts at the probe's own place in the interval. Each later one follows after the interval with jitter, or after
/// the fast interval while the health is in doubt.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    fast_interval: Duration,
    jitter: f64,
    spread: bool,
    random: Rng,
}

impl Pace {
    /// `spread`: the first check is at the probe's own place.
    pub(super) fn new(check: &HealthCheck, spread: bool, random: Rng) -> Self {
        let HealthCheck { interval, fast_interval, jitter_percent, .. } = *check;
        let jitter = f64::from(jitter_percent) / 100.0;
        Self { interval, fast_interval, jitter, spread, random }
    }

    /// When the check after the one that began at `started` starts.
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

/// A probe's own place in its interval.
///
/// Places are counted from the daemon's start, which edits do not change. So a quick succession of edits does not
/// postpone checks forever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    origin: Instant,
    /// Fraction of the interval, 0 to below 1.
    part: f64,
}

impl Place {
    /// The place that follows from the hash of `of`, always the same.
    pub(super) fn new(origin: Instant, of: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        // A double represents 32 bits exactly.
        let part = f64::from((hasher.finish() >> 32) as u32) / f64::from(1u32 << 31) / 2.0;
        Self { origin, part }
    }

    /// The first occurrence at or after `now`, at most an interval later.
    pub(super) fn after(self, now: Instant, check: &HealthCheck, in_doubt: bool) -> Instant {
        let shortest = check.fast_interval.min(check.interval);
        let interval =
            if in_doubt { shortest } else { check.interval }.max(Duration::from_nanos(1));
        let since = now.saturating_duration_since(self.origin).as_nanos() % interval.as_nanos();
        let since = Duration::from_nanos(u64::try_from(since).unwrap_or(0));
        let place = interval.mul_f64(self.part);
        let wait = if place >= since { place - since } else { place + interval - since };
        now + wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use lb_model::{CheckKind, Via};

    const INTERVAL: Duration = Duration::from_secs(1);
    const FAST: Duration = Duration::from_millis(100);

    fn check(fast_interval: Duration) -> HealthCheck {
        HealthCheck {
            kind: CheckKind::Tcp,
            tls: None,
            via: Via::Address,
            port: 80,
            interval: INTERVAL,
            fast_interval,
            timeout: INTERVAL,
            rise: 1,
            fall: 1,
            jitter_percent: 0,
            host_probe: lb_model::HostProbe::Auto,
            host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
        }
    }

    fn pace(fast_interval: Duration, jitter_percent: u32, seed: u64) -> Pace {
        let check = HealthCheck { jitter_percent, ..check(fast_interval) };
        Pace::new(&check, false, Rng::with_seed(seed))
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
    async fn places_are_even_stay_as_they_are_and_are_never_more_than_an_interval_away() {
        let origin = Instant::now();
        let fast = check(FAST);
        let slow = HealthCheck { interval: 60 * INTERVAL, ..check(FAST) };
        for (check, in_doubt, interval) in [
            (&fast, false, INTERVAL),
            (&fast, true, FAST),
            (&slow, false, 60 * INTERVAL),
            (&HealthCheck { fast_interval: 2 * INTERVAL, ..check(FAST) }, true, INTERVAL),
        ] {
            let mut tenths = [0; 10];
            for number in 0..10_000u32 {
                let place = Place::new(origin, &number);
                let now = origin + interval.mul_f64(7.3);
                let next = place.after(now, check, in_doubt);
                let wait = next - now;
                assert!(wait <= interval, "{wait:?} of {interval:?}");
                tenths[((wait.as_nanos() * 10 / interval.as_nanos()) as usize).min(9)] += 1;
                // An edit shortly before it postpones nothing.
                let again = place.after(now + wait.mul_f64(0.9), check, in_doubt);
                assert!(again.max(next) - again.min(next) < Duration::from_micros(1));
            }
            assert!(tenths.iter().all(|n| (850..1150).contains(n)), "{interval:?}: {tenths:?}");
        }
    }

    #[tokio::test]
    async fn a_probe_at_its_place_goes_on_from_there() {
        let mut pace = Pace::new(&check(FAST), true, Rng::with_seed(1));
        let first = Instant::now();
        assert_eq!(pace.next(first, false), first + INTERVAL);
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
