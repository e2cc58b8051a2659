//! Values of single fields: numbers and durations within bounds, addresses, enums, the hash key.

use std::{fmt::Display, net::IpAddr, num::NonZeroU32, ops::RangeInclusive, time::Duration};

use lb_base::Quoted;
use lb_model::{Rate, bounds};

use super::invalid::{Invalid, ObjectPath, all};
use crate::message::ApiEnum;

/// A number that must be within a range.
pub(super) fn within<T: TryFrom<u32> + Copy>(
    at: &ObjectPath,
    field: &'static str,
    number: u32,
    range: RangeInclusive<u32>,
) -> Result<T, Invalid> {
    let (low, high) = (range.start(), range.end());
    let fits = T::try_from(number).ok().filter(|_| range.contains(&number));
    fits.ok_or_else(|| at.invalid(field, format_args!("{number} is not within {low} to {high}")))
}

/// As [`within`]; 0 means unset.
pub(super) fn within_or<T: TryFrom<u32> + Copy>(
    at: &ObjectPath,
    field: &'static str,
    number: u32,
    range: RangeInclusive<u32>,
    unset: T,
) -> Result<T, Invalid> {
    if number == 0 { Ok(unset) } else { within(at, field, number, range) }
}

/// A port.
pub(super) fn port(at: &ObjectPath, field: &'static str, number: u32) -> Result<u16, Invalid> {
    let fits = u16::try_from(number).ok().filter(|port| *port != 0);
    fits.ok_or_else(|| match number {
        0 => at.invalid(field, "must be set; give 1 to 65535"),
        _ => at.invalid(field, format_args!("{number} is not a port; give 1 to 65535")),
    })
}

/// The value of an enum; `None`: it is left to the default.
pub(super) fn value<E: ApiEnum>(
    at: &ObjectPath,
    field: &'static str,
    number: i32,
) -> Result<Option<E>, Invalid> {
    E::from_api(number).map_err(|unknown| at.invalid(field, unknown))
}

/// Balancers that share the capacities.
pub(super) fn balancers(number: u32) -> Result<NonZeroU32, Invalid> {
    let number = within_or(&ObjectPath::default(), "balancers", number, bounds::BALANCERS, 1)?;
    Ok(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
}

/// A rate of new connections that may be unset.
pub(super) fn rate(
    at: &ObjectPath,
    field: &'static str,
    per_second: Option<f64>,
) -> Result<Option<Rate>, Invalid> {
    let Some(per_second) = per_second else { return Ok(None) };
    let (low, high) = (Rate::LOWEST, Rate::HIGHEST);
    let out_of_range =
        || format!("{per_second} is not within {low} to {high} new connections a second");
    Rate::new(per_second).map(Some).ok_or_else(|| at.invalid(field, out_of_range()))
}

/// A duration between two others.
pub(super) fn duration(
    at: &ObjectPath,
    field: &'static str,
    message: prost_types::Duration,
    shortest: Duration,
    longest: Duration,
    longest_name: impl Display,
) -> Result<Duration, Invalid> {
    let duration =
        Duration::try_from(message).map_err(|_| at.invalid(field, "is not a valid duration"))?;
    if duration < shortest || duration > longest {
        let cause = format!("{duration:?} is not within {shortest:?} to {longest_name}");
        return Err(at.invalid(field, cause));
    }
    Ok(duration)
}

/// The unicast address that a text spells.
pub(super) fn address(at: &ObjectPath, text: &str) -> Result<IpAddr, Invalid> {
    if text.is_empty() {
        return Err(at.invalid("address", "must be set"));
    }
    let no_address =
        || at.invalid("address", format_args!("{} is not an IPv4 or IPv6 address", Quoted(text)));
    let address = text.parse().map_err(|_| no_address())?;
    host_address(address).map_err(|cause| at.invalid("address", cause))
}

/// The address, if a host can have it for packets on a wire.
///
/// # Errors
/// A sentence: it cannot.
pub fn host_address(address: IpAddr) -> Result<IpAddr, String> {
    match unusable(address) {
        None => Ok(address),
        Some(kind) => Err(format!("{address} is {kind}; give the unicast address of one host")),
    }
}

/// Why no packet on a wire can be for it, or `None`.
fn unusable(address: IpAddr) -> Option<&'static str> {
    match address {
        _ if address.is_unspecified() => Some("the unspecified address"),
        _ if address.is_loopback() => Some("a loopback address"),
        _ if address.is_multicast() => Some("a multicast address"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        IpAddr::V4(v4) if v4.octets()[0] >= 240 => {
            Some("in 240.0.0.0/4, which is reserved and not routed")
        }
        IpAddr::V4(v4) if v4.octets()[0] == 0 => Some("in 0.0.0.0/8, which means this network"),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Some("an IPv4 address written as IPv6"),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            Some("link-local, which says nothing without its interface")
        }
        _ => None,
    }
}

/// 32 hexadecimal digits; the first 16 are the first half, most significant first.
pub(super) fn hash_key(text: &str) -> Result<Option<[u64; 2]>, Invalid> {
    if text.is_empty() {
        return Ok(None);
    }
    let all_digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = Some(text).filter(|text| text.len() == 32 && all_digits);
    let half = |digits: &str| u64::from_str_radix(digits, 16).ok();
    // The key is a secret of the fleet: the message does not repeat it.
    let key = digits.and_then(|digits| Some([half(&digits[..16])?, half(&digits[16..])?]));
    match key {
        Some(key) => Ok(Some(key)),
        None => {
            let cause = format!("give 32 hexadecimal digits; these are {} bytes", text.len());
            Err(ObjectPath::default().invalid("hash_key", cause))
        }
    }
}

/// An object of a configuration has no etag: one that is sent would promise a check that is not made.
pub(super) fn without_etag<T>(
    at: &ObjectPath,
    etag: &str,
    object: Result<T, Invalid>,
) -> Result<T, Invalid> {
    let absent = match etag {
        "" => Ok(()),
        _ => Err(at.invalid("etag", "is only for calls about this object alone")),
    };
    all((object, absent)).map(|(object, ())| object)
}
