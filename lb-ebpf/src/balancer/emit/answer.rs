//! Answers that the packet path gives itself.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_TX};
use lb_common::{
    abi::{meter, verdict::Verdict},
    path::{
        Tables,
        answer::{self, Answer, QUOTE_V4, QUOTE_V6},
    },
    wire::{ethernet, packet::Packet},
};

use super::super::maps::Maps;
use crate::{counters, kernel::Frame};

/// Tells the sender of a frame that packets of `room` bytes fit, counts the frame, and returns the
/// driver's action.
#[inline(always)]
pub(in crate::balancer) fn too_large(frame: &mut Frame<'_>, room: u16) -> u32 {
    let bytes = frame.length() as u64;
    let (verdict, action) = match tell(frame, room) {
        Ok(()) => (Verdict::AnsweredTooLarge, XDP_TX),
        Err(verdict) => (verdict, XDP_DROP),
    };
    counters::count(verdict, bytes);
    action
}

#[inline(always)]
fn tell(frame: &mut Frame<'_>, room: u16) -> Result<(), Verdict> {
    let answer = answer::too_large(frame, room).ok_or(Verdict::TooLarge)?;
    if !Maps.debit(meter::ANSWERS, Maps.now()) {
        return Err(Verdict::TooLarge);
    }
    match answer {
        Answer::V4(head) => put(frame, QUOTE_V4, &head),
        Answer::V6(head) => put(frame, QUOTE_V6, &head),
    }
}

/// Puts a head in the place of the Ethernet header, and leaves `quote` bytes of the packet after it.
#[inline(always)]
fn put<const N: usize>(frame: &mut Frame<'_>, quote: usize, head: &[u8; N]) -> Result<(), Verdict> {
    if !frame.truncate(ethernet::LENGTH + quote) || !frame.grow(N - ethernet::LENGTH) {
        return Err(Verdict::NoHeadroom);
    }
    *frame.bytes_mut(0).ok_or(Verdict::NoHeadroom)? = *head;
    Ok(())
}
