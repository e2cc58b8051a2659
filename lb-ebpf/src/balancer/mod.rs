//! The balancer: decide, encapsulate, emit.
//!
//! What steady state needs is a function of its own, with the registers and most of the stack to
//! itself. Where it cannot tell at once what becomes of a packet, the slow functions are asked: for
//! limits, records, exceptions, and the search for somebody else where home is dead.

mod apart;
mod emit;
mod maps;
mod slow;

use aya_ebpf::programs::XdpContext;
use lb_common::path::Question;

use crate::kernel::{Frame, Slot};

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    let mut later = Slot::empty();
    let mut action = at_once(context, &mut later);
    if action == emit::SET_ASIDE {
        action = read_aside(context, &mut later);
    }
    match later.get() {
        None => action,
        Some(question) => slow::run(context, question),
    }
}

/// The way of a packet in steady state. Of any other the question is left for `later`, with the frame
/// as it was and nothing counted.
#[inline(never)]
fn at_once(context: &XdpContext, later: &mut Slot<Question>) -> u32 {
    emit::emit_at_once(&mut Frame::apart(context), later)
}

/// The question of a frame that steady state cannot read: an ICMP error, or one with IPv6 extension
/// headers.
#[inline(never)]
fn read_aside(context: &XdpContext, later: &mut Slot<Question>) -> u32 {
    emit::read_aside(&mut Frame::apart(context), later)
}
