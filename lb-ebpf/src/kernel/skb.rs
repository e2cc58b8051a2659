//! Packets as tc has them: a card's frame or several that GRO merged, of which only the first bytes can be read
//! directly.
//!
//! Nothing here writes to a packet by a pointer: with a single such write the kernel would make every packet writable
//! before the program starts.

use aya_ebpf::{
    Global,
    bindings::{
        __sk_buff, BPF_CSUM_LEVEL_QUERY, BPF_F_ADJ_ROOM_FIXED_GSO, BPF_F_INGRESS,
        BPF_F_RECOMPUTE_CSUM, bpf_adj_room_mode::BPF_ADJ_ROOM_MAC,
    },
    helpers::generated::{
        bpf_csum_level, bpf_redirect, bpf_skb_adjust_room, bpf_skb_change_proto, bpf_skb_pull_data,
        bpf_skb_store_bytes,
    },
    programs::TcContext,
};
use lb_common::wire::{Packet, ethernet, vlan::Tags};

use super::Revalidated;

/// Index of the link of probes; the loader sets it.
#[unsafe(no_mangle)]
static PROBE_LINK: Global<u32> = Global::new(0);

/// A packet at tc. Views of it must not outlive a change, which the borrow checker ensures.
pub struct Skb<'c> {
    context: &'c TcContext,
}

impl<'c> Skb<'c> {
    /// The packet of a context.
    #[inline(always)]
    pub const fn new(context: &'c TcContext) -> Self {
        Self { context }
    }

    /// The kernel's own context, for functions that are verified by themselves.
    #[inline(always)]
    pub const fn context(&self) -> *mut __sk_buff {
        self.context.skb.skb
    }

    #[inline(always)]
    const fn memory(&self) -> Revalidated<__sk_buff> {
        Revalidated::new(self.context())
    }

    /// Makes the first `length` bytes readable, or the whole packet if it is shorter. False if they already were, or if the
    /// kernel has no memory.
    #[inline(always)]
    pub fn pull(&mut self, length: usize) -> bool {
        let wanted = length.min(self.length());
        // SAFETY: the context is the kernel's; no view of the packet is alive.
        self.memory().length() < wanted
            && unsafe { bpf_skb_pull_data(self.context(), wanted as u32) == 0 }
    }

    /// Whether GRO merged it from several packets.
    #[inline(always)]
    pub fn is_merged(&self) -> bool {
        // SAFETY: the context pointer that the kernel gave is valid while the program runs.
        unsafe { (*self.context()).gso_size != 0 }
    }

    /// Whether the card or GRO noted that its outermost checksum is right.
    #[inline(always)]
    pub fn is_noted_right(&self) -> bool {
        // SAFETY: the context is the kernel's; the helper changes nothing.
        unsafe { bpf_csum_level(self.context(), BPF_CSUM_LEVEL_QUERY.into()) >= 0 }
    }

    /// Removes `by` bytes behind the Ethernet header, which clears the checksum notes and keeps the segment size of a
    /// merged packet. False if the kernel refuses.
    #[inline(always)]
    #[must_use]
    pub fn shrink(&mut self, by: usize) -> bool {
        let (by, flags) = (-(by as i32), u64::from(BPF_F_ADJ_ROOM_FIXED_GSO));
        // SAFETY: the context is the kernel's; no view of the packet is alive.
        unsafe { bpf_skb_adjust_room(self.context(), by, BPF_ADJ_ROOM_MAC, flags) == 0 }
    }

    /// Changes the EtherType to IPv4's or IPv6's. The kernel adds or removes the 20 bytes by which the headers differ: an
    /// IPv4 header grows, an IPv6 header shrinks.
    #[inline(always)]
    #[must_use]
    pub fn change_version(&mut self, ether_type: [u8; 2]) -> bool {
        let protocol = u16::from_ne_bytes(ether_type);
        // SAFETY: the context is the kernel's; no view of the packet is alive.
        let changed = unsafe { bpf_skb_change_proto(self.context(), protocol, 0) == 0 };
        // What a card has summed up begins behind the Ethernet header.
        changed && self.write(ethernet::LENGTH - 2, &ether_type, 0)
    }

    /// Writes bytes behind the Ethernet header, also to what a card has summed up.
    #[inline(always)]
    #[must_use]
    pub fn store<const N: usize>(&mut self, offset: usize, bytes: &[u8; N]) -> bool {
        self.write(offset, bytes, BPF_F_RECOMPUTE_CSUM.into())
    }

    #[inline(always)]
    fn write<const N: usize>(&mut self, offset: usize, bytes: &[u8; N], flags: u64) -> bool {
        let from = bytes.as_ptr().cast();
        // SAFETY: the kernel reads `N` bytes from there; no view of the packet is alive.
        unsafe { bpf_skb_store_bytes(self.context(), offset as u32, from, N as u32, flags) == 0 }
    }

    /// Lets it arrive by the link of probes instead; what to return.
    #[inline(always)]
    #[must_use]
    pub fn redirect_to_probe_link(&self) -> i32 {
        // SAFETY: the helper takes numbers.
        unsafe { bpf_redirect(PROBE_LINK.load(), BPF_F_INGRESS.into()) as i32 }
    }

    /// The outermost VLAN tag, which the kernel has beside the packet. A second one is among the bytes: to take
    /// it out and put it back leaves the kernel behind it (`mac_len`), and it then finds no VLAN.
    #[inline(always)]
    pub fn tag_beside(&self) -> Tags {
        // SAFETY: the context pointer that the kernel gave is valid while the program runs.
        let (is_there, protocol, rest) = unsafe {
            let skb = self.context();
            ((*skb).vlan_present, (*skb).vlan_proto, (*skb).vlan_tci)
        };
        let ([a, b], [c, d]) = ((protocol as u16).to_ne_bytes(), (rest as u16).to_be_bytes());
        if is_there == 0 { Tags::NONE } else { Tags(u32::from_le_bytes([a, b, c, d]).into()) }
    }
}

impl Packet for Skb<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]> {
        let memory = self.memory();
        let bytes: *const [u8; N] = memory.bytes(offset)?;
        // SAFETY: the bytes are the packet's, which is borrowed as long.
        Some(unsafe { &*bytes })
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.context.len() as usize
    }

    #[inline(always)]
    fn sum<const N: usize>(&self, offset: usize) -> Option<u32> {
        self.memory().sum::<N>(offset)
    }

    #[inline(always)]
    fn sum_up(&self, offset: usize, length: usize) -> Option<u32> {
        self.memory().sum_up(offset, length)
    }
}
