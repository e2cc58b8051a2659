//! Jumps into another program.

use aya_ebpf::{btf_maps::ProgramArray, programs::XdpContext};

/// Goes on in the array's program; returns only where there is none.
#[inline(always)]
pub fn tail_call<const N: usize>(programs: &ProgramArray<N>, context: &XdpContext, index: u32) {
    // SAFETY: nothing that needs dropping is alive in a packet program.
    unsafe { programs.tail_call(context, index) }
}
