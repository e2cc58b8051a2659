//! Measuring the packet programs (`cargo xtask bench`).
//!
//! Every figure is taken in turn with its floor, in one run, and is a median: machines are noisy.

pub mod cases;
pub mod fill;
pub mod frame;
pub mod programs;
pub mod report;
pub mod requests;
pub mod throughput;
