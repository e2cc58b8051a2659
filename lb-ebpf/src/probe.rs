//! Probes: puts packets of health checks into the tunnels that clients' packets take. Where a link that
//! leads nowhere ends (tc, egress), each packet has a way by the mark of its socket, or is dropped.

use aya_ebpf::{bindings::TC_ACT_SHOT, btf_maps::HashMap, macros::btf_map, programs::TcContext};
use lb_common::{
    abi::form::{MAX_PROBE_ROUTES, PROBE_MARK, PROBE_MARK_MASK, ProbeRoute},
    path::probe::{OuterIp, version},
    wire::{ethernet, ipv4, ipv6},
};

use crate::kernel::{self, Outgoing};

#[btf_map]
static PROBE_ROUTES: HashMap<u64, ProbeRoute, MAX_PROBE_ROUTES, NO_PREALLOC> = HashMap::new();

/// Memory for what is there, and not for all that may be (`BPF_F_NO_PREALLOC`).
const NO_PREALLOC: usize = 1;

/// The way of that number. A value is replaced whole, and one that was replaced stays readable for as
/// long as a program may read it.
#[inline(always)]
fn find_way(number: u32) -> Option<&'static ProbeRoute> {
    kernel::lookup_word(&PROBE_ROUTES, number.into())
}

/// One packet of this host's own.
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
    let way = find_way(number)?;
    let version = version(packet.ether_type())?;
    if way.form().is_direct() {
        return Some(packet.send_to(way.interface, way.is_v4(), &way.backend));
    }
    let length = packet.ip_length() as u16;
    if !packet.wrap(way.overhead(), way.is_v4(), way.form().is_gue()) {
        return None;
    }
    let behind = match way.outer(number, version, length) {
        OuterIp::V4(outer) => {
            packet.store(ethernet::LENGTH, outer)?;
            ethernet::LENGTH + ipv4::LENGTH
        }
        OuterIp::V6(outer) => {
            packet.store(ethernet::LENGTH, outer)?;
            ethernet::LENGTH + ipv6::LENGTH
        }
    };
    if way.form().is_gue() {
        packet.store(behind, way.shim(number, version, length))?;
    }
    Some(packet.send(way.interface))
}
