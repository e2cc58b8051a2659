//! The balancer: decide, encapsulate, emit.
//!
//! It is two programs, because the stack of one would not do for both paths. The first one is the fast path, which
//! calls no function in steady state. For packets that it cannot decide it jumps into the second one, the slow path:
//! VLAN tags, the slow parser, limits, whatever changes the flow table, the search for another member if home takes
//! no packets, and answers.
//!
//! A third one, on no interface, tells the loader the time.

mod capture;
mod clock;
mod deferred;
mod emit;
mod maps;
mod slow_path;
mod subprograms;

use aya_ebpf::programs::XdpContext;
use lb_common::wire::{Packet as _, vlan::Tags};

use self::emit::Disposition;
use crate::kernel::{self, Frame};

pub use clock::run as read_clock;
pub use slow_path::run as run_slow_path;

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    let is_captured = kernel::is_captured() && capture::matches(context);
    if is_captured {
        capture::before(context);
    }
    // Otherwise the verifier walks all that follows twice.
    let is_captured = kernel::hide_flag(is_captured, Frame::new(context).length() as u64);
    let mut done = emit::emit_fast(&mut Frame::new(context), Tags::NONE, is_captured);
    if !emit::is_ended(done) {
        deferred::set_reason(done, is_captured);
        deferred::run_slow_path(context);
        done = emit::count_inconsistent(context);
    }
    finish(context, done, is_captured)
}

/// Captures a frame as it leaves, if it is captured, and returns the action.
#[inline(always)]
fn finish(context: &XdpContext, done: u32, is_captured: bool) -> u32 {
    if is_captured {
        subprograms::capture_after(Frame::new(context).context(), done.into());
    }
    Disposition(done).action()
}
