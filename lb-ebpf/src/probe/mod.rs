//! Probes: puts packets of health checks into the tunnels that clients' packets take. Where a link that
//! leads nowhere ends (tc, egress), each packet has a way by the mark of its socket, or is dropped.

mod emit;
mod maps;

use aya_ebpf::programs::TcContext;

use crate::kernel::Outgoing;

/// One packet of this host's own.
#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    emit::emit(Outgoing::new(context))
}
