//! Values with a unit as people write them: durations (`500ms`, `1h30m`) and rates of connections (`10/s`, `600/m`).

use std::{fmt, time::Duration};

use lb_model::rate;
use serde::{
    Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};

/// Units from the largest, in nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("give a unit: ms, s, m, h or d, as in 30s")]
    NoUnit,
    /// Anything else.
    #[error(
        "give whole numbers with units, the largest first: ms, s, m, h or d, as in 30s or 1h30m"
    )]
    Malformed,
    /// More than there are seconds for.
    #[error("is too long")]
    TooLong,
}

/// The duration that a text spells, as `500ms` or `1h30m`: each unit at most once, the largest first. The one grammar of
/// durations in files and on command lines.
///
/// # Errors
/// [`DurationError`]
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (mut rest, mut units, mut total) = (text, &UNITS[..], 0_u128);
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(DurationError::Malformed);
        }
        if after.is_empty() {
            return Err(DurationError::NoUnit);
        }
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let place = units.iter().position(|(name, _)| *name == unit);
        let place = place.ok_or(DurationError::Malformed)?;
        let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
        // At most 2^64 times some 2^47 for each of seven units.
        total += u128::from(number) * units[place].1;
        (rest, units) = (after, &units[place + 1..]);
    }
    let seconds = u64::try_from(total / 1_000_000_000).map_err(|_| DurationError::TooLong)?;
    Ok(Duration::new(seconds, (total % 1_000_000_000) as u32))
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

            fn visit_i64<E: Error>(self, number: i64) -> Result<Duration, E> {
                Err(E::custom(format_args!("{number}: {}", DurationError::NoUnit)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                parse_duration(text).map_err(|error| E::custom(format_args!("{text:?}: {error}")))
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
