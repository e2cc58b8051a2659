//! Emit: the one exit of the probes' program.

use aya_ebpf::bindings::TC_ACT_SHOT;
use lb_common::{
    abi::probe::{MARK, MARK_MASK},
    path::probe::{OuterIp, version},
    wire::{ethernet, ipv4, ipv6},
};

use super::maps;
use crate::kernel::Outgoing;

/// Sends a packet to the backend of its mark.
#[inline(always)]
pub(super) fn emit(mut packet: Outgoing<'_>) -> i32 {
    send(&mut packet).unwrap_or(TC_ACT_SHOT)
}

#[inline(always)]
fn send(packet: &mut Outgoing<'_>) -> Option<i32> {
    let mark = packet.take_mark();
    if mark & MARK_MASK != MARK {
        return None;
    }
    let number = mark & !MARK_MASK;
    let way = maps::way(number)?;
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
