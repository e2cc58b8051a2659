//! ICMP replies that the packet path sends itself.

use aya_ebpf::bindings::xdp_action::XDP_TX;
use lb_common::{
    abi::verdict::Verdict,
    path::{
        Large, Version,
        icmp_reply::{self, Head, QUOTE_V4, QUOTE_V6},
        oversize::{self, Divisible},
    },
    wire::{ethernet, ipv4, vlan::Tags},
};

use super::{
    super::maps::Maps, Disposition, action_of, leave, received_length, send, tag_out, write_head,
};
use crate::{counters, kernel::Frame};

/// Sends the sender of a frame an ICMP error with the size that fits, or forwards the frame so that it may be
/// fragmented; counts the frame, and returns its [`Disposition`].
#[inline(always)]
pub(in crate::balancer) fn too_large(frame: &mut Frame<'_>, packet: &Large, tags: Tags) -> u32 {
    let bytes = received_length(frame, tags);
    match oversize::divisible(frame, &Maps, packet) {
        Ok(None) => {
            let told = tell(frame, oversize::room(&Maps, packet));
            answered(frame, told.map(|()| Verdict::AnsweredTooLarge), tags, bytes)
        }
        Ok(Some(on)) => {
            let interface = packet.interface().into();
            let (verdict, action) = match write_on(frame, packet, &on, tags) {
                Err(verdict) => (verdict, action_of(verdict)),
                Ok(()) => {
                    let to = (interface, packet.service(), packet.backend(), packet.is_new());
                    send(frame, to, bytes)
                }
            };
            counters::count(verdict, bytes);
            Disposition::new(verdict, action).0
        }
        Err(verdict) => answered(frame, Err(verdict), tags, bytes),
    }
}

/// Puts the head of a tunnel in front, with the tags of the way out, and takes one from the inner TTL.
#[inline(always)]
fn write_on(
    frame: &mut Frame<'_>,
    packet: &Large,
    on: &Divisible,
    tags: Tags,
) -> Result<(), Verdict> {
    ipv4::decrement_ttl(frame.bytes_mut(ethernet::LENGTH).ok_or(Verdict::Malformed)?);
    write_head(frame, &on.head, packet.form(), || on.shim)?;
    tag_out(frame, (on.own, packet.interface().into()), tags)
}

/// Sends a frame back with the tags that it came in with, or leaves it to the host; counts it, and returns its
/// [`Disposition`].
#[inline(always)]
fn answered(frame: &mut Frame<'_>, done: Result<Verdict, Verdict>, tags: Tags, bytes: u64) -> u32 {
    let (verdict, action) = match done {
        Ok(verdict) => leave(frame, (verdict, XDP_TX), tags),
        Err(verdict) => leave(frame, (verdict, action_of(verdict)), tags),
    };
    counters::count(verdict, bytes);
    Disposition::new(verdict, action).0
}

#[inline(always)]
fn tell(frame: &mut Frame<'_>, room: u16) -> Result<(), Verdict> {
    match icmp_reply::too_large(frame, &Maps, room)? {
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

/// Answers a frame of no flow if it pings a VIP; counts it, and returns its [`Disposition`].
#[inline(always)]
pub(in crate::balancer) fn echo(frame: &mut Frame<'_>, tags: Tags) -> u32 {
    let bytes = received_length(frame, tags);
    let replied = reply(frame);
    answered(frame, replied.map(|()| Verdict::AnsweredEcho), tags, bytes)
}

#[inline(always)]
fn reply(frame: &mut Frame<'_>) -> Result<(), Verdict> {
    let turned = match icmp_reply::echo(frame, &Maps)? {
        Version::V4 => frame.bytes_mut(0).and_then(icmp_reply::turn_v4),
        Version::V6 => frame.bytes_mut(0).and_then(icmp_reply::turn_v6),
    };
    turned.ok_or(Verdict::OtherProtocol)
}
