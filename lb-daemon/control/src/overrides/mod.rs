//! The overrides and their owner, a loop beside the others, so that an override waits neither for an apply nor for a disk.
//!
//! A change is in force once the member loop has written it. After that the other loops are told, and a file is written
//! ([`saver`]), which nothing waits for: a disk that is full or does not answer costs an override its place after a restart
//! and is a condition. Overrides have a revision of their own and are no part of a generation.
//!
//! A member of a fleet has the fleet's overrides ([`following`]), and beside them local ones, which are its own.

mod file;
mod following;
mod override_loop;
mod saver;
#[cfg(test)]
mod tests;

pub(crate) use override_loop::Others;
pub use override_loop::OverrideLoop;
