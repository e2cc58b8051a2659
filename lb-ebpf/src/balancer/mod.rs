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

use crate::kernel::Frame;

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    match at_once(context) {
        LATER => slow::run(context),
        action => action,
    }
}

/// No action of the driver's: more must be asked.
const LATER: u32 = u32::MAX;

/// The way of a packet in steady state; [`LATER`] with the frame as it was and nothing counted.
#[inline(never)]
fn at_once(context: &XdpContext) -> u32 {
    emit::emit_at_once(&mut Frame::apart(context)).unwrap_or(LATER)
}
