//! Another kernel, in software emulation: it boots with one program as its whole system.

mod cpio;
mod initramfs;
mod qemu;

pub use initramfs::initramfs;
pub use qemu::{Console, boot};

/// Set for a program that runs as the whole system of a guest.
pub const GUEST: &str = "SPILLWAY_GUEST";
