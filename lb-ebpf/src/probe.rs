//! Probes: puts packets of health checks into the tunnels that clients' packets take. The program is at the end of a link
//! that leads nowhere (tc, egress). The mark of a packet's socket names its route; without one the packet is dropped.
//!
//! A second program redirects answers to the link where they arrive (tc, ingress), if the VIP is an address of the balancer
//! too: the kernel accepts none from an address of its own (IPv4), and the socket of such a check belongs to the link.

use aya_ebpf::{
    bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC},
    btf_maps::HashMap,
    macros::btf_map,
    programs::TcContext,
};
use lb_common::{
    abi::{
        form::{
            MAX_PROBE_ROUTES, MAX_PROBE_VIPS, PROBE_LINK_MAC, PROBE_MARK, PROBE_MARK_MASK,
            ProbeRoute,
        },
        service::{IPV4, IPV6, V4_MAPPED, VipKey},
    },
    path::probe::{OuterIp, version},
    wire::{Packet as _, ethernet, ipv4, ipv4::Ipv4, ipv6, ipv6::Ipv6, vlan::Tags},
};

use crate::kernel::{self, Outgoing, Skb};

#[btf_map]
static PROBE_ROUTES: HashMap<u64, ProbeRoute, MAX_PROBE_ROUTES, NO_PREALLOC> = HashMap::new();

/// The VIPs whose answers are redirected.
#[btf_map]
static PROBE_VIPS: HashMap<VipKey, u32, MAX_PROBE_VIPS, NO_PREALLOC> = HashMap::new();

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

/// Handles a packet that arrives at the balancer.
#[inline(always)]
pub fn redirect_answer(context: &TcContext) -> i32 {
    redirect(&mut Skb::new(context)).unwrap_or(TC_ACT_UNSPEC)
}

/// Redirects an answer from a VIP to the link; `None`: it is none.
#[inline(always)]
fn redirect(packet: &mut Skb<'_>) -> Option<i32> {
    // Not true of a tagged packet, which the VLAN device's own program sees.
    if packet.tag_beside() != Tags::NONE {
        return None;
    }
    packet.pull(ethernet::LENGTH + ipv6::LENGTH);
    let vip = match ethernet::ether_type(packet.bytes(0)?) {
        ethernet::IPV4 => {
            let source = Ipv4(packet.bytes(ethernet::LENGTH)?).source();
            VipKey { address: [0, 0, V4_MAPPED, source], version: IPV4.into() }
        }
        ethernet::IPV6 => {
            let source = Ipv6(packet.bytes(ethernet::LENGTH)?).source();
            VipKey { address: source, version: IPV6.into() }
        }
        _ => return None,
    };
    // The link takes only what is for its MAC.
    let is_answer = kernel::contains(&PROBE_VIPS, &vip) && packet.store(0, &PROBE_LINK_MAC);
    is_answer.then(|| packet.redirect_to_probe_link())
}
