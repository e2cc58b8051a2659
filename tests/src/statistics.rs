//! What chance allows, and the middle of what was measured.

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

#[cfg(test)]
mod tests {
    use super::*;

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
