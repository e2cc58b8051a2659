//! The packet programs: thin shells over the pure decisions of `lb-common`.
//!
//! [`kernel`] is the only place with unsafe code: packet pointers and map values. Only the
//! `emit` modules return an XDP or tc action, and those of clients' packets count what they return;
//! [`bench`] is no part of the product.
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod balancer;
pub mod bench;
mod counters;
pub mod kernel;
pub mod probe;
pub mod receiver;
