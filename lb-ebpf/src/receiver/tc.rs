//! The receiver at tc's hook, for drivers without native XDP.

use lb_common::{
    abi::{service::IPV4, verdict::Verdict},
    receive::{DecapsulatedFrame, Decapsulation},
    wire::{
        Packet as _, ethernet, gue, ipv4, ipv6,
        udp::{self, Udp},
        vlan::Tags,
    },
};

use super::emit::HookFrame;
use crate::kernel::Skb;

/// The headers that a tunnel begins with, at the longest, without extension headers.
pub(super) const HEADERS: usize =
    ethernet::LENGTH + ipv6::LENGTH + udp::LENGTH + gue::LENGTH + ipv6::LENGTH;
/// Beyond where a balancer stops following extension headers: four, each of 2,048 bytes at most.
const FARTHEST: usize = HEADERS + 4 * 2_048 + 8;

impl HookFrame for Skb<'_> {
    #[inline(always)]
    fn look_deeper(&mut self) -> bool {
        self.pull(FARTHEST)
    }

    /// The kernel holds the tag beside the packet, so there is nothing to put back.
    #[inline(always)]
    fn untag(&mut self) -> Tags {
        let _all_of_it_was_readable = self.pull(HEADERS);
        self.tag_beside()
    }

    #[inline(always)]
    fn tag(&mut self, _: Tags) -> bool {
        true
    }

    /// Taking a header off clears the checksum notes, so the stack checks the inner packet itself.
    #[inline(always)]
    fn wrong_checksum(&mut self, to_do: &Decapsulation) -> Option<Verdict> {
        let udp = self.bytes(to_do.udp()).map(Udp)?;
        // Balancers send no checksum, and GRO merges only packets whose checksum is right.
        if !udp.has_checksum() || self.is_merged() || self.is_noted_right() {
            return None;
        }
        self.pull(usize::MAX);
        super::outer_checksum(self)
    }

    #[inline(always)]
    fn unwrap(&mut self, to_do: &Decapsulation) -> bool {
        /// Difference of the two versions' header lengths, bytes.
        const DIFFERENCE: usize = ipv6::LENGTH - ipv4::LENGTH;
        if to_do.outer_version() == to_do.version() {
            return self.shrink(to_do.outer);
        }
        let outer = if to_do.version() == IPV4 {
            to_do.outer - DIFFERENCE
        } else {
            to_do.outer + DIFFERENCE
        };
        self.change_version(to_do.ether_type) && self.shrink(outer)
    }
}

impl DecapsulatedFrame for Skb<'_> {
    #[inline(always)]
    fn change_inner<const N: usize>(&mut self, change: impl FnOnce(&mut [u8; N])) -> bool {
        let Some(&(mut header)) = self.bytes::<N>(ethernet::LENGTH) else { return false };
        change(&mut header);
        self.store(ethernet::LENGTH, &header)
    }
}
