//! Addresses of VIPs and backends.

use std::net::IpAddr;

use super::invalid::{Invalid, Place};
use lb_base::Quoted;

/// The unicast address that a text spells.
pub(super) fn address(at: &Place, text: &str) -> Result<IpAddr, Invalid> {
    if text.is_empty() {
        return Err(at.wrong("address", "must be set"));
    }
    let no_address =
        || at.wrong("address", format_args!("{} is not an IPv4 or IPv6 address", Quoted(text)));
    let address = text.parse().map_err(|_| no_address())?;
    match unusable(address) {
        None => Ok(address),
        Some(kind) => Err(at.wrong(
            "address",
            format_args!("{address} is {kind}; give the unicast address of one host"),
        )),
    }
}

/// Why no packet on a wire can be for it, or `None`.
fn unusable(address: IpAddr) -> Option<&'static str> {
    match address {
        _ if address.is_unspecified() => Some("the unspecified address"),
        _ if address.is_loopback() => Some("a loopback address"),
        _ if address.is_multicast() => Some("a multicast address"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        IpAddr::V4(v4) if v4.octets()[0] == 0 => Some("in 0.0.0.0/8, which means this network"),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Some("an IPv4 address written as IPv6"),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            Some("link-local, which says nothing without its interface")
        }
        _ => None,
    }
}
