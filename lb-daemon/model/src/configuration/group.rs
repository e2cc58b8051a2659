use std::fmt;

use super::Rate;

/// What is set of a pool's backends in one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// New connections a second over all balancers; `None`: the sum over its healthy backends, where
    /// each has a limit of its own, else no limit.
    pub capacity: Option<Rate>,
    /// Share of the capacity in use, unless it is drained.
    pub scaler: Scaler,
    /// Whether it takes no new connections, whatever the scaler.
    pub drained: bool,
}

impl GroupSettings {
    /// Share of the capacity in use now.
    pub fn in_use(&self) -> Scaler {
        if self.drained { Scaler::NONE } else { self.scaler }
    }
}

/// A share: 0, or 0.1 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Scaler(f64);

// Never NaN.
impl Eq for Scaler {}

impl Scaler {
    /// Nothing.
    pub const NONE: Self = Self(0.0);
    /// The whole.
    pub const WHOLE: Self = Self(1.0);
    const LOWEST: f64 = 0.1;

    /// The share; `None`: it is neither 0 nor within 0.1 to 1.
    pub fn new(share: f64) -> Option<Self> {
        // Minus zero is zero, and is kept as that.
        let share = share + 0.0;
        (share == 0.0 || (Self::LOWEST..=1.0).contains(&share)).then_some(Self(share))
    }

    /// The share.
    pub fn share(self) -> f64 {
        self.0
    }
}

impl Default for Scaler {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Scaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Scaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaler_is_nothing_or_a_tenth_to_the_whole() {
        for good in [0.0, 0.1, 0.5, 1.0] {
            assert_eq!(Scaler::new(good).unwrap().share(), good);
        }
        assert_eq!(Scaler::new(-0.0).unwrap().to_string(), "0");
        for bad in [0.05, 0.099, 1.001, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Scaler::new(bad), None, "{bad}");
        }
    }
}
