//! The verdict counters, one of each program.

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use lb_common::abi::{
    counter::VerdictCounter,
    verdict::{VERDICT_SLOTS, Verdict},
};

use crate::kernel;

#[btf_map]
static VERDICT_COUNTERS: PerCpuArray<VerdictCounter, { VERDICT_SLOTS as usize }> =
    PerCpuArray::new();

/// Counts a packet of `bytes` bytes under its verdict.
#[inline(always)]
pub(crate) fn count(verdict: Verdict, bytes: u64) {
    kernel::per_cpu(&VERDICT_COUNTERS, verdict as u32, |counter| {
        counter.packets += 1;
        counter.bytes += bytes;
    });
}
