//! The packet programs: thin shells over the pure decisions of `lb-common`.
//!
//! [`kernel`] is the only place with unsafe code: packet pointers and map values. Only the two
//! `emit` modules return an XDP action, and they count what they return; [`bench`] is no part of the
//! product.
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod balancer;
pub mod bench;
mod counters;
pub mod kernel;
pub mod receiver;
