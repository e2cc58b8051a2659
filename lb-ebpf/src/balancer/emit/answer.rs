//! Answers that the packet path gives itself.

use aya_ebpf::bindings::xdp_action::XDP_TX;
use lb_common::{
    abi::verdict::Verdict,
    path::{
        Version,
        answer::{self, Head, QUOTE_V4, QUOTE_V6},
    },
    wire::{ethernet, packet::Packet},
};

use super::{super::maps::Maps, action_of};
use crate::{counters, kernel::Frame};

/// Tells the sender of a frame that packets of `room` bytes fit, counts the frame, and returns the
/// driver's action.
#[inline(always)]
pub(in crate::balancer) fn too_large(frame: &mut Frame<'_>, room: u16) -> u32 {
    let bytes = frame.length() as u64;
    let (verdict, action) = match tell(frame, room) {
        Ok(()) => (Verdict::AnsweredTooLarge, XDP_TX),
        Err(verdict) => (verdict, action_of(verdict)),
    };
    counters::count(verdict, bytes);
    action
}

#[inline(always)]
fn tell(frame: &mut Frame<'_>, room: u16) -> Result<(), Verdict> {
    match answer::too_large(frame, &Maps, room)? {
        Head::V4(head) => quote(frame, QUOTE_V4, &head),
        Head::V6(head) => quote(frame, QUOTE_V6, &head),
    }
}

/// Puts a head in the place of the Ethernet header, and leaves `quoted` bytes of the packet after it.
#[inline(always)]
fn quote<const N: usize>(
    frame: &mut Frame<'_>,
    quoted: usize,
    head: &[u8; N],
) -> Result<(), Verdict> {
    if !frame.truncate(ethernet::LENGTH + quoted) || !frame.grow(N - ethernet::LENGTH) {
        return Err(Verdict::NoHeadroom);
    }
    *frame.bytes_mut(0).ok_or(Verdict::NoHeadroom)? = *head;
    Ok(())
}

/// Answers a frame that no backend can have, if it pings a VIP; counts it, and returns the driver's action.
#[inline(always)]
pub(in crate::balancer) fn echo(frame: &mut Frame<'_>) -> u32 {
    let bytes = frame.length() as u64;
    let (verdict, action) = match reply(frame) {
        Ok(()) => (Verdict::AnsweredEcho, XDP_TX),
        Err(verdict) => (verdict, action_of(verdict)),
    };
    counters::count(verdict, bytes);
    action
}

#[inline(always)]
fn reply(frame: &mut Frame<'_>) -> Result<(), Verdict> {
    let turned = match answer::echo(frame, &Maps)? {
        Version::V4 => frame.bytes_mut(0).and_then(answer::turn_v4),
        Version::V6 => frame.bytes_mut(0).and_then(answer::turn_v6),
    };
    turned.ok_or(Verdict::OtherProtocol)
}
