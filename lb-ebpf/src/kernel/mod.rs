//! What the kernel lends: packet memory, map memory, helpers. All unsafe code of this crate.
#![allow(unsafe_code)]

mod frame;
mod map;
mod repeat;
mod tail_call;

pub use frame::Frame;
pub use map::{
    contains, copy_backwards, element, has_prefix, lookup_copy, lookup_word, per_cpu, store,
    table_word, word,
};
pub use repeat::repeat;
pub use tail_call::tail_call;

/// A program's licence, read by the kernel when it is loaded.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
pub static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// The objects hold no panic path; should one appear, the verifier refuses its endless loop.
#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
