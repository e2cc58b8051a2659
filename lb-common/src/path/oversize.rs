//! Packets that do not fit their backend's MTU after encapsulation. The balancer makes no fragments, because both ends
//! would need memory for them: every outer packet has DF set.
//!
//! A sender that forbids fragments (DF, and all of IPv6) is told which size fits by an ICMP error (RFC 1191, RFC 8201).
//! A packet without DF is dropped: RFC 1191 has no error for it.

use super::{
    Choice, Query, Tables, encapsulate,
    icmp_error::{self, Cause, IcmpError},
};
use crate::{abi::verdict::Verdict, wire::Packet};

/// Largest packet that fits where a resolved query goes, bytes.
#[inline(always)]
pub fn room<T: Tables + ?Sized>(tables: &T, query: &Query, choice: &Choice) -> u16 {
    let backend = tables.backend(choice.member.backend());
    match (backend, tables.descriptor(query.line().versions().now())) {
        (Some(backend), Some(descriptor)) => encapsulate::room(backend, descriptor.form()),
        _ => 0,
    }
}

/// The answer to a frame, where packets of at most `room` bytes fit.
///
/// # Errors
/// [`Verdict::TooLarge`]: no error may be sent ([`icmp_error`]), or the packet is of IPv4 without DF, or a limit of errors is
/// reached.
#[inline(always)]
pub fn too_large<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
    room: u16,
) -> Result<IcmpError, Verdict> {
    icmp_error::within_limits(packet, tables, Cause::TooLarge(room)).ok_or(Verdict::TooLarge)
}
