//! Headers as they stand in a packet: views over byte arrays, and writers into them.
//!
//! A view never judges: it names fields. [`crate::path`] validates them.

pub mod ethernet;
pub mod extension;
pub mod gue;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod packet;
pub mod tcp;
pub mod udp;
pub mod vlan;

/// IP protocol number of ICMP (RFC 792).
pub const ICMP: u8 = 1;
/// IP protocol number of ICMPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// IP protocol number of TCP (RFC 9293).
pub const TCP: u8 = 6;
/// IP protocol number of UDP (RFC 768).
pub const UDP: u8 = 17;
/// IP protocol number of IPv4 in IP (RFC 2003).
pub const IP_IN_IP: u8 = 4;
/// IP protocol number of IPv6 in IP (RFC 2473, RFC 4213).
pub const IPV6_IN_IP: u8 = 41;
/// Hop limit and TTL of the outer header (RFC 1700's recommended default).
pub const OUTER_HOP_LIMIT: u8 = 64;
