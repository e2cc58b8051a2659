//! The receiver: takes the outer header off what balancers send to VIPs of this host.

mod emit;
mod maps;
mod subprograms;
mod tc;
mod xdp;

use aya_ebpf::programs::{TcContext, XdpContext};

use crate::kernel::{Frame, Skb};

/// One frame through the receiver, in the driver.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    emit::xdp(Frame::new(context))
}

/// One packet through the receiver, in the stack.
#[inline(always)]
pub fn run_in_stack(context: &TcContext) -> i32 {
    emit::tc(Skb::new(context))
}
