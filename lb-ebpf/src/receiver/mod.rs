//! The receiver: takes the outer header off what balancers send to VIPs of this host.

mod emit;
mod tc;
mod xdp;

use aya_ebpf::{
    bindings::{__sk_buff, xdp_md},
    btf_maps::{Array, HashMap, LpmTrie},
    macros::btf_map,
    programs::{TcContext, XdpContext},
};
use lb_common::{
    abi::{
        limits::MAX_ENDPOINTS,
        service::{AddressWords, VipKey},
        verdict::Verdict,
    },
    receive::{self, AllowLists, Decapsulation},
};

use crate::kernel::{self, Frame, Revalidated, Skb, global};

/// One frame through the receiver, in the driver.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    emit::xdp(Frame::new(context))
}

/// One packet through the receiver, in the stack.
#[inline(always)]
pub fn run_in_stack(context: &TcContext) -> i32 {
    emit::tc(Skb::new(context))
}

/// Prefixes of balancer addresses the trie can hold.
const MAX_SOURCES: usize = 1_024;
/// VIPs the set can hold.
const MAX_VIPS: usize = 65_536;

#[btf_map]
static SOURCES: LpmTrie<AddressWords, u32, MAX_SOURCES> = LpmTrie::new();
#[btf_map]
static VIPS: HashMap<VipKey, u32, MAX_VIPS> = HashMap::new();
#[btf_map]
static ENDPOINTS: HashMap<VipKey, u32, { MAX_ENDPOINTS as usize }> = HashMap::new();
#[btf_map]
static GUE_PORT: Array<u64, 1> = Array::new();

/// The allow-lists as the decision sees them.
struct Maps;

impl AllowLists for Maps {
    #[inline(always)]
    fn source(&self, address: &AddressWords) -> bool {
        kernel::has_prefix(&SOURCES, address)
    }

    #[inline(always)]
    fn vip(&self, address: &AddressWords, version: u8) -> bool {
        kernel::contains(&VIPS, &VipKey { address: *address, version: u32::from(version) })
    }

    #[inline(always)]
    fn endpoint(&self, address: &AddressWords, version: u8) -> bool {
        kernel::contains(&ENDPOINTS, &VipKey { address: *address, version: u32::from(version) })
    }

    #[inline(always)]
    fn gue_port(&self) -> u16 {
        kernel::word(&GUE_PORT, 0).unwrap_or(0) as u16
    }
}

// Checksums cover the whole packet: they are computed in global functions, which the kernel verifies once.

/// [`receive::checksums`]; `None`: they are right.
#[inline(always)]
fn checksums(frame: &Frame<'_>, to_do: &Decapsulation) -> Option<Verdict> {
    match wrong_checksum(frame.context(), to_do.outer as u32, to_do.protocol().into()) {
        0 => None,
        1 => Some(Verdict::OuterChecksum),
        _ => Some(Verdict::InnerChecksum),
    }
}

/// [`receive::outer_checksum`]; `None`: it is right.
#[inline(always)]
fn outer_checksum(packet: &Skb<'_>) -> Option<Verdict> {
    (wrong_outer_checksum(packet.context()) != 0).then_some(Verdict::OuterChecksum)
}

global! {
    /// Which checksum is wrong: 0: none, 1: the outer one, 2: the inner one.
    fn wrong_checksum(context: *mut xdp_md, header: u32, protocol: u32) -> u64 {
        // The decision read these headers, so they are in the packet; the verifier does not know that.
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
