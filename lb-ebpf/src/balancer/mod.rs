//! The balancer: decide, encapsulate, emit.

mod emit;
mod maps;

use aya_ebpf::programs::XdpContext;

use crate::kernel::Frame;

/// One packet through the balancer.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    emit::emit(Frame::new(context))
}
