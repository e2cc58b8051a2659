//! How many new connections a second reach a balancer for a group.

use std::{collections::VecDeque, time::Duration};

/// A change is seen after this time.
pub(crate) const SHORT: Duration = Duration::from_millis(500);
/// Demand that stands still is averaged over this time.
const LONG: Duration = Duration::from_secs(2);
/// A short average that is below the long one by more than so many standard deviations is a change, not noise.
const DEVIATIONS: f64 = 4.0;

/// Turns readings of a counter of offered connections into a rate.
///
/// It follows a rise within half a second. A fall is followed as fast if it is larger than what arrivals at random
/// (Poisson) vary by; otherwise the rate is the average of two seconds. So demand that stands still has few changes, and
/// demand that moved to another balancer is not credited to this one for two more seconds.
#[derive(Clone, Debug, Default)]
pub struct DemandAverage {
    /// Times and counts, oldest first; the first one is at most [`LONG`] old, or the last one that is older.
    readings: VecDeque<(Duration, u64)>,
}

impl DemandAverage {
    /// Takes a reading of the counter. One that is lower than the last starts the measurement again: the counter was
    /// reset.
    pub fn record(&mut self, now: Duration, offered: u64) {
        if self.readings.back().is_some_and(|(_, last)| offered < *last) {
            self.readings.clear();
        }
        self.readings.push_back((now, offered));
        while self.readings.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= LONG) {
            self.readings.pop_front();
        }
    }

    /// Whether the rate is one of half a second at least. Before that it says little, and at first nothing.
    pub fn is_measured(&self) -> bool {
        let span = self.readings.front().zip(self.readings.back());
        span.is_some_and(|((first, _), (last, _))| last.saturating_sub(*first) >= SHORT)
    }

    /// New connections a second; 0 until two readings are there.
    pub fn per_second(&self) -> f64 {
        let (short, long) = (self.average(SHORT), self.average(LONG));
        let noise = (long / SHORT.as_secs_f64()).sqrt();
        if long - short > DEVIATIONS * noise { short } else { short.max(long) }
    }

    /// Average over a time, or over all readings if they are younger.
    fn average(&self, over: Duration) -> f64 {
        let Some((end, last)) = self.readings.back() else { return 0.0 };
        let since = |(at, _): &&(Duration, u64)| end.saturating_sub(*at) >= over;
        let Some((start, first)) = self.readings.iter().rev().find(since).or(self.readings.front())
        else {
            return 0.0;
        };
        let elapsed = end.saturating_sub(*start).as_secs_f64();
        if elapsed == 0.0 { 0.0 } else { (last - first) as f64 / elapsed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(250);

    /// The rates that an average shows while so many connections come in each step.
    fn rates(counts: &[u64]) -> Vec<f64> {
        let (mut average, mut total) = (DemandAverage::default(), 0);
        average.record(Duration::ZERO, 0);
        let mut rate = |(step, count): (usize, &u64)| {
            total += count;
            average.record(STEP * (step as u32 + 1), total);
            average.per_second()
        };
        counts.iter().enumerate().map(&mut rate).collect()
    }

    #[test]
    fn a_rise_and_a_fall_are_seen_in_half_a_second() {
        let counts: Vec<u64> = [[0; 8], [200; 8], [0; 8]].concat();
        let rates = rates(&counts);
        assert_eq!(rates[7], 0.0);
        assert_eq!(rates[9], 800.0, "half a second after the rise");
        assert_eq!(rates[15], 800.0);
        assert_eq!(rates[17], 0.0, "half a second after the fall");
    }

    #[test]
    fn noise_does_not_lower_the_rate() {
        // The sum of both steps is 20 lower for once: one standard deviation of 400 in half a second.
        let counts: Vec<u64> = [[200; 8].as_slice(), &[180], &[200; 4]].concat();
        for (step, rate) in rates(&counts).iter().enumerate().skip(1) {
            assert!(*rate >= 790.0, "{rate} a second after step {step}");
        }
    }

    #[test]
    fn a_counter_that_starts_again_gives_no_demand() {
        let mut average = DemandAverage::default();
        average.record(Duration::ZERO, 1_000_000);
        average.record(STEP, 1_000_100);
        assert!(!average.is_measured());
        assert_eq!(average.per_second(), 400.0);
        average.record(2 * STEP, 5);
        assert_eq!(average.per_second(), 0.0);
        assert!(!average.is_measured(), "it begins again");
        average.record(3 * STEP, 10);
        assert_eq!(average.per_second(), 20.0);
        average.record(4 * STEP, 15);
        assert!(average.is_measured());
    }
}
