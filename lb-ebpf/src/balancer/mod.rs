//! The balancer: decide, encapsulate, emit.
//!
//! It is two programs. The first does what steady state needs, and has the registers and the stack
//! to itself; it jumps into the second for all else: limits, records, exceptions, and the search for
//! somebody else where home is dead.

mod apart;
mod emit;
mod maps;
mod slow;

use aya_ebpf::programs::XdpContext;
use lb_common::abi::names::SLOW;

use crate::kernel::{self, Frame};

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    let mut frame = Frame::new(context);
    if let Some(action) = emit::emit_at_once(&mut frame) {
        return action;
    }
    kernel::tail_call(&maps::STAGES, context, SLOW);
    slow::is_missing(&mut frame)
}

/// One packet that was not told at once where it goes.
#[inline(always)]
pub fn run_slow(context: &XdpContext) -> u32 {
    slow::run(context)
}
