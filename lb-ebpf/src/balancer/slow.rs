//! What is decided with more than one look.
//!
//! Answering and sending are functions of their own, one after the other, so that each has the better
//! half of the 512 bytes of stack to itself.

use aya_ebpf::programs::XdpContext;
use lb_common::{
    abi::verdict::Verdict,
    path::{Choice, Large, Question, Unobserved},
    wire::vlan::Tags,
};

use super::{
    apart,
    emit::{self, Decided},
    maps::Maps,
};
use crate::kernel::Frame;

/// Answers what a frame asks, rewrites it, counts it, and says what became of it: an [`Ended`](emit::Ended).
///
/// # Errors
/// The packet is too large for who has it.
#[inline(always)]
pub(super) fn run(context: &XdpContext, question: &Question, tags: u64) -> Result<u32, Large> {
    let mut choice = Choice::NOBODY;
    let failure = any(answer(question, &mut choice));
    let done = send(context, failure, question, &choice, tags);
    if emit::is_ended(done) { Ok(done) } else { Err(Large::answered(&Maps, question, &choice)) }
}

/// The number of no verdict.
const NONE: u32 = u32::MAX;

/// A number of which the verifier forgets what it is: it would walk what follows anew for each.
#[inline(always)]
fn any(number: u32) -> u32 {
    apart::any(u64::from(number)) as u32
}

/// Answers the number of the verdict on a frame that no backend gets, or [`NONE`].
#[inline(never)]
fn answer(question: &Question, to: &mut Choice) -> u32 {
    match question.answer(&Maps, to, &mut Unobserved) {
        Err(verdict) => verdict as u32,
        Ok(()) => NONE,
    }
}

#[inline(never)]
fn send(
    context: &XdpContext,
    failure: u32,
    question: &Question,
    choice: &Choice,
    tags: u64,
) -> u32 {
    let failure = match failure {
        NONE => None,
        number => Some(Verdict::from_number(number).unwrap_or(Verdict::Inconsistent)),
    };
    let mut decided = Decided { failure, question, choice };
    emit::emit(&mut Frame::apart(context), &mut decided, Tags(tags))
}
