//! Loops that the verifier walks once.

use aya_ebpf::helpers::generated::bpf_loop;

/// Calls `step` with 0, 1, … until it answers something else than 0, at most `count` times
/// (`bpf_loop`, kernel 5.17).
#[inline(always)]
pub fn repeat<C>(count: u32, context: &mut C, step: extern "C" fn(u32, &mut C) -> i64) {
    // SAFETY: the kernel calls `step` with the index and the very pointer given here, before this
    // call returns; the context has no other user meanwhile.
    unsafe {
        bpf_loop(count, step as *mut _, core::ptr::from_mut(context).cast(), 0);
    }
}
