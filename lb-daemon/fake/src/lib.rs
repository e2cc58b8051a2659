//! Random configurations and fakes for the tests of several crates.
//!
//! A crate of its own, so that nothing of it reaches the product. The crates that this one depends on include
//! the same files in their unit tests by path.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

pub mod arbitrary;
pub mod packet_path;
pub mod stored;
