use aya_ebpf::{btf_maps::HashMap, macros::btf_map};
use lb_common::abi::probe::{MAX_WAYS, ProbeWay};

use crate::kernel;

#[btf_map]
static PROBE_WAYS: HashMap<u64, ProbeWay, MAX_WAYS, NO_PREALLOC> = HashMap::new();

/// Memory for what is there, and not for all that may be (`BPF_F_NO_PREALLOC`).
const NO_PREALLOC: usize = 1;

/// The way of that number. A value is replaced whole, and one that was replaced stays readable for as
/// long as a program may read it.
#[inline(always)]
pub(super) fn way(number: u32) -> Option<&'static ProbeWay> {
    kernel::lookup_word(&PROBE_WAYS, number.into())
}
