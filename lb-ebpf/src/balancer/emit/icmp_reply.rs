//! ICMP replies that the packet path sends itself.

use aya_ebpf::bindings::xdp_action::XDP_TX;
use lb_common::{
    abi::verdict::Verdict,
    path::{
        Version,
        icmp_error::{self, IcmpError},
        icmp_reply::{self, Head},
        oversize,
    },
    wire::{ethernet, vlan::Tags},
};

use super::{super::maps::Maps, Disposition, action_of, leave, received_length};
use crate::{count_verdict, kernel::Frame};

/// Sends the sender of a frame an ICMP error: packets of at most `room` bytes fit. Counts the frame, and returns its
/// [`Disposition`].
#[inline(always)]
pub(in crate::balancer) fn too_large(frame: &mut Frame<'_>, room: u16, tags: Tags) -> u32 {
    let bytes = received_length(frame, tags);
    let told = Maps::open().ok_or(Verdict::Inconsistent);
    let told = told.and_then(|maps| oversize::too_large(frame, &maps, room));
    let replied = told.and_then(|error| send_error(frame, &error));
    answered(frame, replied.map(|()| Verdict::AnsweredTooLarge), tags, bytes)
}

/// Sends the sender of a frame the ICMP error that its hop limit is used up. Counts the frame, and returns its
/// [`Disposition`].
#[inline(always)]
pub(in crate::balancer) fn time_exceeded(frame: &mut Frame<'_>, tags: Tags) -> u32 {
    let bytes = received_length(frame, tags);
    let told = Maps::open().ok_or(Verdict::Inconsistent);
    let told = told.and_then(|maps| icmp_error::time_exceeded(frame, &maps));
    let replied = told.and_then(|error| send_error(frame, &error));
    answered(frame, replied.map(|()| Verdict::AnsweredTimeExceeded), tags, bytes)
}

/// Sends a frame back with the tags that it came in with, or leaves it to the host; counts it, and returns its
/// [`Disposition`].
#[inline(always)]
fn answered(frame: &mut Frame<'_>, done: Result<Verdict, Verdict>, tags: Tags, bytes: u64) -> u32 {
    let (verdict, action) = match done {
        Ok(verdict) => leave(frame, (verdict, XDP_TX), tags),
        Err(verdict) => leave(frame, (verdict, action_of(verdict)), tags),
    };
    count_verdict(verdict, bytes);
    Disposition::new(verdict, action).0
}

#[inline(always)]
fn send_error(frame: &mut Frame<'_>, error: &IcmpError) -> Result<(), Verdict> {
    match &error.head {
        Head::V4(head) => quote(frame, error.quoted, head),
        Head::V6(head) => quote(frame, error.quoted, head),
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
    let maps = Maps::open().ok_or(Verdict::Inconsistent)?;
    let turned = match icmp_reply::echo(frame, &maps)? {
        Version::V4 => frame.bytes_mut(0).and_then(icmp_reply::turn_v4),
        Version::V6 => frame.bytes_mut(0).and_then(icmp_reply::turn_v6),
    };
    turned.ok_or(Verdict::OtherProtocol)
}
