//! The slow path.
//!
//! Resolving and sending are functions of their own, one after the other, so that each can use most of the 512 bytes
//! of stack.

use aya_ebpf::programs::XdpContext;
use lb_common::{
    abi::verdict::Verdict,
    path::{Choice, Query, Unobserved, oversize},
    wire::vlan::Tags,
};

use super::{
    emit::{self, Decided},
    maps::Maps,
    subprograms,
};
use crate::kernel::Frame;

/// Resolves the query of a frame, rewrites it, counts it, and returns its [`Disposition`](emit::Disposition).
///
/// # Errors
/// The packet is too large for its backend; the size that fits, bytes.
#[inline(always)]
pub(super) fn run(context: &XdpContext, query: &Query, tags: u64) -> Result<u32, u16> {
    let mut choice = Choice::NONE;
    let failure = hide_constant(resolve(query, &mut choice));
    let done = send(context, failure, query, &choice, tags);
    if emit::is_ended(done) { Ok(done) } else { Err(oversize::room(&Maps, query, &choice)) }
}

/// The number of no verdict.
const NONE: u32 = u32::MAX;

/// Hides the constant: otherwise the verifier explores the rest once for each value.
#[inline(always)]
fn hide_constant(number: u32) -> u32 {
    subprograms::hide_constant(u64::from(number)) as u32
}

/// Resolves a query; returns the number of the verdict on a frame that no backend gets, or [`NONE`].
#[inline(never)]
fn resolve(query: &Query, to: &mut Choice) -> u32 {
    match query.resolve(&Maps, to, &mut Unobserved) {
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
    let mut decided = Decided { failure, query, choice };
    emit::emit(&mut Frame::in_subprogram(context), &mut decided, Tags(tags))
}
