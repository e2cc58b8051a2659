//! The packet path's clock as a program, which is on no interface: the loader runs it once to compare the clocks. User space
//! has no other access to the number of ticks: only root may read /proc/timer_list.

use crate::kernel;

/// Ticks since the kernel's start, the low half.
#[inline(always)]
pub fn run() -> u32 {
    kernel::ticks() as u32
}
