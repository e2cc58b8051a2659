//! What is decided with more than one look.
//!
//! Asking, answering and sending are functions of their own, one after the other, so that each has
//! the better half of the 512 bytes of stack to itself.

use aya_ebpf::programs::XdpContext;
use lb_common::{
    abi::verdict::Verdict,
    path::{self, Choice, Question, Unobserved, Version, parse},
};

use super::{
    apart,
    emit::{self, Decided},
    maps::Maps,
};
use crate::kernel::Frame;

/// Decides about a frame, rewrites it, counts it, and returns the driver's action.
#[inline(always)]
pub(super) fn run(context: &XdpContext) -> u32 {
    let (mut question, mut choice) = (Question::NOTHING, Choice::NOBODY);
    let mut failure = any(ask(context, &mut question));
    if failure == NONE {
        failure = any(answer(&question, &mut choice));
    }
    send(context, failure, &question, &choice)
}

/// The number of no verdict.
const NONE: u32 = u32::MAX;

/// A number of which the verifier forgets what it is: it would walk what follows anew for each.
#[inline(always)]
fn any(number: u32) -> u32 {
    apart::any(u64::from(number)) as u32
}

/// Answers the number of the verdict on a frame that no service has, or [`NONE`].
#[inline(never)]
fn ask(context: &XdpContext, question: &mut Question) -> u32 {
    let frame = Frame::apart(context);
    let parsed = match parse::version(&frame) {
        Err(verdict) => return verdict as u32,
        Ok(Version::V4) => parse::parse_ipv4(&frame),
        Ok(Version::V6) => parse::parse_ipv6(&frame),
    };
    match parsed.and_then(|parsed| path::ask(&Maps, &parsed)) {
        Err(verdict) => verdict as u32,
        Ok(asked) => {
            *question = asked;
            NONE
        }
    }
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
fn send(context: &XdpContext, failure: u32, question: &Question, choice: &Choice) -> u32 {
    let failure = match failure {
        NONE => None,
        number => Some(Verdict::from_number(number).unwrap_or(Verdict::Inconsistent)),
    };
    emit::emit(&mut Frame::apart(context), &Decided { failure, question, choice })
}
