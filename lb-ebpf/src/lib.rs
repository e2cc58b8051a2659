//! The packet programs: thin shells over the pure decisions of `lb-common`.
//!
//! [`kernel`] is the only place with unsafe code: packet pointers and map values. Only the
//! `emit` modules return an XDP or tc action, and those of clients' packets count what they return;
//! [`bench`] is no part of the product.
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod balancer;
pub mod bench;
pub mod kernel;
pub mod probe;
pub mod receiver;
pub mod tracepoints;

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use lb_common::abi::{
    counter::VerdictCounter,
    verdict::{VERDICT_SLOTS, Verdict},
};

#[btf_map]
static VERDICT_COUNTERS: PerCpuArray<VerdictCounter, { VERDICT_SLOTS as usize }> =
    PerCpuArray::new();

/// Counts a packet of `bytes` bytes under its verdict.
#[inline(always)]
fn count_verdict(verdict: Verdict, bytes: u64) {
    kernel::per_cpu(&VERDICT_COUNTERS, verdict as u32, |counter| {
        counter.packets += 1;
        counter.bytes += bytes;
    });
}
