//! The object of probes.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry point")]

use aya_ebpf::{macros::classifier, programs::TcContext};

/// Entry point of packets to the link.
#[classifier]
pub fn probe(context: TcContext) -> i32 {
    lb_ebpf::probe::run(&context)
}

/// Entry point of packets that arrive at the balancer.
#[classifier]
pub fn probe_answers(context: TcContext) -> i32 {
    lb_ebpf::probe::redirect_answer(&context)
}
