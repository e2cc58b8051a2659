//! The receiver: takes the outer header off what balancers send to VIPs of this host.

mod emit;
mod maps;

use aya_ebpf::programs::XdpContext;

use crate::kernel::Frame;

/// One packet through the receiver.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    emit::emit(Frame::new(context))
}
