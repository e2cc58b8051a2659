//! Numbers within bounds.

use std::{fmt::Display, num::NonZeroU32, ops::RangeInclusive, time::Duration};

use super::invalid::{Invalid, Place};
use crate::message::ApiEnum;
use lb_model::{Rate, bounds};

/// A number that must be within a range.
pub(super) fn within<T: TryFrom<u32> + Copy>(
    at: &Place,
    field: &'static str,
    number: u32,
    range: RangeInclusive<u32>,
) -> Result<T, Invalid> {
    let (low, high) = (range.start(), range.end());
    let fits = T::try_from(number).ok().filter(|_| range.contains(&number));
    fits.ok_or_else(|| at.wrong(field, format_args!("{number} is not within {low} to {high}")))
}

/// As [`within`]; 0 means unset.
pub(super) fn within_or<T: TryFrom<u32> + Copy>(
    at: &Place,
    field: &'static str,
    number: u32,
    range: RangeInclusive<u32>,
    unset: T,
) -> Result<T, Invalid> {
    if number == 0 { Ok(unset) } else { within(at, field, number, range) }
}

/// A port.
pub(super) fn port(at: &Place, field: &'static str, number: u32) -> Result<u16, Invalid> {
    let fits = u16::try_from(number).ok().filter(|port| *port != 0);
    fits.ok_or_else(|| match number {
        0 => at.wrong(field, "must be set; give 1 to 65535"),
        _ => at.wrong(field, format_args!("{number} is not a port; give 1 to 65535")),
    })
}

/// The value of an enum; `None`: it is left to the default.
pub(super) fn value<E: ApiEnum>(
    at: &Place,
    field: &'static str,
    number: i32,
) -> Result<Option<E>, Invalid> {
    E::from_api(number).map_err(|unknown| at.wrong(field, unknown))
}

/// Balancers that share the capacities.
pub(super) fn balancers(number: u32) -> Result<NonZeroU32, Invalid> {
    let number = within_or(&Place::default(), "balancers", number, bounds::BALANCERS, 1)?;
    Ok(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
}

/// A rate of new connections that may be unset.
pub(super) fn rate(
    at: &Place,
    field: &'static str,
    per_second: Option<f64>,
) -> Result<Option<Rate>, Invalid> {
    let Some(per_second) = per_second else { return Ok(None) };
    let (low, high) = (Rate::LOWEST, Rate::HIGHEST);
    let out_of_range =
        || format!("{per_second} is not within {low} to {high} new connections a second");
    Rate::new(per_second).map(Some).ok_or_else(|| at.wrong(field, out_of_range()))
}

/// A duration between two others.
pub(super) fn duration(
    at: &Place,
    field: &'static str,
    message: prost_types::Duration,
    shortest: Duration,
    longest: Duration,
    longest_name: impl Display,
) -> Result<Duration, Invalid> {
    let duration = Duration::try_from(message)
        .map_err(|_| at.wrong(field, "is negative or no duration at all"))?;
    if duration < shortest || duration > longest {
        let cause = format!("{duration:?} is not within {shortest:?} to {longest_name}");
        return Err(at.wrong(field, cause));
    }
    Ok(duration)
}
