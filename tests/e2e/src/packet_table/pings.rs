//! Pings: of VIPs they are answered, of others they are the host's.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{MapFixture, Room},
    frames::{ETHERNET, Flow, Packet, extended, hex},
};

use super::flows::{fixture, v4, v6};

const ANSWERED: &str = "answered_echo";

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [answered(), by_hand(), damaged(), passed(), limited()].concat()
}

/// A request or an answer, with its identifier and number, and a payload.
pub(crate) fn message(packet: &Packet, kind: u8, payload: &[u8]) -> Vec<u8> {
    packet.error(kind, 0, [0x12, 0x34, 0, 7], payload)
}

pub(crate) fn kinds(flow: &Flow) -> (u8, u8) {
    if flow.vip.is_ipv4() { (8, 0) } else { (128, 129) }
}

/// The answer to a request that `packet` was sent as: the other way round, with a hop limit of 64.
pub(crate) fn answer(packet: &Packet, flow: &Flow, payload: &[u8]) -> Vec<u8> {
    let (_, reply) = kinds(flow);
    let mut frame = message(&packet.clone().hop_limit(64).turned(), reply, payload);
    let (destination, source) = frame[..12].split_at_mut(6);
    destination.swap_with_slice(source);
    frame
}

fn answered() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        let (request, _) = kinds(&flow);
        let version = if flow.vip.is_ipv4() { 4 } else { 6 };
        for (what, packet, payload) in [
            ("without payload", Packet::new(flow), vec![]),
            ("of one byte", Packet::new(flow), vec![0x61]),
            ("of 56 bytes", Packet::new(flow), (0..56).collect()),
            ("as large as the link takes", Packet::new(flow), vec![0x5a; 1_400]),
            ("at hop limit 1", Packet::new(flow).hop_limit(1), vec![1; 8]),
            ("at hop limit 255", Packet::new(flow).hop_limit(255), vec![2; 8]),
            ("with DSCP and ECN", Packet::new(flow).traffic_class(0xb9), vec![3; 8]),
        ] {
            let what = format!("IPv{version} ping {what}");
            let frame = message(&packet, request, &payload);
            let after = answer(&packet, &flow, &payload);
            rows.push(Row::changed(what, fixture(4), (frame, after), ANSWERED));
        }
        let packet = Packet::new(flow);
        let (mut frame, mut after) =
            (message(&packet, request, &[9; 8]), answer(&packet, &flow, &[9; 8]));
        frame.extend([0xee; 3]);
        after.extend([0xee; 3]);
        let what = format!("IPv{version} ping with padding after it");
        rows.push(Row::changed(what, fixture(6), (frame, after), ANSWERED));
    }
    rows
}

/// Written out: no library had a hand in them.
fn by_hand() -> Vec<Row<MapFixture>> {
    let v4 = (
        "020000000001 02000000000c 0800 4500 0020 0001 4000 3f 01 4f9e c0000209 c6336401
         0800 88bf 1234 0007 5a01 0304",
        "02000000000c 020000000001 0800 4500 0020 0001 4000 40 01 4e9e c6336401 c0000209
         0000 90bf 1234 0007 5a01 0304",
    );
    let v6 = (
        "020000000001 02000000000c 86dd 60012345 000c 3a 3f
         20010db8000c00000000000000000009 20010db8008000000000000000000001
         8000 b470 1234 0007 5a01 0304",
        "02000000000c 020000000001 86dd 60012345 000c 3a 40
         20010db8008000000000000000000001 20010db8000c00000000000000000009
         8100 b370 1234 0007 5a01 0304",
    );
    // The one message of which ffff, not 0000, is the checksum.
    let zeros = (
        "020000000001 02000000000c 0800 4500 001c 0001 4000 3f 01 4fa2 c0000209 c6336401
         0800 f7ff 0000 0000",
        "02000000000c 020000000001 0800 4500 001c 0001 4000 40 01 4ea2 c6336401 c0000209
         0000 ffff 0000 0000",
    );
    [("an IPv4 ping", v4), ("an IPv6 ping", v6), ("a ping of nothing but zeros", zeros)]
        .map(|(what, (frame, after))| {
            let what = format!("by hand: {what}");
            Row::changed(what, fixture(4), (hex(frame), hex(after)), ANSWERED)
        })
        .into()
}

