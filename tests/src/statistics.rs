//! What chance allows, and the middle of what was measured.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

/// Whether counts are as even as those of independent draws among equals: each within `sigmas`
/// standard deviations (binomial) of the mean.
///
/// # Errors
/// Names the first that is not.
pub fn ensure_even(counts: &[u64], sigmas: f64) -> Result<()> {
    let total: u64 = counts.iter().sum();
    ensure!(total > 0, "nothing to be spread");
    let share = 1.0 / counts.len() as f64;
    let mean = total as f64 * share;
    let deviation = (mean * (1.0 - share)).sqrt();
    for (number, count) in counts.iter().enumerate() {
        let off = (*count as f64 - mean) / deviation;
        ensure!(
            off.abs() <= sigmas,
            "number {number} has {count} of {total}: {off:.1} standard deviations off the mean of \
             {mean:.0}"
        );
    }
    Ok(())
}

/// The middle value.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How long something took, each time that it was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(Vec<Duration>);

impl Times {
    /// These times, in any order.
    pub fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// Adds those that were measured later.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Duration>) {
        self.0.extend(others);
        self.0.sort();
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The least time that this part of all, above 0 and up to 1, did not exceed. 0 if there are none.
    pub fn quantile(&self, part: f64) -> Duration {
        let place = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(place.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or_default()
    }
}

impl IntoIterator for Times {
    type Item = Duration;
    type IntoIter = std::vec::IntoIter<Duration>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, most] =
            [0.5, 0.99, 1.0].map(|part| self.quantile(part).as_secs_f64() * 1000.0);
        let count = self.count();
        write!(f, "p50 {p50:.1} ms, p99 {p99:.1} ms, at most {most:.1} ms of {count}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_nearest_rank() {
        let milliseconds =
            |numbers: &[u64]| numbers.iter().map(|it| Duration::from_millis(*it)).collect();
        // Nearest rank: of 5, 30 % are 2 and 40 % are 2; of 100, 99 % are 99.
        let mut times = Times::new(milliseconds(&[50, 15, 40, 20, 35]));
        let quantile = |times: &Times, part| times.quantile(part).as_millis();
        assert_eq!([0.05, 0.3, 0.4, 0.5, 1.0].map(|it| quantile(&times, it)), [15, 20, 20, 35, 50]);
        times.extend(Times::new(milliseconds(&[10])));
        assert_eq!((times.count(), quantile(&times, 0.01)), (6, 10));
        let hundred = Times::new((1..=100).map(Duration::from_millis).collect());
        assert_eq!(hundred.to_string(), "p50 50.0 ms, p99 99.0 ms, at most 100.0 ms of 100");
        assert_eq!(Times::default().quantile(0.99), Duration::ZERO);
    }

    #[test]
    fn the_bound_is_that_of_the_binomial() {
        // 1000 draws among two: mean 500, standard deviation 15.8.
        assert!(ensure_even(&[563, 437], 4.0).is_ok());
        let error = ensure_even(&[564, 436], 4.0).unwrap_err().to_string();
        let expected = "number 0 has 564 of 1000: 4.0 standard deviations off the mean of 500";
        assert_eq!(error, expected);
        assert!(ensure_even(&[0, 0], 4.0).is_err());
    }
}
