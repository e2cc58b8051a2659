//! Programs that measure the balancer: a wrapper that makes each packet new, and floors to compare
//! with. No part of the product.
//!
//! A test run of the kernel passes the same buffer to the program repeatedly, grown by the headers that were added. The
//! wrapper removes these, writes the next flow's packet, and jumps into the program under test.

pub mod requests;

use aya_ebpf::{
    bindings::xdp_action::{XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX},
    btf_maps::{Array, DevMapHash, PerCpuArray, ProgramArray},
    macros::btf_map,
    programs::XdpContext,
};
use lb_common::wire::{ethernet, gue, ipv4, ipv6, udp};

use crate::kernel::{self, Frame};

/// What GUE over IPv4 puts in front, bytes.
const IN_GUE: usize = ipv4::LENGTH + udp::LENGTH + gue::LENGTH;

/// Bytes the target puts in front of a packet: 0, 20, 32 or 40.
const GROWN: u32 = 0;
/// `{IP version 8, services 32}` from the low end, in one word: a look-up more would cost the floor a nanosecond. Packets
/// go to so many services of IPv4, drawn at random; 0: to the destination that they have.
const PACKETS: u32 = 1;
/// Number of flows.
const FLOWS: u32 = 2;
/// State of the generator, not 0.
const STATE: u32 = 3;

#[btf_map]
static SETTINGS: Array<u64, 4> = Array::new();
#[btf_map]
static ARRIVALS: PerCpuArray<u64, 1> = PerCpuArray::new();
/// Where the floor redirects to, as entry 0.
#[btf_map]
static EXIT: DevMapHash<1> = DevMapHash::new();
/// The program under test.
#[btf_map]
static TARGET: ProgramArray<1> = ProgramArray::new();

#[inline(always)]
fn setting(index: u32) -> u64 {
    kernel::word(&SETTINGS, index).unwrap_or_default()
}

#[inline(always)]
fn remember(state: u64) {
    kernel::store(&SETTINGS, STATE, state);
}

#[inline(always)]
fn count_arrival() {
    kernel::per_cpu(&ARRIVALS, 0, |arrivals| *arrivals += 1);
}

/// Makes the packet new and jumps into the target; aborts where there is none.
#[inline(always)]
pub fn wrap(context: &XdpContext) -> u32 {
    let mut frame = Frame::new(context);
    let grown = match setting(GROWN) {
        20 => frame.shrink(ipv4::LENGTH),
        32 => frame.shrink(IN_GUE),
        40 => frame.shrink(ipv6::LENGTH),
        _ => true,
    };
    if !grown || refresh(&mut frame).is_none() {
        return XDP_ABORTED;
    }
    kernel::tail_call(&TARGET, context, 0);
    XDP_ABORTED
}

/// The address of the first service that packets are sent to at random, 198.18.0.0.
const FIRST_SERVICE: u32 = 0xc612_0000;

/// Writes the next flow's packet: MACs, hop limit, client address and port, and of packets to services that are drawn at
/// random the destination.
///
/// Each store covers everything that the program under test may load at once: a load that waits for two stores would cost
/// it time that a packet from the wire does not.
#[inline(always)]
fn refresh(frame: &mut Frame<'_>) -> Option<()> {
    let (flow, random) = next_flow();
    // No source that routers do not forward, 127.0.0.0/8 and from 224.0.0.0 on: what the address lacks for that is in the
    // port.
    let port = u32::from(flow as u16 ^ (flow >> 29) as u16 ^ 0x5bd1);
    let address = (flow as u32 & 0x5fff_ffff | 0x0a00_0000).to_be();
    let packets = setting(PACKETS);
    let (version, services) = (packets & 0xff, packets >> 8);
    if version == 4 {
        let packet = frame.bytes_mut::<{ ethernet::LENGTH + 24 }>(0)?;
        packet[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00]);
        let protocol = packet[23];
        packet[22..24].copy_from_slice(&[64, protocol]);
        let addresses = packet.last_chunk_mut::<12>()?.first_chunk_mut()?;
        if services == 0 {
            replace_low_half(addresses, address);
        } else {
            let service = FIRST_SERVICE + ((random * services) >> 32) as u32;
            *addresses = (u64::from(address) | u64::from(service.to_be()) << 32).to_le_bytes();
        }
        replace_port(packet.last_chunk_mut()?, port);
    } else {
        let packet = frame.bytes_mut::<{ ethernet::LENGTH + 44 }>(0)?;
        packet[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd]);
        let head = packet.first_chunk_mut::<22>()?.last_chunk_mut::<8>()?;
        *head = (u64::from_le_bytes(*head) & !(0xff << 56) | 64 << 56).to_le_bytes();
        // A fragment has another header there.
        let has_port = head[6] != ipv6::FRAGMENT;
        replace_low_half(packet.first_chunk_mut::<38>()?.last_chunk_mut()?, address);
        if has_port {
            replace_port(packet.last_chunk_mut()?, port);
        }
    }
    Some(())
}

#[inline(always)]
fn replace_low_half(bytes: &mut [u8; 8], low: u32) {
    *bytes = (u64::from_le_bytes(*bytes) & !0xffff_ffff | u64::from(low)).to_le_bytes();
}

#[inline(always)]
fn replace_port(ports: &mut [u8; 4], port: u32) {
    *ports = (u32::from_le_bytes(*ports) & !0xffff | port).to_le_bytes();
}

/// A number below the number of flows, and 32 other bits, drawn by xorshift (Marsaglia 2003).
#[inline(always)]
fn next_flow() -> (u64, u64) {
    let flows = setting(FLOWS);
    if flows == 1 {
        return (0, 0);
    }
    let mut state = setting(STATE);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    remember(state);
    (((state >> 32) * flows) >> 32, state & 0xffff_ffff)
}

/// The least an encapsulating program does: room in front, an Ethernet header, out again.
#[inline(always)]
pub fn floor(context: &XdpContext) -> u32 {
    let mut frame = Frame::new(context);
    let grown = match setting(GROWN) {
        20 => frame.grow(ipv4::LENGTH),
        32 => frame.grow(IN_GUE),
        40 => frame.grow(ipv6::LENGTH),
        _ => return XDP_PASS,
    };
    if grown { XDP_TX } else { XDP_ABORTED }
}

/// The least that sends an encapsulated packet out by another interface.
#[inline(always)]
pub fn redirect_floor(context: &XdpContext) -> u32 {
    match floor(context) {
        XDP_TX => EXIT.redirect(0, 0).unwrap_or(XDP_ABORTED),
        action => action,
    }
}

/// Sends live frames: a new flow each, out of the interface they are run on.
#[inline(always)]
pub fn send(context: &XdpContext) -> u32 {
    match refresh(&mut Frame::new(context)) {
        Some(()) => XDP_TX,
        None => XDP_ABORTED,
    }
}

/// Counts what arrives and drops it.
#[inline(always)]
pub fn sink(_: &XdpContext) -> u32 {
    count_arrival();
    XDP_DROP
}
