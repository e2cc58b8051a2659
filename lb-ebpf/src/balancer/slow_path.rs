//! The slow path, a program of its own. Its parts are functions, one after the other, so that each can use most of the 512
//! bytes of stack.

use aya_ebpf::programs::XdpContext;
use lb_common::{
    abi::verdict::Verdict,
    path::{self, Choice, Query, Unobserved, oversize},
    wire::vlan::Tags,
};

use super::{deferred, emit, emit::Resolved, finish, maps::Maps};
use crate::kernel::{self, Frame};

/// What the fast path deferred.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    let done = handle(context);
    finish(context, done, deferred::is_captured())
}

/// Handles a packet and returns its [`emit::Disposition`].
#[inline(always)]
fn handle(context: &XdpContext) -> u32 {
    let Some(reason) = deferred::get().map(|deferred| deferred.reason) else {
        return emit::count_inconsistent(context);
    };
    let (mut done, mut tags) = (reason, 0);
    if done == emit::TAGGED {
        // Here and below: otherwise the verifier explores the rest once for no tag, for one and for two.
        tags = kernel::hide_constant(untag(context));
        done = fast_path_tagged(context, tags);
        if emit::is_ended(done) {
            return done;
        }
    }
    handle_untagged(context, done, kernel::hide_constant(tags))
}

/// The same of a frame without tags, or whose tags were taken off: a function of its own, which leaves the fast path its
/// stack.
#[inline(never)]
fn handle_untagged(context: &XdpContext, mut done: u32, tags: u64) -> u32 {
    if done == emit::NEEDS_SLOW_PARSER {
        done = parse_slow_path(context, tags);
    }
    // Not before the slow parser has written it.
    let Some(deferred) = deferred::get() else { return emit::count_inconsistent(context) };
    match done {
        emit::NEEDS_SLOW_PARSER => answer_echo(context, tags),
        emit::TOO_LARGE => too_large(context, deferred.room as u16, tags),
        emit::AT_LAST_HOP => time_exceeded(context, tags),
        emit::DEFERRED => match resolve_and_send(context, &deferred.query, tags) {
            Ok(done) => done,
            Err(room) => too_large(context, room, tags),
        },
        done => done,
    }
}

/// The fast path of a frame that had VLAN tags, which goes on with them: a function of its own, so that untagged
/// frames need not check.
#[inline(never)]
fn fast_path_tagged(context: &XdpContext, tags: u64) -> u32 {
    let is_captured = kernel::hide_flag(deferred::is_captured(), tags);
    emit::emit_fast_tagged(&mut Frame::in_subprogram(context), Tags(tags), is_captured)
}

/// Takes the VLAN tags off a frame, and returns them.
#[inline(never)]
fn untag(context: &XdpContext) -> u64 {
    Frame::in_subprogram(context).untag().0
}

/// The slow parser ([`emit::parse_slow_path`]); defers the query.
#[inline(never)]
fn parse_slow_path(context: &XdpContext, tags: u64) -> u32 {
    emit::parse_slow_path(&mut Frame::in_subprogram(context), Tags(tags))
}

/// Resolves the query of a frame, rewrites it, counts it, and returns its [`emit::Disposition`].
///
/// # Errors
/// The packet is too large for its backend; the size that fits, bytes.
#[inline(always)]
fn resolve_and_send(context: &XdpContext, query: &Query, tags: u64) -> Result<u32, u16> {
    let mut choice = Choice::NONE;
    // Hides the constant: otherwise the verifier explores the rest once for each verdict.
    let failure = kernel::hide_constant(u64::from(resolve(query, &mut choice))) as u32;
    let done = send(context, failure, query, &choice, tags);
    if emit::is_ended(done) {
        return Ok(done);
    }
    Err(Maps::open().map_or(0, |maps| oversize::room(&maps, query, &choice)))
}

/// The number of no verdict.
const NONE: u32 = u32::MAX;

/// Resolves a query; returns the number of the verdict on a frame that no backend gets, or [`NONE`].
#[inline(always)]
fn resolve(query: &Query, to: &mut Choice) -> u32 {
    let Some(maps) = Maps::open() else { return Verdict::Inconsistent as u32 };
    match path::resolve(&maps, query, to, &mut Unobserved) {
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

/// Handles a frame whose hop limit is used up.
#[inline(never)]
fn time_exceeded(context: &XdpContext, tags: u64) -> u32 {
    emit::time_exceeded(&mut Frame::in_subprogram(context), Tags(tags))
}

/// The answer to a frame of no flow, if it asks for one.
#[inline(never)]
fn answer_echo(context: &XdpContext, tags: u64) -> u32 {
    emit::echo(&mut Frame::in_subprogram(context), Tags(tags))
}
