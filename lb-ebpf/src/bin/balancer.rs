//! The balancer's object.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry point")]

use aya_ebpf::{macros::xdp, programs::XdpContext};

/// Entry point.
#[xdp]
pub fn balancer(context: XdpContext) -> u32 {
    lb_ebpf::balancer::run(&context)
}
