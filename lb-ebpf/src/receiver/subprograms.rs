//! Subprograms that sum whole packets: global functions, which the kernel verifies once.

use aya_ebpf::bindings::{__sk_buff, xdp_md};
use lb_common::{
    abi::verdict::Verdict,
    receive::{self, Decapsulation},
};

use crate::kernel::{Frame, Revalidated, Skb, global};

/// [`receive::checksums`]; `None`: they are right.
#[inline(always)]
pub(super) fn checksums(frame: &Frame<'_>, to_do: &Decapsulation) -> Option<Verdict> {
    match wrong_checksum(frame.context(), to_do.outer as u32, to_do.protocol().into()) {
        0 => None,
        1 => Some(Verdict::OuterChecksum),
        _ => Some(Verdict::InnerChecksum),
    }
}

/// [`receive::outer_checksum`]; `None`: it is right.
#[inline(always)]
pub(super) fn outer_checksum(packet: &Skb<'_>) -> Option<Verdict> {
    (wrong_outer_checksum(packet.context()) != 0).then_some(Verdict::OuterChecksum)
}

global! {
    /// Which checksum is wrong: 0: none, 1: the outer one, 2: the inner one.
    fn wrong_checksum(context: *mut xdp_md, header: u32, protocol: u32) -> u64 {
        // A packet that was taken for a tunnel cannot be unreadable now; the verifier does not know it.
        let header = header as usize & 0x3f;
        match receive::checksums(&Revalidated::new(context), header, protocol as u8) {
            Ok(()) => 0,
            Err(Verdict::OuterChecksum) => 1,
            Err(_) => 2,
        }
    }

    /// Whether the outer checksum is wrong: 0: it is not.
    fn wrong_outer_checksum(context: *mut __sk_buff) -> u64 {
        u64::from(receive::outer_checksum(&Revalidated::new(context)).is_err())
    }
}
