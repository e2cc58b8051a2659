//! Packets that no service takes. One for a VIP is dropped or left to the host, as the VIP's word says; one for any other
//! address is the host's. So is neighbour discovery, by which routers find a VIP that the host has.

use super::{parse, tables::Tables};
use crate::{abi::verdict::Verdict, wire::Packet};

/// The verdict on a frame whose ports do not follow its IP header, if no service can have it and it is no ping; `None`: the
/// slow parser must read it.
#[inline(always)]
pub fn judge_unread<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
) -> Option<Verdict> {
    match judge(packet, tables, Verdict::OtherProtocol) {
        Verdict::NotOurs => Some(Verdict::NotOurs),
        _ if parse::may_hold_more(packet) => None,
        verdict => Some(verdict),
    }
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
        Some(word) if !word.drops_unserved() || parse::is_neighbour_discovery(packet) => verdict,
        Some(_) => Verdict::Unserved,
    }
}
