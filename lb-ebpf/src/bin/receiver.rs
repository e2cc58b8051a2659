//! The receiver's object. Its entry points are inlined as the balancer's are.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry point")]

use aya_ebpf::{
    macros::{classifier, xdp},
    programs::{TcContext, XdpContext},
};

/// Entry point in the driver.
#[xdp]
#[inline(always)]
pub fn receiver(context: XdpContext) -> u32 {
    lb_ebpf::receiver::run(&context)
}

/// Entry point in the stack.
#[classifier]
#[inline(always)]
pub fn receiver_tc(context: TcContext) -> i32 {
    lb_ebpf::receiver::run_in_stack(&context)
}
