//! Probes: puts packets of health checks into the tunnels that clients' packets take. The program is at the end of a link
//! that leads nowhere (tc, egress). The mark of a packet's socket names its route; without one the packet is dropped.

use aya_ebpf::{bindings::TC_ACT_SHOT, btf_maps::HashMap, macros::btf_map, programs::TcContext};
use lb_common::{
    abi::form::{MAX_PROBE_ROUTES, PROBE_MARK, PROBE_MARK_MASK, ProbeRoute},
    path::probe::{OuterIp, version},
    wire::{ethernet, ipv4, ipv6},
};

use crate::kernel::{self, Outgoing};

#[btf_map]
static PROBE_ROUTES: HashMap<u64, ProbeRoute, MAX_PROBE_ROUTES, NO_PREALLOC> = HashMap::new();

/// Allocates entries as they are added (`BPF_F_NO_PREALLOC`).
const NO_PREALLOC: usize = 1;

/// The route with a number. The kernel replaces values whole, and a replaced value stays readable as long as a program
/// may read it.
#[inline(always)]
fn find_route(number: u32) -> Option<&'static ProbeRoute> {
    kernel::hash_value(&PROBE_ROUTES, number.into())
}

/// Handles a packet that this host sends.
#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    send(&mut Outgoing::new(context)).unwrap_or(TC_ACT_SHOT)
}

/// Sends a packet to the backend of its mark.
#[inline(always)]
fn send(packet: &mut Outgoing<'_>) -> Option<i32> {
    let mark = packet.take_mark();
    if mark & PROBE_MARK_MASK != PROBE_MARK {
        return None;
    }
    let number = mark & !PROBE_MARK_MASK;
    let route = find_route(number)?;
    let version = version(packet.ether_type())?;
    if route.form().is_direct() {
        return Some(packet.send_to(route.interface, route.is_v4(), &route.backend));
    }
    let length = packet.ip_length() as u16;
    if !packet.wrap(route.overhead(), route.is_v4(), route.form().is_gue()) {
        return None;
    }
    let behind = match route.outer(number, version, length) {
        OuterIp::V4(outer) => {
            packet.store(ethernet::LENGTH, outer)?;
            ethernet::LENGTH + ipv4::LENGTH
        }
        OuterIp::V6(outer) => {
            packet.store(ethernet::LENGTH, outer)?;
            ethernet::LENGTH + ipv6::LENGTH
        }
    };
    if route.form().is_gue() {
        packet.store(behind, route.shim(number, version, length))?;
    }
    Some(packet.send(route.interface))
}
