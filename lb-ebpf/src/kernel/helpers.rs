//! Small helpers: the clock, loops, jumps, and global functions.

use aya_ebpf::{
    Global,
    btf_maps::ProgramArray,
    helpers::generated::{bpf_jiffies64, bpf_loop},
    programs::XdpContext,
};
use lb_common::abi::clock::{Nanoseconds, USUAL_TICK, ticks_at_start};

/// A tick's length; the loader sets it to the kernel's.
#[unsafe(no_mangle)]
static TICK_NANOSECONDS: Global<u64> = Global::new(USUAL_TICK);
/// What the kernel's ticks began to count at; the loader sets it.
#[unsafe(no_mangle)]
static TICKS_AT_START: Global<u64> = Global::new(ticks_at_start(USUAL_TICK));

/// Time since the kernel's start, by its ticks.
#[inline(always)]
pub fn now() -> Nanoseconds {
    ticks().wrapping_mul(TICK_NANOSECONDS.load())
}

/// Ticks since the kernel's start (`bpf_jiffies64`, kernel 5.5).
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: the helper takes nothing and touches nothing.
    let ticks = unsafe { bpf_jiffies64() };
    ticks.wrapping_sub(TICKS_AT_START.load())
}

/// Calls `step` with 0, 1, … until it returns something other than 0, at most `count` times. The verifier walks `step`
/// once (`bpf_loop`, kernel 5.17).
#[inline(always)]
pub fn repeat<C>(count: u32, context: &mut C, step: extern "C" fn(u32, &mut C) -> i64) {
    // SAFETY: the kernel calls `step` with the index and the very pointer given here, before this
    // call returns; the context has no other user meanwhile.
    unsafe {
        bpf_loop(count, step as *mut _, core::ptr::from_mut(context).cast(), 0);
    }
}

/// Jumps into a program of the array; returns only if there is none.
#[inline(always)]
pub fn tail_call<const N: usize>(programs: &ProgramArray<N>, context: &XdpContext, index: u32) {
    // SAFETY: nothing that needs dropping is alive in a packet program.
    unsafe { programs.tail_call(context, index) }
}

/// Makes each function global: the object exports it, so the verifier verifies it once, with unknown numbers as
/// arguments, and takes its result for an unknown number.
macro_rules! global {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> u64 $body:block)+) => {$(
        $(#[$doc])*
        #[allow(unsafe_code, reason = "an exported name, of which the object has one")]
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub(crate) extern "C" fn $name($($argument: $type),*) -> u64 $body
    )+};
}

pub(crate) use global;

global! {
    /// The number itself, which the verifier then does not know.
    fn hide_constant(number: u64) -> u64 {
        opaque(number)
    }
}

/// What a pointer argument of a global function points to. The verifier knows the size from its type, and requires the
/// check for null.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the verifier knows what it points at")]
#[inline(always)]
pub fn borrow_argument<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: global functions are private to the object, whose callers lend what is on their stack
    // for the time of the call.
    unsafe { pointer.as_mut() }
}

/// Hides a number's value from the compiler, which knows of it only that the same number gives the same one.
#[inline(always)]
pub fn opaque(mut number: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    // SAFETY: the number comes out as it went in.
    unsafe {
        core::arch::asm!(
            "{0} = {0}",
            inout(reg) number,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        number = core::hint::black_box(number);
    }
    number
}

/// The same flag. The verifier then does not know whether it is set, provided that it does not know the lowest bit of
/// `unknown`: to it two exclusive ors with an unknown number result in any number. Cheaper than [`hide_constant`], because
/// it calls no function.
#[inline(always)]
pub fn hide_flag(flag: bool, unknown: u64) -> bool {
    (opaque(u64::from(flag) ^ unknown) ^ unknown) & 1 != 0
}

/// 0, which a CPU knows only after it has `number`.
#[inline(always)]
pub(super) fn zero_after(number: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut zero = number;
        // SAFETY: a number is cleared.
        unsafe {
            core::arch::asm!(
                "{0} &= 0",
                inout(reg) zero,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        zero
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        core::hint::black_box(number) & 0
    }
}
