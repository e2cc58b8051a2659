//! Packets that leave: protocols, tunnels, headers.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::MapFixture,
    frames::{Flow, Packet},
};

use super::flows::{fixture, v4, v4_udp, v6, v6_udp};

const OWNER: (usize, u16) = (0, 0);

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [protocols(), flags(), traffic_classes(), hop_limits(), lengths()].concat()
}

/// IPv4 and IPv6, TCP and UDP, in tunnels of both versions.
fn protocols() -> Vec<Row<MapFixture>> {
    let frames = |flow: Flow| match flow.vip.port() {
        80 => ("TCP", Packet::new(flow).tcp("A")),
        _ => ("UDP", Packet::new(flow).udp()),
    };
    let mut rows = Vec::new();
    for tunnel in [4, 6] {
        for flow in [v4(), v6(), v4_udp(), v6_udp()] {
            let (protocol, frame) = frames(flow);
            let version = if flow.vip.is_ipv4() { 4 } else { 6 };
            let what = format!("{protocol} over IPv{version} in IPv{tunnel}");
            rows.push(Row::sent(what, fixture(tunnel), (&flow, frame), OWNER));
        }
    }
    rows
}

/// Every kind of segment goes; a SYN without ACK is a connection.
fn flags() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        for flags in ["S", "SA", "A", "PA", "F", "FA", "R", "RA", "UA", "", "SEC", "SP"] {
            let frame = Packet::new(flow).tcp(flags);
            let name = if flags.is_empty() { "none" } else { flags };
            let version = if flow.vip.is_ipv4() { 4 } else { 6 };
            let what = format!("IPv{version} segment with flags {name}");
            rows.push(Row::sent(what, fixture(4), (&flow, frame), OWNER));
        }
    }
    rows
}

/// DSCP and ECN stand in the outer header too.
fn traffic_classes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (tunnel, flow) in [(4, v4()), (4, v6()), (6, v4()), (6, v6())] {
        for (name, traffic_class) in [
            ("EF", 0xb8),
            ("CS6 and ECT(0)", 0xc2),
            ("ECT(1)", 0x01),
            ("AF11 and CE", 0x2b),
            ("all ones", 0xff),
        ] {
            let frame = Packet::new(flow).traffic_class(traffic_class).tcp("A");
            let version = if flow.vip.is_ipv4() { 4 } else { 6 };
            let what = format!("traffic class {name}, IPv{version} in IPv{tunnel}");
            rows.push(Row::sent(what, fixture(tunnel), (&flow, frame), OWNER));
        }
    }
    rows
}

/// The inner hop limit goes down by one, the outer one is 64.
fn hop_limits() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        for hop_limit in [2, 3, 65, 128, 255] {
            let frame = Packet::new(flow).hop_limit(hop_limit).tcp("A");
            let version = if flow.vip.is_ipv4() { 4 } else { 6 };
            let what = format!("IPv{version} hop limit {hop_limit}");
            rows.push(Row::sent(what, fixture(4), (&flow, frame), OWNER));
        }
    }
    // The header checksum passes through every carry while the identification counts.
    for identification in [0x0000_u16, 0x00ff, 0x7fff, 0xa5a5, 0xfeff, 0xffff] {
        let mut frame = Packet::new(v4()).tcp("A");
        let old = u16::from_be_bytes([frame[18], frame[19]]);
        frame[18..20].copy_from_slice(&identification.to_be_bytes());
        let sum = u16::from_be_bytes([frame[24], frame[25]]);
        let sum = with_word_changed(sum, old, identification);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        let what = format!("IPv4 identification {identification:#06x}");
        rows.push(Row::sent(what, fixture(4), (&v4(), frame), OWNER));
    }
    rows
}

/// The header checksum after one word changed, by subtraction: any sum is its own class modulo 65535.
fn with_word_changed(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + 65_535 - u32::from(old) + u32::from(new);
    !match (sum % 65_535) as u16 {
        0 => 0xffff,
        sum => sum,
    }
}

/// Options, payloads and padding.
fn lengths() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for length in [4, 20, 40] {
        let frame = Packet::new(v4()).options(length).tcp("A");
        let what = format!("IPv4 with {length} bytes of options");
        rows.push(Row::sent(what, fixture(4), (&v4(), frame.clone()), OWNER));
        let what = format!("IPv4 with {length} bytes of options in IPv6");
        rows.push(Row::sent(what, fixture(6), (&v4(), frame), OWNER));
    }
    for flow in [v4(), v6()] {
        let version = if flow.vip.is_ipv4() { 4 } else { 6 };
        for length in [0, 1, 1_380] {
            let frame = Packet::new(flow).payload(&vec![0x5a; length]).tcp("PA");
            let what = format!("IPv{version} TCP with {length} bytes of payload");
            rows.push(Row::sent(what, fixture(4), (&flow, frame), OWNER));
        }
        let mut frame = Packet::new(flow).payload(b"").tcp("A");
        frame.extend([0xee; 6]);
        let what = format!("IPv{version} with six bytes of padding after it");
        rows.push(Row::sent(what, fixture(4), (&flow, frame), OWNER));
    }
    for flow in [v4_udp(), v6_udp()] {
        let version = if flow.vip.is_ipv4() { 4 } else { 6 };
        let frame = Packet::new(flow).payload(b"").udp();
        rows.push(Row::sent(
            format!("IPv{version} UDP without payload"),
            fixture(4),
            (&flow, frame),
            OWNER,
        ));
    }
    rows
}
