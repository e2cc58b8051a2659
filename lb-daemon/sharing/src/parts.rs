//! Fractions of a capacity, in whole numbers, so that moving them loses nothing.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Sub, SubAssign},
};

use serde::{Deserialize, Serialize};

/// A fraction of a capacity, in parts of 2^32.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Parts(pub u64);

impl Parts {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The whole capacity.
    pub const WHOLE: Self = Self(1 << 32);

    /// The fraction, 0 to 1.
    pub fn fraction(self) -> f64 {
        self.0 as f64 / Self::WHOLE.0 as f64
    }

    /// The parts that a fraction of the whole has, rounded down.
    pub fn from_fraction(fraction: f64) -> Self {
        Self((fraction.clamp(0.0, 1.0) * Self::WHOLE.0 as f64) as u64)
    }

    /// The whole in `count` equal portions: the one at `index`. What does not divide goes to the first ones.
    pub fn equal_portion(count: usize, index: usize) -> Self {
        let (count, index) = (count.max(1) as u64, index as u64);
        let rest = Self::WHOLE.0 % count;
        Self(Self::WHOLE.0 / count + u64::from(index < rest))
    }

    /// Scales `amounts` so that their sum is the whole, in proportion; equal portions if all are nothing. What rounding
    /// leaves goes to the first ones that have any.
    pub fn scale_to_whole(amounts: &[Self]) -> Vec<Self> {
        let sum: Self = amounts.iter().copied().sum();
        if sum == Self::NONE {
            return (0..amounts.len()).map(|at| Self::equal_portion(amounts.len(), at)).collect();
        }
        let scaled = |amount: &Self| {
            Self((u128::from(amount.0) * u128::from(Self::WHOLE.0) / u128::from(sum.0)) as u64)
        };
        let mut portions: Vec<Self> = amounts.iter().map(scaled).collect();
        let mut rest = Self::WHOLE.0 - portions.iter().map(|portion| portion.0).sum::<u64>();
        for portion in portions.iter_mut().zip(amounts).filter(|(_, amount)| amount.0 > 0) {
            if rest == 0 {
                break;
            }
            portion.0.0 += 1;
            rest -= 1;
        }
        portions
    }

    /// What is left after `other` is taken, or nothing if that is more.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Parts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Parts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Parts {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Parts {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::NONE, Add::add)
    }
}

/// As a percentage of the whole.
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", 100.0 * self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_portions_are_one_whole() {
        for count in [1, 2, 3, 7, 64, 1_000] {
            let portions: Vec<_> = (0..count).map(|at| Parts::equal_portion(count, at)).collect();
            assert_eq!(portions.iter().copied().sum::<Parts>(), Parts::WHOLE);
            assert!(portions[0].0 - portions[count - 1].0 <= 1);
        }
    }

    proptest! {
        #[test]
        fn what_is_scaled_is_one_whole(amounts in proptest::collection::vec(0..=1_u64 << 32, 1..20)) {
            let amounts: Vec<_> = amounts.into_iter().map(Parts).collect();
            let scaled = Parts::scale_to_whole(&amounts);
            prop_assert_eq!(scaled.iter().copied().sum::<Parts>(), Parts::WHOLE);
            let sum: Parts = amounts.iter().copied().sum();
            if sum > Parts::NONE {
                for (amount, scaled) in amounts.iter().zip(&scaled) {
                    let exact = amount.fraction() / sum.fraction();
                    prop_assert!((scaled.fraction() - exact).abs() < 1e-8);
                    prop_assert!(amount.0 > 0 || scaled.0 == 0, "nothing stays nothing");
                }
            }
        }
    }
}
