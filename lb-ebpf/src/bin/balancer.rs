//! The balancer's object. What the macro makes of an entry point calls the function that it is put on; the call costs a
//! packet 6 ns unless it is inlined.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry point")]

use aya_ebpf::{macros::xdp, programs::XdpContext};

/// Entry point: the fast path.
#[xdp]
#[inline(always)]
pub fn balancer(context: XdpContext) -> u32 {
    lb_ebpf::balancer::run(&context)
}

/// The slow path, which the fast path jumps into.
#[xdp]
#[inline(always)]
pub fn balancer_slow(context: XdpContext) -> u32 {
    lb_ebpf::balancer::run_slow_path(&context)
}

/// The packet path's clock, for the loader.
#[xdp]
#[inline(always)]
pub fn balancer_clock(_: XdpContext) -> u32 {
    lb_ebpf::balancer::read_clock()
}
