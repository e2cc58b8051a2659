//! Short requests by the packets that their clients send, and the backends that get them.
//!
//! A request is known by its number: the low 24 bits of it are in the client's address, the others in the client's port,
//! whose lowest two bits say which generator sends it. So whoever sees a packet knows which request it belongs to, and a
//! request that two backends get packets of is noticed without any knowledge of the balancer.

use aya_ebpf::{
    bindings::xdp_action::{XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX},
    btf_maps::{Array, PerCpuArray},
    macros::btf_map,
    programs::XdpContext,
};
use lb_common::wire::{ethernet, ipv4};

use crate::kernel::{self, Frame};

/// The most generators, each of which sends from a CPU of its own.
const GENERATORS: u64 = 4;
/// Requests of a generator that are remembered at the backends: a power of two, more than are open at a time.
const REMEMBERED: u64 = 1 << 17;
/// Packets of a request.
const PACKETS: u64 = 6;
/// The lowest port of clients, a multiple of [`GENERATORS`].
const FIRST_PORT: u64 = 1024;
/// IPv4 in IPv4 (RFC 2003).
const IN_IP: u8 = 4;
/// Flags of TCP.
const SYN: u8 = 2;
const ACK: u8 = 0x10;
/// IPv4 in Ethernet, from and to whom it may be.
const ETHERNET: [u8; ethernet::LENGTH] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
/// What Linux sends packets with.
const TTL: u8 = 64;
/// The tunnel of the floor program, without checksum.
const TUNNEL: [u8; ipv4::LENGTH] =
    [0x45, 0, 0, 60, 0, 0, 0x40, 0, TTL, IN_IP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
/// Backends are told apart by the last byte of their address.
const BACKENDS: usize = 256;
/// Numbers from here on are of flows of which one packet is sent, again and again, to see where it goes.
const FIRST_PROBE: u64 = 1 << 37;
/// The first bytes of a client's packet, as words.
const HEAD: usize = 10;

/// How a generator sends, by the numbers below. Each generator loads a sender of its own.
#[btf_map]
static SCHEDULE: Array<u64, 6> = Array::new();
/// The number of the first request.
const FIRST: u32 = 0;
/// How many requests are begun.
const END: u32 = 1;
/// How many others are begun between two packets of a request.
const BETWEEN: u32 = 2;
/// When the first one is due, on the kernel's clock (`bpf_ktime_get_ns`), and how long after that the next one is,
/// nanoseconds; 0: as soon as there is time.
const START: u32 = 3;
const INTERVAL: u32 = 4;
/// Which of the packets is sent alone, one for each client; [`PACKETS`]: all six of a request.
const ALONE: u32 = 5;

/// How many packets were due so far.
#[btf_map]
static NEXT_PACKET: Array<u64, 1> = Array::new();

/// The beginning of each packet of a request.
#[btf_map]
static HEADS: Array<[u64; HEAD], { PACKETS as usize }> = Array::new();

/// The length of each, bytes.
#[btf_map]
static LENGTHS: Array<u64, { PACKETS as usize }> = Array::new();

/// What backends remember of requests, by generator and the low bits of the number.
#[btf_map]
static REQUESTS: Array<u64, { (GENERATORS * REMEMBERED) as usize }> = Array::new();

/// Packets that backends got.
#[btf_map]
static REQUEST_PACKETS: PerCpuArray<u64, 1> = PerCpuArray::new();

/// Packets of requests whose SYN did not arrive.
#[btf_map]
static WITHOUT_SYN: PerCpuArray<u64, 1> = PerCpuArray::new();

/// Requests whose SYN arrived, by backend.
#[btf_map]
static BEGUN: PerCpuArray<u64, BACKENDS> = PerCpuArray::new();

/// Requests of which one backend got all packets.
#[btf_map]
static COMPLETE: PerCpuArray<u64, BACKENDS> = PerCpuArray::new();

/// Requests of which another backend got a packet, by the one that got the SYN.
#[btf_map]
static SPLIT: PerCpuArray<u64, BACKENDS> = PerCpuArray::new();

/// Packets of probes: of the same flows again and again.
#[btf_map]
static PROBES: PerCpuArray<u64, 1> = PerCpuArray::new();

/// Probes whose flow was at another backend the last time, by that.
#[btf_map]
static MOVED_FROM: PerCpuArray<u64, BACKENDS> = PerCpuArray::new();

/// What is remembered of a request: `{number 40, packets 8, split 8, backend 8}` from the high end. 0: nothing.
#[derive(Clone, Copy)]
struct Request(u64);

impl Request {
    /// One whose SYN a backend got.
    #[inline(always)]
    const fn begun(number: u64, backend: u32) -> Self {
        Self(number << 24 | 1 << 16 | backend as u64)
    }

    #[inline(always)]
    const fn is(self, number: u64) -> bool {
        self.0 != 0 && self.0 >> 24 == number
    }

    #[inline(always)]
    const fn backend(self) -> u32 {
        (self.0 & 0xff) as u32
    }

    #[inline(always)]
    const fn is_split(self) -> bool {
        self.0 & 0xff00 != 0
    }

    #[inline(always)]
    const fn split(self) -> Self {
        Self(self.0 | 0x100)
    }

    /// With one packet more.
    #[inline(always)]
    const fn counted(self) -> Self {
        Self(self.0 + (1 << 16))
    }

    #[inline(always)]
    const fn is_complete(self) -> bool {
        self.0 >> 16 & 0xff == PACKETS
    }
}

/// Sends live frames, each a packet of the request that has one due; drops them while none is.
///
/// For each request that is begun, those before it get their further packets: the first packet of one, the second packet of
/// the one that was begun `BETWEEN` requests ago, and so on. The frame that is repeated is the longest of a client's
/// packets, so that others are shorter by its end alone.
#[inline(always)]
pub fn send_requests(context: &XdpContext) -> u32 {
    due_packet(&mut Frame::new(context)).map_or(XDP_DROP, |()| XDP_TX)
}

#[inline(always)]
fn due_packet(frame: &mut Frame<'_>) -> Option<()> {
    let next = kernel::word(&NEXT_PACKET, 0)?;
    let plan = |index| kernel::word(&SCHEDULE, index);
    let alone = plan(ALONE)?;
    let (begun, packet, behind) = match alone < PACKETS {
        true => (next, alone, 0),
        false => (next / PACKETS, next % PACKETS, next % PACKETS * plan(BETWEEN)?),
    };
    let interval = plan(INTERVAL)?;
    if interval > 0 && kernel::exact_time() < plan(START)? + begun * interval {
        return None;
    }
    kernel::store(&NEXT_PACKET, 0, next + 1);
    // Of one before the first, a number beyond all.
    let request = begun.wrapping_sub(behind);
    if request >= plan(END)? {
        return None;
    }
    let number = plan(FIRST)? + request;
    write_packet(frame, packet as u32, number)?;
    frame.truncate(kernel::word(&LENGTHS, packet as u32)? as usize).then_some(())
}

/// Writes what tells a packet from others, all of the outer header that the balancer wrote to the same memory before, and
/// the client's address and port.
#[inline(always)]
fn write_packet(frame: &mut Frame<'_>, packet: u32, number: u64) -> Option<()> {
    let head = HEADS.get(packet)?;
    let bytes = frame.bytes_mut::<{ 8 * HEAD }>(0)?;
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(head) {
        *bytes = word.to_ne_bytes();
    }
    let [_, high, middle, low] = (number as u32).to_be_bytes();
    bytes[27] = high;
    bytes[28] = middle;
    bytes[29] = low;
    let generator = u64::from(bytes[35]) % GENERATORS;
    let port = FIRST_PORT + (number >> 24) * GENERATORS + generator;
    let [high, low] = (port as u16).to_be_bytes();
    bytes[34] = high;
    bytes[35] = low;
    Some(())
}

/// Takes packets of requests from their tunnels and counts them; passes all others.
#[inline(always)]
pub fn receive_requests(context: &XdpContext) -> u32 {
    let mut frame = Frame::new(context);
    let Some(packet) = frame.bytes_mut::<{ ethernet::LENGTH + ipv4::LENGTH + 34 }>(0) else {
        return XDP_PASS;
    };
    let is_ipv4 = (packet[12], packet[13], packet[14]) == (8, 0, 0x45);
    if !is_ipv4 || packet[23] != IN_IP {
        return XDP_PASS;
    }
    let backend = u32::from(packet[33]);
    let port = u64::from(u16::from_be_bytes([packet[54], packet[55]]));
    let low = u64::from(u32::from_be_bytes([0, packet[47], packet[48], packet[49]]));
    let number = ((port.wrapping_sub(FIRST_PORT) / GENERATORS) & 0xffff) << 24 | low;
    let is_first = packet[67] & (SYN | ACK) == SYN;
    let index = (port % GENERATORS * REMEMBERED + number % REMEMBERED) as u32;
    let before = Request(kernel::word(&REQUESTS, index).unwrap_or_default());
    let after = match (number >= FIRST_PROBE, is_first) {
        (true, _) => probe(before, number, backend),
        (false, true) => begin(number, backend),
        (false, false) => go_on(before, number, backend),
    };
    kernel::store(&REQUESTS, index, after.0);
    XDP_DROP
}

/// A backend gets a packet of a flow that is looked at.
#[inline(always)]
fn probe(before: Request, number: u64, backend: u32) -> Request {
    kernel::per_cpu(&PROBES, 0, |count| *count += 1);
    if before.is(number) && before.backend() != backend {
        kernel::per_cpu(&MOVED_FROM, before.backend(), |count| *count += 1);
    }
    Request::begun(number, backend)
}

/// A backend gets a SYN.
#[inline(always)]
fn begin(number: u64, backend: u32) -> Request {
    kernel::per_cpu(&REQUEST_PACKETS, 0, |count| *count += 1);
    kernel::per_cpu(&BEGUN, backend, |count| *count += 1);
    Request::begun(number, backend)
}

/// A backend gets another packet.
#[inline(always)]
fn go_on(before: Request, number: u64, backend: u32) -> Request {
    kernel::per_cpu(&REQUEST_PACKETS, 0, |count| *count += 1);
    if !before.is(number) {
        kernel::per_cpu(&WITHOUT_SYN, 0, |count| *count += 1);
        return before;
    }
    if before.backend() != backend {
        if !before.is_split() {
            kernel::per_cpu(&SPLIT, before.backend(), |count| *count += 1);
        }
        return before.split();
    }
    let after = before.counted();
    if after.is_complete() && !after.is_split() {
        kernel::per_cpu(&COMPLETE, backend, |count| *count += 1);
    }
    after
}

/// The least that puts a packet into a tunnel: room in front, constant headers, out again. All packets go to one backend.
#[inline(always)]
pub fn tunnel_floor(context: &XdpContext) -> u32 {
    let mut frame = Frame::new(context);
    if !frame.grow(ipv4::LENGTH) {
        return XDP_ABORTED;
    }
    let Some(headers) = frame.bytes_mut::<{ ethernet::LENGTH + ipv4::LENGTH }>(0) else {
        return XDP_ABORTED;
    };
    headers[..ethernet::LENGTH].copy_from_slice(&ETHERNET);
    headers[ethernet::LENGTH..].copy_from_slice(&TUNNEL);
    XDP_TX
}
