//! Emit: the one exit of the receiver, where every packet is counted under one verdict.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use lb_common::{
    abi::verdict::{Action, Verdict},
    receive::{self, Decapsulation},
    wire::{ethernet, ipv4, ipv6, packet::Packet, vlan::Tags},
};

use super::maps::Lists;
use crate::{counters, kernel::Frame};

/// Decides about a frame, rewrites it, counts it, and returns the driver's action.
#[inline(always)]
pub(super) fn emit(mut frame: Frame<'_>) -> u32 {
    // VLAN tags are the link's: what is inside the tunnel gets them too.
    let tags = if Tags::of(&frame).is_none() { Tags::NONE } else { frame.untag() };
    let bytes = (frame.length() + tags.length()) as u64;
    let mut verdict = match receive::decide(&frame, &Lists) {
        Err(verdict) => verdict,
        Ok(decapsulation) => unwrap(&mut frame, &decapsulation),
    };
    if !tags.is_none() && verdict.action() == Action::Pass && !frame.tag(tags) {
        verdict = Verdict::NoHeadroom;
    }
    counters::count(verdict, bytes);
    match verdict.action() {
        Action::Pass => XDP_PASS,
        _ => XDP_DROP,
    }
}

/// Moves the Ethernet header up to the inner packet.
#[inline(always)]
fn unwrap(frame: &mut Frame<'_>, decapsulation: &Decapsulation) -> Verdict {
    let Some(&ethernet) = frame.bytes::<{ ethernet::LENGTH }>(0) else {
        return Verdict::InnerMalformed;
    };
    let shrunk = if decapsulation.outer == ipv4::LENGTH {
        frame.shrink(ipv4::LENGTH)
    } else {
        frame.shrink(ipv6::LENGTH)
    };
    let Some(head) = frame.bytes_mut::<{ ethernet::LENGTH }>(0) else {
        return Verdict::InnerMalformed;
    };
    *head = ethernet;
    [head[12], head[13]] = decapsulation.ether_type;
    if shrunk { Verdict::Decapsulated } else { Verdict::InnerMalformed }
}
