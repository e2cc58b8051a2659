//! The receiver at the driver's hook.

use lb_common::{
    abi::verdict::Verdict,
    receive::{DecapsulatedFrame, Decapsulation},
    wire::{Packet as _, ethernet, vlan::Tags},
};

use super::emit::HookFrame;
use crate::kernel::Frame;

impl HookFrame for Frame<'_> {
    #[inline(always)]
    fn look_deeper(&mut self) -> bool {
        false
    }

    #[inline(always)]
    fn untag(&mut self) -> Tags {
        if Tags::read(self).is_none() { Tags::NONE } else { Frame::untag(self) }
    }

    #[inline(always)]
    fn tag(&mut self, tags: Tags) -> bool {
        Frame::tag(self, tags)
    }

    #[inline(always)]
    fn wrong_checksum(&mut self, to_do: &Decapsulation) -> Option<Verdict> {
        super::checksums(self, to_do)
    }

    /// Moves the Ethernet header up to the inner packet.
    #[inline(always)]
    fn unwrap(&mut self, to_do: &Decapsulation) -> bool {
        let Some(&ethernet) = self.bytes::<{ ethernet::LENGTH }>(0) else { return false };
        let shrunk = self.shrink(to_do.outer);
        let Some(head) = self.bytes_mut::<{ ethernet::LENGTH }>(0) else { return false };
        *head = ethernet;
        [head[12], head[13]] = to_do.ether_type;
        shrunk
    }
}

impl DecapsulatedFrame for Frame<'_> {
    #[inline(always)]
    fn change_inner<const N: usize>(&mut self, change: impl FnOnce(&mut [u8; N])) -> bool {
        self.bytes_mut(ethernet::LENGTH).map(change).is_some()
    }
}
