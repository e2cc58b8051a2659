//! Values with a unit as people write them: durations (`500ms`, `2s`) and rates of connections (`10/s`, `600/m`).

use std::{fmt, time::Duration};

use lb_model::rate;
use serde::{
    Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};

/// Units from the largest, in nanoseconds.
const UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The duration that a text spells, as `500ms`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let total = number.parse::<u64>().ok().map(|n| u128::from(n) * nanoseconds)?;
    let seconds = u64::try_from(total / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (total % 1_000_000_000) as u32))
}

/// The shortest spelling of a duration that is exact; nothing below a nanosecond exists. Longer
/// times than 2^64 ns are spelt in seconds, rounded down.
pub(super) fn spell_duration(duration: Duration) -> String {
    let total = duration.as_nanos();
    if u64::try_from(total).is_err() {
        return format!("{}s", duration.as_secs());
    }
    let exact = UNITS.iter().find(|(_, unit)| total != 0 && total.is_multiple_of(*unit));
    let (name, unit) = exact.unwrap_or(&("s", 1_000_000_000));
    format!("{}{name}", total / unit)
}

/// For `#[serde(with = …)]`.
pub(super) mod duration {
    use super::*;

    pub(in crate::document) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_str(&spell_duration(*duration)),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::document) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"500ms\" or \"2s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                parse_duration(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text).map(Some)
    }
}

/// For `#[serde(with = …)]`.
pub(super) mod rate_per_second {
    use super::*;

    pub(in crate::document) fn serialize<S: Serializer>(
        per_second: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match per_second {
            Some(per_second) => serializer.serialize_str(&rate::spell(*per_second)),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::document) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = f64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with its unit, such as \"10/s\" or \"600/m\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
                rate::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text).map(Some)
    }
}
