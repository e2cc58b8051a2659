//! Settings of the bench's programs, and their counts.

use aya_ebpf::{
    btf_maps::{Array, PerCpuArray, ProgramArray},
    macros::btf_map,
};

use crate::kernel;

/// Bytes the target puts in front of a packet: 0, 20, 32 or 40.
pub(super) const GROWN: u32 = 0;
/// IP version of the packets.
pub(super) const VERSION: u32 = 1;
/// Number of flows.
pub(super) const FLOWS: u32 = 2;
/// State of the generator, not 0.
pub(super) const STATE: u32 = 3;

#[btf_map]
static SETTINGS: Array<u64, 4> = Array::new();
#[btf_map]
static ARRIVALS: PerCpuArray<u64, 1> = PerCpuArray::new();
/// The program under test.
#[btf_map]
pub(super) static TARGET: ProgramArray<1> = ProgramArray::new();

#[inline(always)]
pub(super) fn setting(index: u32) -> u64 {
    kernel::word(&SETTINGS, index).unwrap_or_default()
}

#[inline(always)]
pub(super) fn remember(state: u64) {
    kernel::store(&SETTINGS, STATE, state);
}

#[inline(always)]
pub(super) fn count_arrival() {
    kernel::per_cpu(&ARRIVALS, 0, |arrivals| *arrivals += 1);
}
