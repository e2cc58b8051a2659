//! Packets whose TTL or hop limit is used up: their sender is told, as every router tells it, so that traceroute sees the
//! balancer.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{MapFixture, NOTHING, Room},
    frames::{Flow, Packet, extended, hex},
};

use super::{
    flows::{fixture, v4, v4_udp, v6, v6_udp},
    fragments,
    oversize::{self, without_df},
};

const ANSWERED: &str = "answered_time_exceeded";
const OPTIONS: [(u8, &str); 1] = [(60, "00 01 01 0c 000000000000000000000000")];

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [kinds(), lengths(), others(), by_hand(), unanswered()].concat()
}

/// The VIP's answer to a frame at its last hop.
pub(crate) fn answer(flow: &Flow, frame: &[u8]) -> Vec<u8> {
    let kind = if flow.vip.is_ipv4() { 11 } else { 3 };
    oversize::error(flow, frame, (kind, 0, [0; 4]))
}

fn told(
    what: impl Into<String>,
    fixture: MapFixture,
    flow: &Flow,
    frame: Vec<u8>,
) -> Row<MapFixture> {
    let after = answer(flow, &frame);
    Row::changed(what, fixture, (frame, after), ANSWERED)
}

fn version(flow: &Flow) -> u8 {
    if flow.vip.is_ipv4() { 4 } else { 6 }
}

fn kinds() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (flow, datagram) in [(v4(), v4_udp()), (v6(), v6_udp())] {
        for hop_limit in [0, 1] {
            let packet = Packet::new(flow).hop_limit(hop_limit);
            let classed = packet.clone().traffic_class(0xb9);
            for (what, flow, frame) in [
                ("a SYN", flow, packet.tcp("S")),
                ("an ACK", flow, packet.tcp("A")),
                ("a RST", flow, packet.tcp("R")),
                ("a datagram", datagram, Packet::new(datagram).hop_limit(hop_limit).udp()),
                ("a SYN with DSCP and ECN", flow, classed.tcp("S")),
            ] {
                let what = format!("{what} of IPv{} at hop limit {hop_limit}", version(&flow));
                rows.push(told(what, fixture(4), &flow, frame));
            }
        }
    }
    rows
}

/// What fits is quoted, and nothing that stands behind the packet.
fn lengths() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (flow, headers, most) in [(v4(), 40, 548), (v6(), 60, 1_232)] {
        for length in
            [headers, headers + 1, headers + 2, headers + 3, most - 1, most, most + 1, 1_480, 1_481]
        {
            let payload: Vec<u8> = (0..length - headers).map(|byte| (byte * 7 + 3) as u8).collect();
            let frame = Packet::new(flow).hop_limit(1).payload(&payload).tcp("A");
            let what = format!("{length} bytes of IPv{} at the last hop", version(&flow));
            rows.push(told(what, fixture(4), &flow, frame));
        }
        let mut padded = Packet::new(flow).hop_limit(1).payload(&[]).tcp("S");
        padded.extend([0xee; 6]);
        let what = format!("padding behind IPv{} at the last hop", version(&flow));
        rows.push(told(what, fixture(4), &flow, padded));
    }
    rows
}

fn others() -> Vec<Row<MapFixture>> {
    let last = |flow: Flow| Packet::new(flow).hop_limit(1);
    let served = Flow::new("192.0.2.9:4711", "198.51.100.4:53");
    let first = fragments::fragment_v4(&last(served).udp(), 0x2000);
    let behind = extended(&last(v6()).tcp("S"), &OPTIONS);
    let nothing = fixture(4).with(|fixture| {
        for member in &mut fixture.regions[0].members {
            member.state = NOTHING;
        }
    });
    // Its own checksum is for the host to judge.
    let mut wrong = last(v4_udp()).udp();
    wrong[40] ^= 1;
    vec![
        told("with IP options at the last hop", fixture(4), &v4(), last(v4()).options(40).tcp("S")),
        told("behind options at the last hop", fixture(4), &v6(), behind),
        told("without DF at the last hop", fixture(4), &v4(), without_df(last(v4()).tcp("S"))),
        told("a first fragment at its last hop", fragments::fixture(&served, 17), &served, first),
        told("at the last hop to no backend", nothing, &v4(), last(v4()).tcp("S")),
        told("a datagram with a wrong checksum at its last hop", fixture(4), &v4_udp(), wrong),
        told("to an IPv6 tunnel at the last hop", fixture(6), &v4(), last(v4()).tcp("S")),
    ]
}

