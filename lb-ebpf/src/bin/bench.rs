//! The bench's object.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "what the macro makes of the entry point")]

use aya_ebpf::{macros::xdp, programs::XdpContext};

/// Makes each packet of a test run new and jumps into the target.
#[xdp]
pub fn wrapper(context: XdpContext) -> u32 {
    lb_ebpf::bench::wrap(&context)
}

/// The least an encapsulating program does.
#[xdp]
pub fn floor(context: XdpContext) -> u32 {
    lb_ebpf::bench::floor(&context)
}

/// The least that redirects.
#[xdp]
pub fn redirect_floor(context: XdpContext) -> u32 {
    lb_ebpf::bench::redirect_floor(&context)
}

/// Sends live frames.
#[xdp]
pub fn sender(context: XdpContext) -> u32 {
    lb_ebpf::bench::send(&context)
}

/// Counts and drops.
#[xdp]
pub fn sink(context: XdpContext) -> u32 {
    lb_ebpf::bench::sink(&context)
}

/// Sends packets of requests.
#[xdp]
pub fn request_sender(context: XdpContext) -> u32 {
    lb_ebpf::bench::requests::send_requests(&context)
}

/// Counts packets of requests where backends get them.
#[xdp]
pub fn request_sink(context: XdpContext) -> u32 {
    lb_ebpf::bench::requests::receive_requests(&context)
}

/// The least that puts a packet into a tunnel.
#[xdp]
pub fn tunnel_floor(context: XdpContext) -> u32 {
    lb_ebpf::bench::requests::tunnel_floor(&context)
}
