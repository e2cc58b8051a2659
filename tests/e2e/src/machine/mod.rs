//! Another kernel, in software emulation: it boots with one program as its whole system.

mod cpio;
mod initramfs;
mod modules;
mod qemu;

pub use initramfs::{Guest, initramfs, tool};
pub use qemu::{Cable, Console, Machine};
