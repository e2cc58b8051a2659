//! Functions that the kernel verifies by themselves.

/// Makes each function global: the object exports it, so the verifier takes its arguments for any
/// numbers, and its answer too.
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

/// What a global function was handed a pointer to; the verifier knows its size by its type, and holds
/// the function to asking whether it is there.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the verifier knows what it points at")]
#[inline(always)]
pub fn lent<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: global functions are private to the object, whose callers lend what is on their stack
    // for the time of the call.
    unsafe { pointer.as_mut() }
}

/// Hides a number's value from the compiler.
#[inline(always)]
pub fn opaque(mut number: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    // SAFETY: the number comes out as it went in.
    unsafe {
        core::arch::asm!("{0} = {0}", inout(reg) number, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        number = core::hint::black_box(number);
    }
    number
}
