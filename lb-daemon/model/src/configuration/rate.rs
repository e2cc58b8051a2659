use std::fmt;

/// New connections a second: finite, and within [`Rate::LOWEST`] to [`Rate::HIGHEST`].
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

// Never NaN.
impl Eq for Rate {}

impl Rate {
    /// The lowest, a second.
    pub const LOWEST: f64 = 0.1;
    /// The highest, a second.
    pub const HIGHEST: f64 = 10_000_000.0;

    /// The rate of so many a second; `None`: it is out of range or no number.
    pub fn new(per_second: f64) -> Option<Self> {
        (Self::LOWEST..=Self::HIGHEST).contains(&per_second).then_some(Self(per_second))
    }

    /// New connections a second.
    pub fn per_second(self) -> f64 {
        self.0
    }
}

/// With its unit: `10/s`, and `7/m` where that is shorter.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&spell(self.0))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A rate a second as [`parse`] reads it, to the last bit.
pub fn spell(per_second: f64) -> String {
    let per_minute = (per_second * 60.0).round();
    let short = (per_second * 1000.0).fract() == 0.0;
    if per_second.is_finite() && !short && per_minute / 60.0 == per_second {
        return format!("{per_minute}/m");
    }
    format!("{per_second}/s")
}

/// What a text such as `10/s` or `600/m` means, a second; `None`: it has no unit, or no number before
/// it.
pub fn parse(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/')?;
    let number: f64 = number.parse().ok()?;
    match unit {
        "s" => Some(number),
        "m" => Some(number / 60.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_have_a_unit() {
        for (text, per_second, spelt) in [
            ("10/s", 10.0, "10/s"),
            ("600/m", 10.0, "10/s"),
            ("30/m", 0.5, "0.5/s"),
            ("7/m", 7.0 / 60.0, "7/m"),
            ("0.123/s", 0.123, "0.123/s"),
            ("1e6/s", 1_000_000.0, "1000000/s"),
            ("-5/s", -5.0, "-5/s"),
            ("inf/s", f64::INFINITY, "inf/s"),
        ] {
            assert_eq!(parse(text), Some(per_second), "{text}");
            assert_eq!(spell(per_second), spelt, "{text}");
        }
        for text in ["", "10", "/s", "10/", "10/h", "10 /s", "10/s ", "ten/s", "10s"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_rates_within_the_range_are_rates() {
        for good in [0.1, 1.0, 10_000_000.0] {
            assert_eq!(Rate::new(good).unwrap().per_second(), good);
        }
        for bad in [0.0, -1.0, 0.099, 10_000_000.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Rate::new(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_spelt_rate_is_read_to_the_last_bit(per_second in proptest::num::f64::ANY) {
            let read = parse(&spell(per_second)).unwrap();
            prop_assert!(read == per_second || read.is_nan() && per_second.is_nan());
        }
    }
}