/// Written out: no library had a hand in it.
fn by_hand() -> Vec<Row<MapFixture>> {
    let frame = hex("020000000001 02000000000c 0800
        4500 0028 0001 4000 01 06 8d91 c0000209 c6336401
        1267 0050 00000001 00000000 5002 2000 90ec 0000");
    // Under the checksum: 0b00, the quoted header, which sums up to ffff, and the segment: 1267 + 0050 + 0001 + 5002 +
    // 2000 + 90ec = 113a6, folded 13a7. Together 1ea7.
    let after = hex("02000000000c 020000000001 0800
        45c0 0044 0000 4000 40 01 4dbb c6336401 c0000209
        0b00 e158 0000 0000
        4500 0028 0001 4000 01 06 8d91 c0000209 c6336401
        1267 0050 00000001 00000000 5002 2000 90ec 0000");
    vec![Row::changed("by hand: a SYN at its last hop", fixture(4), (frame, after), ANSWERED)]
}

/// No ICMP error is sent, and the packet is dropped.
fn unanswered() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        for (what, room) in
            [("when the limit is reached", Room::Full), ("when none may be sent", Room::Closed)]
        {
            let fixture = fixture(4).with(|fixture| fixture.errors = room);
            let frame = Packet::new(flow).hop_limit(1).tcp("S");
            let what = format!("IPv{} at the last hop, {what}", version(&flow));
            rows.push(Row::dropped(what, fixture, frame, "hop_limit_exceeded"));
        }
    }
    for (what, place) in [("checksum", 24), ("identification", 18), ("options", 40)] {
        let mut frame = Packet::new(v4()).hop_limit(1).options(12).tcp("S");
        frame[place] ^= 1;
        let what = format!("at the last hop, the {what} of its header damaged");
        rows.push(Row::dropped(what, fixture(4), frame, "hop_limit_exceeded"));
    }
    let large = Packet::new(v4()).payload(&[0; 1_500]);
    let mut frame = large.tcp("A");
    frame[25] ^= 1;
    rows.push(Row::dropped("too large, its header damaged", fixture(4), frame, "too_large"));
    let served = Flow::new("[2001:db8:c::9]:4711", "[2001:db8:80::4]:5353");
    let later = Packet::new(served).hop_limit(1).payload(&[0x5a; 32]).other(17);
    let later = extended(&later, &[(44, "00 00 0579 0000002a")]);
    let what = "a later fragment of IPv6 at its last hop";
    rows.push(Row::dropped(what, fragments::fixture(&served, 17), later, "hop_limit_exceeded"));
    // An error behind options is one all the same (RFC 4443, 2.4).
    let sent = Packet::new(v6().answered()).payload(&[0; 1_400]).tcp("A");
    let router = super::icmp_errors::router(&v6());
    let what = "an ICMP error behind options at its last hop";
    let last = extended(&router.clone().hop_limit(1).error(1, 0, [0; 4], &sent[14..]), &OPTIONS);
    rows.push(Row::dropped(what, fixture(4), last, "hop_limit_exceeded"));
    let what = "too large, an ICMP error behind options";
    let large = extended(&router.error(1, 0, [0; 4], &sent[14..]), &OPTIONS);
    rows.push(Row::dropped(what, fixture(4), large, "too_large"));
    rows
}
