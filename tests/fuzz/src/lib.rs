//! What the packet path and the doors of configurations keep, whatever bytes they are given.
//!
//! Each module is one target: `check` takes any bytes, and panics where something does not hold. Frames that
//! go out are read by [`ip`] and [`sent`], which share no code with what made them. The programs in `targets/`
//! hand `check` to libFuzzer (`cargo xtask fuzz`), which begins with what is in `corpus/`; a plain `cargo test`
//! replays that.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what does not hold is a finding")]

pub mod calls;
pub mod configuration;
#[cfg(test)]
mod corpus;
pub mod decision;
pub mod document;
pub mod encapsulation;
pub mod icmp;
pub mod ip;
pub mod maps;
pub mod parse;
pub mod receiver;
pub mod sent;
pub mod wild;
