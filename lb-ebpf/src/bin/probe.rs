//! The object of probes.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry point")]

use aya_ebpf::{macros::classifier, programs::TcContext};

/// Entry point.
#[classifier]
pub fn probe(context: TcContext) -> i32 {
    lb_ebpf::probe::run(&context)
}
