//! How many slots each member owns.

use std::cmp::Reverse;

/// Quotas by largest remainder; they sum to `slots`. Ties go to the lower ranks.
///
/// At least one weight is above 0, and there are fewer than 2^16, so that no sum overflows.
pub(super) fn quotas(weights: &[u32], slots: u32) -> Vec<u32> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let exact = |weight: u32| u64::from(slots) * u64::from(weight);
    let mut quotas: Vec<u32> = weights.iter().map(|&w| (exact(w) / total) as u32).collect();
    let missing = slots - quotas.iter().sum::<u32>();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|&rank| Reverse(exact(weights[rank]) % total));
    for &rank in &by_remainder[..missing as usize] {
        quotas[rank] += 1;
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(quotas(&[1], 7), [7]);
        assert_eq!(quotas(&[1, 1, 1], 7), [3, 2, 2]);
        // 7 of 10: 0.7, 1.4, 2.1, 2.8.
        assert_eq!(quotas(&[1, 2, 3, 4], 7), [1, 1, 2, 3]);
        // 5 of 8: 0.625, 1.875, 0, 2.5.
        assert_eq!(quotas(&[1, 3, 0, 4], 5), [1, 2, 0, 2]);
        assert_eq!(quotas(&[u32::MAX, 1], 65_537), [65_537, 0]);
    }
}