/// A wrong checksum, of the message or of its IPv4 header: a host discards it (RFC 1122, 3.2.1.2 and 3.2.2).
fn damaged() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        let (request, _) = kinds(&flow);
        let (version, at) = if flow.vip.is_ipv4() { (4, 34) } else { (6, 54) };
        for length in [0, 1, 2, 3, 31, 56, 511, 1_400] {
            let payload: Vec<u8> = (0..length).map(|byte| (byte * 5 + 1) as u8).collect();
            let frame = message(&Packet::new(flow), request, &payload);
            let last = frame.len() - 1;
            for (what, place, bit) in [
                ("the first bit of the checksum", at + 2, 0x80),
                ("the last bit of the checksum", at + 3, 0x01),
                ("its last byte", last, 0x10),
            ] {
                let mut frame = frame.clone();
                frame[place] ^= bit;
                let what = format!("IPv{version} ping of {length} bytes, {what} damaged");
                rows.push(Row::dropped(what, fixture(4), frame, "echo_checksum"));
            }
        }
        let mut none = message(&Packet::new(flow), request, b"hello");
        none[at + 2..at + 4].fill(0);
        let what = format!("IPv{version} ping without a checksum");
        rows.push(Row::dropped(what, fixture(4), none.clone(), "echo_checksum"));
        let full = fixture(4).with(|fixture| fixture.echoes = Room::Full);
        let what = format!("IPv{version} ping without a checksum when enough were answered");
        rows.push(Row::dropped(what, full, none, "echo_limited"));
    }
    let frame = message(&Packet::new(v4()), 8, b"hello");
    for (what, place) in [("checksum", 24), ("TTL", 22), ("identification", 18)] {
        let mut frame = frame.clone();
        frame[place] ^= 1;
        let what = format!("ping, the {what} of its header damaged");
        rows.push(Row::dropped(what, fixture(4), frame, "echo_checksum"));
    }
    rows
}

fn passed() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let to4 = |vip: &str| Packet::new(Flow { vip: vip.parse().unwrap(), ..v4() });
    let to6 = |vip: &str| Packet::new(Flow { vip: vip.parse().unwrap(), ..v6() });
    for (what, frame) in [
        ("of another address", message(&to4("198.51.100.2:0"), 8, b"")),
        ("of another IPv6 address", message(&to6("[2001:db8:80::2]:0"), 128, b"")),
        ("of a VIP as a mapped address", message(&to6("[::ffff:198.51.100.1]:0"), 128, b"")),
    ] {
        rows.push(Row::passed(format!("ping {what}"), fixture(4), frame, "not_ours"));
    }
    let mut row = |what: &str, frame: Vec<u8>| {
        rows.push(Row::passed(format!("ping {what}"), fixture(4), frame, "other_protocol"));
    };
    row("that is an answer", message(&Packet::new(v4()), 0, b""));
    row("that is an IPv6 answer", message(&Packet::new(v6()), 129, b""));
    row("with a code", Packet::new(v4()).error(8, 1, [0; 4], b""));
    row("with a code of IPv6", Packet::new(v6()).error(128, 1, [0; 4], b""));
    row("of IPv6 in IPv4", Packet::new(v4()).payload(&hex("8000 7fff 0000 0000")).other(58));
    row("of IPv4 in IPv6", Packet::new(v6()).payload(&hex("0800 f7ff 0000 0000")).other(1));
    row("with IP options", message(&Packet::new(v4()).options(8), 8, b""));
    let options = [(60, "00 01 01 0c 000000000000000000000000")];
    row("behind options", extended(&message(&Packet::new(v6()), 128, b""), &options));
    let mut fragment = message(&Packet::new(v4()), 8, b"");
    fragment[ETHERNET + 6] = 0x20;
    row("in fragments", fragment);
    for short in [1, 7] {
        let payload = &hex("0800 f7ff 0000 0000")[..8 - short];
        let mut frame = Packet::new(v4()).payload(payload).other(1);
        row(&format!("{short} bytes short"), frame.clone());
        frame.extend([0; 8]);
        row(&format!("{short} bytes short, the rest behind the packet"), frame);
    }
    let neighbour = Packet::new(v6()).hop_limit(255);
    row("of nobody's, a neighbour's question", message(&neighbour, 135, &[0; 16]));
    row("of nobody's, a neighbour's redirect", message(&neighbour, 137, &[0; 32]));
    row("of nobody's, a question from afar", message(&Packet::new(v6()), 135, &[0; 16]));
    row("of nobody's, a multicast listener's report", message(&neighbour, 143, &[0; 16]));
    rows
}

fn limited() -> Vec<Row<MapFixture>> {
    let row = |what: &str, packet: Packet, kind, room| {
        let fixture = fixture(4).with(|fixture| fixture.echoes = room);
        let frame = message(&packet, kind, b"hello");
        Row::dropped(format!("ping when {what}"), fixture, frame, "echo_limited")
    };
    vec![
        row("enough were answered", Packet::new(v4()), 8, Room::Full),
        row("none is answered", Packet::new(v6()), 128, Room::Closed),
    ]
}
