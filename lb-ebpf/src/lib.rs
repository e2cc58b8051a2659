//! The packet programs: thin shells over the pure decisions of `lb-common`.
//!
//! [`kernel`] is the only place with unsafe code: packet pointers and map values. Only the two
//! `emit` modules return an XDP action, and they count what they return.
#![no_std]

pub mod balancer;
mod counters;
pub mod kernel;
pub mod receiver;
