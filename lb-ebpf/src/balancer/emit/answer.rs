//! Answers that the packet path gives itself.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX};
use lb_common::{
    abi::{meter, service::IPV4, verdict::Verdict},
    path::{
        Tables,
        answer::{self, Head, QUOTE_V4, QUOTE_V6},
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
    let head = answer::too_large(frame, room).ok_or(Verdict::TooLarge)?;
    if !Maps.debit(meter::ERRORS, Maps.now()) {
        return Err(Verdict::TooLarge);
    }
    match head {
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
        Err(Verdict::OtherProtocol) => (Verdict::OtherProtocol, XDP_PASS),
        Err(verdict) => (verdict, XDP_DROP),
    };
    counters::count(verdict, bytes);
    action
}

#[inline(always)]
fn reply(frame: &mut Frame<'_>) -> Result<(), Verdict> {
    let echo = answer::echo(frame).filter(|echo| Maps.is_vip(&echo.vip, echo.version));
    let echo = echo.ok_or(Verdict::OtherProtocol)?;
    if !Maps.debit(meter::ECHOES, Maps.now()) {
        return Err(Verdict::EchoLimited);
    }
    let turned = if echo.version == IPV4 {
        frame.bytes_mut(0).and_then(answer::turn_v4)
    } else {
        frame.bytes_mut(0).and_then(answer::turn_v6)
    };
    turned.ok_or(Verdict::OtherProtocol)
}
