//! Packet memory, map memory and the kernel's helpers: all unsafe code of this crate.
#![allow(unsafe_code)]

mod arrays;
mod capture;
mod device;
mod frame;
mod helpers;
mod map;
mod outgoing;
mod revalidate;
mod skb;

pub use arrays::Arrays;
pub use capture::{
    LiveCapture, copy_frame, end_capture, exact_time, is_captured, send_sample, waiting_bytes,
};
pub use device::{Device, argument};
pub use frame::Frame;
pub use helpers::{borrow_argument, hide_flag, now, opaque, repeat, tail_call, ticks};
pub(crate) use helpers::{global, hide_constant};
pub use map::{
    SharedLine, SharedWord, contains, has_prefix, hash_number, hash_value, hash_word, lru_word,
    own_element, per_cpu, shared_line, store, table_word, word,
};
pub use outgoing::Outgoing;
pub use revalidate::Revalidated;
pub use skb::Skb;

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
