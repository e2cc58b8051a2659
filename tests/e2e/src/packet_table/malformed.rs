//! Frames that contradict themselves.

use crate::packet_table::row::Row;
use lb_tests::packets::{fixture::MapFixture, frames::Packet};

use super::flows::{fixture, v4, v4_udp, v6, v6_udp};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [cut(), ipv4_headers(), ipv6_headers(), transport()].concat()
}

fn dropped(what: impl Into<String>, frame: Vec<u8>) -> Row<MapFixture> {
    Row::dropped(what, fixture(4), frame, "malformed")
}

/// Every length from a bare Ethernet header to one byte less than the whole. Shorter frames the kernel
/// does not let in; the unit tests of the pure decision have them.
fn cut() -> Vec<Row<MapFixture>> {
    let frames = [
        ("IPv4 TCP", Packet::new(v4()).tcp("A")),
        ("IPv4 TCP with options", Packet::new(v4()).options(12).tcp("S")),
        ("IPv4 UDP", Packet::new(v4_udp()).udp()),
        ("IPv6 TCP", Packet::new(v6()).tcp("A")),
        ("IPv6 UDP", Packet::new(v6_udp()).udp()),
    ];
    let mut rows = Vec::new();
    for (name, frame) in frames {
        for length in 14..frame.len() {
            rows.push(dropped(format!("{name} cut to {length} bytes"), frame[..length].to_vec()));
        }
    }
    rows
}

/// The frame with bytes written over.
fn with(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

fn ipv4_headers() -> Vec<Row<MapFixture>> {
    // 20 + 20 + 5 bytes of IP.
    let frame = Packet::new(v4()).tcp("A");
    let mut rows = Vec::new();
    for ihl in 0..5 {
        rows.push(dropped(format!("IHL {ihl}"), with(&frame, 14, &[0x40 | ihl])));
    }
    for version in [0, 3, 5, 6, 15] {
        rows.push(dropped(
            format!("IPv4 of version {version}"),
            with(&frame, 14, &[version << 4 | 5]),
        ));
    }
    for (what, length) in [
        ("total length one beyond the frame", 46_u16),
        ("total length 65535", 65_535),
        ("total length 0", 0),
        ("total length one below the header", 19),
        ("total length of the header alone", 20),
        ("total length one below the TCP header", 39),
    ] {
        rows.push(dropped(what, with(&frame, 16, &length.to_be_bytes())));
    }
    let options = Packet::new(v4()).options(40).tcp("A");
    let what = "total length below a header with options";
    rows.push(dropped(what, with(&options, 16, &59_u16.to_be_bytes())));
    rows.push(dropped("IHL 15 over a header without options", with(&frame, 14, &[0x4f])));
    rows
}

fn ipv6_headers() -> Vec<Row<MapFixture>> {
    // 40 + 20 + 5 bytes of IP.
    let frame = Packet::new(v6()).tcp("A");
    let mut rows = Vec::new();
    for version in [0, 4, 5, 7, 15] {
        rows.push(dropped(format!("IPv6 of version {version}"), with(&frame, 14, &[version << 4])));
    }
    for (what, length) in [
        ("payload length one beyond the frame", 26_u16),
        ("payload length 65535", 65_535),
        ("payload length 0", 0),
        ("payload length one below the TCP header", 19),
    ] {
        rows.push(dropped(what, with(&frame, 18, &length.to_be_bytes())));
    }
    rows
}

fn transport() -> Vec<Row<MapFixture>> {
    let v4 = Packet::new(v4_udp()).udp();
    let v6 = Packet::new(v6_udp()).udp();
    vec![
        dropped("IPv4 total length one below the UDP header", with(&v4, 16, &27_u16.to_be_bytes())),
        dropped(
            "IPv6 payload length one below the UDP header",
            with(&v6, 18, &7_u16.to_be_bytes()),
        ),
        dropped("IPv4 UDP that says it is TCP", with(&v4, 23, &[6])),
        dropped("IPv6 UDP that says it is TCP", with(&v6, 20, &[6])),
    ]
}
