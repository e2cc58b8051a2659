//! The object of the programs on tracepoints.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry points")]

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};

/// At `xdp_exception`.
#[raw_tracepoint(tracepoint = "xdp_exception")]
pub fn xdp_exception(context: RawTracePointContext) -> Option<()> {
    lb_ebpf::tracepoints::xdp_exception(&context)
}

/// At `xdp_redirect_err`.
#[raw_tracepoint(tracepoint = "xdp_redirect_err")]
pub fn xdp_redirect_err(context: RawTracePointContext) -> Option<()> {
    lb_ebpf::tracepoints::xdp_redirect_err(&context)
}

/// At `xdp_devmap_xmit`.
#[raw_tracepoint(tracepoint = "xdp_devmap_xmit")]
pub fn xdp_devmap_xmit(context: RawTracePointContext) -> Option<()> {
    lb_ebpf::tracepoints::xdp_devmap_xmit(&context)
}
