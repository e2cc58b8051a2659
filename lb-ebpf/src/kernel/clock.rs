//! The clock.

use aya_ebpf::{Global, helpers::generated::bpf_jiffies64};
use lb_common::abi::clock::{Nanoseconds, USUAL_TICK, ticks_at_start};

/// A tick's length; the loader sets it to the kernel's.
#[unsafe(no_mangle)]
static TICK_NANOSECONDS: Global<u64> = Global::new(USUAL_TICK);
/// What the kernel's ticks began to count at; the loader sets it.
#[unsafe(no_mangle)]
static TICKS_AT_START: Global<u64> = Global::new(ticks_at_start(USUAL_TICK));

/// Time since the kernel's start, by its ticks (`bpf_jiffies64`, kernel 5.5).
#[inline(always)]
pub fn now() -> Nanoseconds {
    // SAFETY: the helper takes nothing and touches nothing.
    let ticks = unsafe { bpf_jiffies64() };
    ticks.wrapping_sub(TICKS_AT_START.load()).wrapping_mul(TICK_NANOSECONDS.load())
}
