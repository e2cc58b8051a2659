//! The tutorial's times and rates, and ours.

use std::time::Duration;

/// One second of the tutorial takes so many of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale(pub(crate) f64);

impl Scale {
    /// A time of the tutorial, as we let it pass.
    pub(crate) fn shorter(self, time: Duration) -> Duration {
        time.mul_f64(self.0)
    }

    /// A rate of the tutorial, as we send it. Rounded to thousandths, as it is written.
    pub(crate) fn faster(self, rate: f64) -> f64 {
        (rate / self.0 * 1000.0).round() / 1000.0
    }

    /// A time of ours in the tutorial's.
    pub(crate) fn told(self, time: f64) -> f64 {
        time / self.0
    }

    /// How far an average may be off because the machine stands still now and then, in the unit and
    /// time that it is told in: at scale 1 next to nothing.
    pub(crate) fn noise_ms(self) -> f64 {
        self.told(15.0)
    }

    /// A rate of ours in the tutorial's.
    pub(crate) fn told_rate(self, rate: f64) -> f64 {
        rate * self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let scale = Scale(0.04);
        assert_eq!(scale.shorter(Duration::from_millis(385)), Duration::from_micros(15_400));
        assert_eq!((scale.faster(10.0), scale.told_rate(250.0)), (250.0, 10.0));
        assert_eq!(scale.told(15.4), 385.0);
        assert_eq!(Scale(0.03).faster(10.0), 333.333);
    }
}
