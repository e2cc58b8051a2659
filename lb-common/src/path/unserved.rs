//! Packets that no service takes. One for a VIP is dropped or left to the host, as the VIP's word says; one for any other
//! address is the host's.

use super::{parse, tables::Tables};
use crate::{abi::verdict::Verdict, wire::Packet};

/// Whether a frame may be for a service although its ports do not follow its IP header: its destination is a VIP.
#[inline(always)]
pub fn is_for_vip<P: Packet + ?Sized, T: Tables + ?Sized>(packet: &P, tables: &T) -> bool {
    parse::destination(packet)
        .is_some_and(|(address, version)| tables.vip(&address, version).is_some())
}

/// The verdict on a frame that no service takes, of which `verdict` says why; any other verdict stays as it is.
#[inline(always)]
pub fn judge<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
    verdict: Verdict,
) -> Verdict {
    if !matches!(verdict, Verdict::NotOurs | Verdict::OtherProtocol | Verdict::LaterFragment) {
        return verdict;
    }
    let Some((address, version)) = parse::destination(packet) else { return verdict };
    match tables.vip(&address, version) {
        None => Verdict::NotOurs,
        Some(word) if word.drops_unserved() => Verdict::Unserved,
        Some(_) => verdict,
    }
}
