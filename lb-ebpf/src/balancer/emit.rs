//! Emit: the one exit. Every packet is counted here under one verdict, and nowhere else.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX};
use lb_common::{
    abi::{
        counter::TrafficCounter,
        service::IPV4,
        verdict::{Action, Verdict},
    },
    path::{self, Forward, Head, Kind, Parsed, Version, encapsulate, parse},
    wire::{ethernet, ipv4, ipv6, packet::Packet},
};

use super::maps::{BACKEND_COUNTERS, DEVICES, Maps, SERVICE_COUNTERS};
use crate::{counters, kernel, kernel::Frame};

/// Decides about a frame, rewrites it, counts it, and returns the driver's action.
#[inline(always)]
pub(super) fn emit(mut frame: Frame<'_>) -> u32 {
    let bytes = frame.length() as u64;
    // Each IP version has the whole way to itself: half of it folds away where the version is known,
    // and what is left fits into registers.
    let (verdict, action) = match parse::version(&frame) {
        Err(verdict) => (verdict, action_of(verdict)),
        Ok(Version::V4) => {
            let parsed = parse::parse_ipv4(&frame);
            carry_out(&mut frame, parsed, bytes)
        }
        Ok(Version::V6) => {
            let parsed = parse::parse_ipv6(&frame);
            carry_out(&mut frame, parsed, bytes)
        }
    };
    counters::count(verdict, bytes);
    action
}

#[inline(always)]
fn carry_out(frame: &mut Frame<'_>, parsed: Result<Parsed, Verdict>, bytes: u64) -> (Verdict, u32) {
    let forward = match parsed.and_then(|parsed| path::decide_parsed(parsed, &Maps)) {
        Err(verdict) => return (verdict, action_of(verdict)),
        Ok(forward) => forward,
    };
    match rewrite(frame, &forward) {
        Err(verdict) => (verdict, action_of(verdict)),
        Ok(()) => send(frame, &forward, bytes),
    }
}

#[inline(always)]
const fn action_of(verdict: Verdict) -> u32 {
    match verdict.action() {
        Action::Pass => XDP_PASS,
        _ => XDP_DROP,
    }
}

/// Puts the outer header in front and takes one from the inner hop limit.
#[inline(always)]
fn rewrite(frame: &mut Frame<'_>, forward: &Forward<'_>) -> Result<(), Verdict> {
    let head = encapsulate::head(&Maps, forward)?;
    if forward.parsed.flow.version == IPV4 {
        let inner = frame.bytes_mut(ethernet::LENGTH).ok_or(Verdict::Malformed)?;
        ipv4::decrement_ttl(inner);
    } else {
        let inner = frame.bytes_mut(ethernet::LENGTH).ok_or(Verdict::Malformed)?;
        ipv6::decrement_hop_limit(inner);
    }
    match head {
        Head::V4(head) => write_head(frame, ipv4::LENGTH, &head),
        Head::V6(head) => write_head(frame, ipv6::LENGTH, &head),
    }
}

#[inline(always)]
fn write_head<const N: usize>(
    frame: &mut Frame<'_>,
    outer: usize,
    head: &[u8; N],
) -> Result<(), Verdict> {
    if !frame.grow(outer) {
        return Err(Verdict::NoHeadroom);
    }
    *frame.bytes_mut(0).ok_or(Verdict::NoHeadroom)? = *head;
    Ok(())
}

/// Picks the way out, and counts what goes there by service and by backend.
#[inline(always)]
fn send(frame: &Frame<'_>, forward: &Forward<'_>, bytes: u64) -> (Verdict, u32) {
    let interface = u32::from(forward.choice.next_hop.interface());
    let (verdict, action) = if interface == frame.interface() {
        (Verdict::Transmitted, XDP_TX)
    } else {
        match DEVICES.redirect(interface, 0) {
            Ok(action) => (Verdict::Redirected, action),
            Err(_) => return (Verdict::RedirectFailed, XDP_DROP),
        }
    };
    let count = |counter: &mut TrafficCounter| {
        counter.packets += 1;
        counter.bytes += bytes;
        counter.connections += u64::from(forward.parsed.kind == Kind::NewConnection);
    };
    kernel::per_cpu(&SERVICE_COUNTERS, forward.service.index, count);
    kernel::per_cpu(&BACKEND_COUNTERS, forward.choice.member.backend(), count);
    (verdict, action)
}
