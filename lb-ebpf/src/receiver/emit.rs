//! Emit: the one exit of the receiver, where every packet is counted under one verdict.

use aya_ebpf::bindings::{
    TC_ACT_SHOT, TC_ACT_UNSPEC,
    xdp_action::{XDP_DROP, XDP_PASS},
};
use lb_common::{
    abi::verdict::{Action, Verdict},
    receive::{self, DecapsulatedFrame, Decapsulation},
    wire::{Packet, vlan::Tags},
};

use super::Maps;
use crate::{
    count_verdict,
    kernel::{Frame, Skb},
};

/// A frame at one of the kernel's hooks, with what the receiver needs to decapsulate it there.
pub(super) trait HookFrame: Packet + DecapsulatedFrame {
    /// Makes more of the frame readable; false if all of it is.
    #[must_use]
    fn look_deeper(&mut self) -> bool;

    /// Takes its VLAN tags off and returns them.
    fn untag(&mut self) -> Tags;

    /// Puts back what [`Self::untag`] took away; false where there is no room.
    #[must_use]
    fn tag(&mut self, tags: Tags) -> bool;

    /// What is wrong with the checksums of a tunnel in UDP; `None`: nothing.
    fn wrong_checksum(&mut self, to_do: &Decapsulation) -> Option<Verdict>;

    /// Takes the outer headers off, and sets the Ethernet header's type to the inner packet's; false if it cannot.
    #[must_use]
    fn unwrap(&mut self, to_do: &Decapsulation) -> bool;
}

/// The XDP action for a frame.
#[inline(always)]
pub(super) fn xdp(frame: Frame<'_>) -> u32 {
    match emit(frame) {
        Action::Pass => XDP_PASS,
        _ => XDP_DROP,
    }
}

/// The tc action for a packet; programs after this one may see what passes.
#[inline(always)]
pub(super) fn tc(packet: Skb<'_>) -> i32 {
    match emit(packet) {
        Action::Pass => TC_ACT_UNSPEC,
        _ => TC_ACT_SHOT,
    }
}

/// Decides about a frame, rewrites it and counts it.
#[inline(always)]
fn emit<H: HookFrame>(mut frame: H) -> Action {
    // VLAN tags belong to the link, so the inner packet keeps them.
    let tags = frame.untag();
    let bytes = (frame.length() + tags.length()) as u64;
    let decided = match receive::decide(&frame, &Maps) {
        // Extension headers may lie beyond what can be read.
        Err(Verdict::InnerMalformed) if frame.look_deeper() => receive::decide(&frame, &Maps),
        decided => decided,
    };
    let mut verdict = match decided {
        Err(verdict) => verdict,
        Ok(to_do) if to_do.is_udp => match frame.wrong_checksum(&to_do) {
            Some(wrong) => wrong,
            None => unwrap(&mut frame, &to_do),
        },
        Ok(to_do) => unwrap(&mut frame, &to_do),
    };
    if !tags.is_none() && verdict.action() == Action::Pass && !frame.tag(tags) {
        verdict = Verdict::NoHeadroom;
    }
    count_verdict(verdict, bytes);
    verdict.action()
}

/// Makes a frame the inner packet's.
#[inline(always)]
fn unwrap<H: HookFrame>(frame: &mut H, to_do: &Decapsulation) -> Verdict {
    let is_done = frame.unwrap(to_do) && to_do.mark(frame);
    if is_done { Verdict::Decapsulated } else { Verdict::InnerMalformed }
}
