//! The balancer: decide, encapsulate, emit.
//!
//! The fast path is a function of its own, so that it has the registers and most of the stack to itself. Packets that
//! it cannot decide take the slow path: limits, handshake entries, displaced entries, and the search for another member
//! if home takes no packets.

mod capture;
mod emit;
mod maps;
mod subprograms;

use aya_ebpf::programs::XdpContext;
use lb_common::{
    abi::verdict::Verdict,
    path::{self, Choice, Query, Unobserved, oversize},
    wire::vlan::Tags,
};

use self::{
    emit::{Deferred, Disposition, Resolved},
    maps::Maps,
};
use crate::kernel::{self, Frame};

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    if kernel::is_captured() {
        capture::before(context);
    }
    let ended = handle(context);
    if kernel::is_captured() && capture::is_noted() {
        // Hides the constant: otherwise the verifier explores the rest once for each value.
        capture::after(context, subprograms::hide_constant(u64::from(ended)));
    }
    Disposition(ended).action()
}

/// Handles a packet and returns its [`Disposition`].
#[inline(always)]
fn handle(context: &XdpContext) -> u32 {
    let mut deferred = Deferred::Nothing;
    let mut tags = 0;
    let mut done = fast_path(context, &mut deferred);
    if emit::is_ended(done) {
        return done;
    }
    if done == emit::TAGGED {
        tags = untag(context);
        done = fast_path_tagged(context, &mut deferred, tags);
        if emit::is_ended(done) {
            return done;
        }
    }
    // Hides the constant: otherwise the verifier explores the rest once for no tags and once for any.
    let tags = subprograms::hide_constant(tags);
    if done == emit::NEEDS_SLOW_PARSER {
        done = parse_slow_path(context, &mut deferred, tags);
    }
    if done == emit::NEEDS_SLOW_PARSER {
        return answer_echo(context, tags);
    }
    if let Deferred::Query(query) = &deferred {
        match slow_path(context, query, tags) {
            Ok(done) => return done,
            Err(room) => deferred = Deferred::Oversize(room),
        }
    }
    match &deferred {
        Deferred::Oversize(room) => too_large(context, *room, tags),
        _ => done,
    }
}

/// The fast path.
#[inline(never)]
fn fast_path(context: &XdpContext, deferred: &mut Deferred) -> u32 {
    emit::emit_fast(&mut Frame::in_subprogram(context), deferred, Tags::NONE)
}

/// The fast path of a frame that had VLAN tags, which goes on with them: a function of its own, so that untagged
/// frames need not check.
#[inline(never)]
fn fast_path_tagged(context: &XdpContext, deferred: &mut Deferred, tags: u64) -> u32 {
    emit::emit_fast(&mut Frame::in_subprogram(context), deferred, Tags(tags))
}

/// Takes the VLAN tags off a frame, and returns them.
#[inline(never)]
fn untag(context: &XdpContext) -> u64 {
    Frame::in_subprogram(context).untag().0
}

/// The slow parser, for ICMP errors and frames with IPv6 extension headers; defers the query.
#[inline(never)]
fn parse_slow_path(context: &XdpContext, deferred: &mut Deferred, tags: u64) -> u32 {
    emit::parse_slow_path(&mut Frame::in_subprogram(context), deferred, Tags(tags))
}

/// The slow path: resolves the query of a frame, rewrites it, counts it, and returns its [`Disposition`]. Resolving and
/// sending are functions of their own, one after the other, so that each can use most of the 512 bytes of stack.
///
/// # Errors
/// The packet is too large for its backend; the size that fits, bytes.
#[inline(always)]
fn slow_path(context: &XdpContext, query: &Query, tags: u64) -> Result<u32, u16> {
    let mut choice = Choice::NONE;
    // Hides the constant: otherwise the verifier explores the rest once for each verdict.
    let failure = subprograms::hide_constant(u64::from(resolve(query, &mut choice))) as u32;
    let done = send(context, failure, query, &choice, tags);
    if emit::is_ended(done) { Ok(done) } else { Err(oversize::room(&Maps, query, &choice)) }
}

/// The number of no verdict.
const NONE: u32 = u32::MAX;

/// Resolves a query; returns the number of the verdict on a frame that no backend gets, or [`NONE`].
#[inline(never)]
fn resolve(query: &Query, to: &mut Choice) -> u32 {
    match path::resolve(&Maps, query, to, &mut Unobserved) {
        Err(verdict) => verdict as u32,
        Ok(()) => NONE,
    }
}

#[inline(never)]
fn send(context: &XdpContext, failure: u32, query: &Query, choice: &Choice, tags: u64) -> u32 {
    let failure = match failure {
        NONE => None,
        number => Some(Verdict::from_number(number).unwrap_or(Verdict::Inconsistent)),
    };
    let mut decided = Resolved { failure, query, choice };
    emit::emit(&mut Frame::in_subprogram(context), &mut decided, Tags(tags))
}

/// Handles a frame where packets of at most `room` bytes fit.
#[inline(never)]
fn too_large(context: &XdpContext, room: u16, tags: u64) -> u32 {
    emit::too_large(&mut Frame::in_subprogram(context), room, Tags(tags))
}

/// The answer to a frame of no flow, if it asks for one.
#[inline(never)]
fn answer_echo(context: &XdpContext, tags: u64) -> u32 {
    emit::echo(&mut Frame::in_subprogram(context), Tags(tags))
}
