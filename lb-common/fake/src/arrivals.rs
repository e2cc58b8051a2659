//! Arrivals at random, for simulations.

/// How many come where `mean` are expected (Poisson).
pub fn poisson(random: &mut fastrand::Rng, mean: f64) -> u64 {
    /// Of a larger mean exp() is too small for a product of many factors.
    const LARGEST: f64 = 30.0;
    let (mut count, mut rest) = (0, mean);
    while rest > 0.0 {
        let limit = (-rest.min(LARGEST)).exp();
        let mut product = random.f64();
        while product > limit {
            count += 1;
            product *= random.f64();
        }
        rest -= LARGEST;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of a Poisson distribution are equal. Of 20,000 samples the mean is within 5 standard errors.
    #[test]
    fn arrivals_have_the_mean_and_the_variance() {
        let mut random = fastrand::Rng::with_seed(1);
        for mean in [0.3, 7.0, 95.0] {
            let count = 20_000;
            let samples: Vec<f64> = (0..count).map(|_| poisson(&mut random, mean) as f64).collect();
            let found = samples.iter().sum::<f64>() / f64::from(count);
            let error = (mean / f64::from(count)).sqrt();
            assert!((found - mean).abs() < 5.0 * error, "{found} instead of {mean}");
            let squares: f64 = samples.iter().map(|it| (it - found).powi(2)).sum();
            let variance = squares / f64::from(count);
            assert!((variance / mean - 1.0).abs() < 0.1, "{variance} instead of {mean}");
        }
    }
}
