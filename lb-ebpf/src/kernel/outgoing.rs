//! Packets of the host's own on their way out (tc, egress).

use aya_ebpf::{
    bindings::{
        BPF_F_ADJ_ROOM_ENCAP_L3_IPV4, BPF_F_ADJ_ROOM_ENCAP_L3_IPV6, BPF_F_ADJ_ROOM_ENCAP_L4_UDP,
        bpf_adj_room_mode::BPF_ADJ_ROOM_MAC, bpf_redir_neigh, bpf_redir_neigh__bindgen_ty_1,
    },
    helpers::generated::{bpf_redirect_neigh, bpf_skb_adjust_room, bpf_skb_store_bytes},
    programs::TcContext,
};
use lb_common::{abi::service::AddressWords, wire::ethernet};

/// Address families as the kernel numbers them.
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// A packet that is about to leave by a link; its Ethernet header stands in front.
pub struct Outgoing<'c> {
    context: &'c TcContext,
}

impl<'c> Outgoing<'c> {
    /// The packet of a context.
    #[inline(always)]
    pub const fn new(context: &'c TcContext) -> Self {
        Self { context }
    }

    /// The mark of its socket, which is taken off: no rule for it applies any more.
    #[inline(always)]
    pub fn take_mark(&mut self) -> u32 {
        // SAFETY: the context pointer that the kernel gave is valid while the program runs.
        let mark = unsafe { (*self.context.skb.skb).mark };
        self.context.set_mark(0);
        mark
    }

    /// Type of its payload, as in the frame.
    #[inline(always)]
    pub fn ether_type(&self) -> [u8; 2] {
        // SAFETY: as in `take_mark`.
        let [first, second, ..] = unsafe { (*self.context.skb.skb).protocol }.to_ne_bytes();
        [first, second]
    }

    /// Length without the Ethernet header, bytes.
    #[inline(always)]
    pub fn ip_length(&self) -> u32 {
        self.context.len().wrapping_sub(ethernet::LENGTH as u32)
    }

    /// Makes room of `by` bytes for an outer IP header, IPv4 or IPv6, and for what follows it. From then on
    /// the packet is of the outer version, and what it had is inside to the kernel and to cards, so that they
    /// complete checksums there. False: there is no memory.
    #[inline(always)]
    #[must_use]
    pub fn wrap(&mut self, by: u16, in_v4: bool, in_udp: bool) -> bool {
        let outer = if in_v4 { BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 } else { BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 };
        let udp = if in_udp { BPF_F_ADJ_ROOM_ENCAP_L4_UDP } else { 0 };
        let flags = u64::from(outer | udp);
        // SAFETY: the context is the kernel's; no view of the packet is alive.
        unsafe {
            bpf_skb_adjust_room(self.context.skb.skb, i32::from(by), BPF_ADJ_ROOM_MAC, flags) == 0
        }
    }

    /// Writes bytes at an offset; `None`: the packet ends before.
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) -> Option<()> {
        let from = bytes.as_ptr().cast();
        // SAFETY: the kernel reads `N` bytes of the array, which lives.
        let done =
            unsafe { bpf_skb_store_bytes(self.context.skb.skb, offset as u32, from, N as u32, 0) };
        (done == 0).then_some(())
    }

    /// Lets it leave by an interface, to the neighbour that its route there leads to; what to return.
    #[inline(always)]
    #[must_use]
    pub fn send(&mut self, interface: u32) -> i32 {
        // SAFETY: without parameters the helper reads nothing.
        unsafe { bpf_redirect_neigh(interface, core::ptr::null_mut(), 0, 0) as i32 }
    }

    /// Lets it leave by an interface to a neighbour there; what to return.
    #[inline(always)]
    #[must_use]
    pub fn send_to(&mut self, interface: u32, is_v4: bool, neighbour: &AddressWords) -> i32 {
        let mut to = bpf_redir_neigh {
            nh_family: if is_v4 { AF_INET } else { AF_INET6 },
            __bindgen_anon_1: bpf_redir_neigh__bindgen_ty_1 {
                ipv6_nh: if is_v4 { [neighbour[3], 0, 0, 0] } else { *neighbour },
            },
        };
        let length = size_of::<bpf_redir_neigh>() as i32;
        // SAFETY: the kernel reads `length` bytes of the parameters, which live.
        unsafe { bpf_redirect_neigh(interface, &raw mut to, length, 0) as i32 }
    }
}
