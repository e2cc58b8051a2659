//! IPv6 extension headers (RFC 8200, section 4): walked over, up to four of them.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::MapFixture,
    frames::{Flow, Packet, extended},
};

use super::flows::{fixture, v6, v6_udp};

const OWNER: (usize, u16) = (0, 0);

const HOP_BY_HOP: (u8, &str) = (0, "00 00 0502 0000 0100");
const DESTINATION: (u8, &str) = (60, "00 01 01 0c 000000000000000000000000");
const ROUTING: (u8, &str) = (43, "00 02 04 00 00000000 fd000000000000000000000000000009");
/// In words of four bytes, less two.
const AUTHENTICATION: (u8, &str) = (51, "00 04 0000 00000001 00000001 000102030405060708090a0b");
/// Offset 0, no more to come: a whole packet (RFC 6946).
const ATOMIC: (u8, &str) = (44, "00 00 0000 0000002a");
const FIRST_FRAGMENT: (u8, &str) = (44, "00 00 0001 0000002a");
const LATER_FRAGMENT: (u8, &str) = (44, "00 00 0008 0000002a");

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [forwarded(), fragments(), passed(), cut_short()].concat()
}

fn forwarded() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (what, headers) in [
        ("hop-by-hop options", &[HOP_BY_HOP][..]),
        ("destination options", &[DESTINATION]),
        ("a routing header", &[ROUTING]),
        ("an authentication header", &[AUTHENTICATION]),
        ("an atomic fragment header", &[ATOMIC]),
        ("four extension headers", &[HOP_BY_HOP, DESTINATION, ROUTING, AUTHENTICATION]),
        ("the same one four times", &[DESTINATION; 4]),
    ] {
        for (tunnel, flow, protocol, name, frame) in [
            (4, v6(), 6, "SYN", Packet::new(v6()).tcp("S")),
            (6, v6(), 6, "ACK", Packet::new(v6()).tcp("A")),
            (6, v6_udp(), 17, "UDP", Packet::new(v6_udp()).udp()),
        ] {
            let flow = (&flow, protocol, u64::from(name == "SYN"));
            let frame = extended(&frame, headers);
            let what = format!("{name} behind {what}, in IPv{tunnel}");
            rows.push(Row::sent_as(what, fixture(tunnel), flow, frame, OWNER));
        }
    }
    rows
}

fn fragments() -> Vec<Row<MapFixture>> {
    let datagram = Packet::new(v6_udp()).udp();
    let elsewhere = Packet::new(Flow::new("[2001:db8:c::9]:4711", "[2001:db8:80::1]:54")).udp();
    let first = |frame: &[u8]| extended(frame, &[FIRST_FRAGMENT]);
    let later = |headers: &[_]| extended(&datagram, headers);
    vec![
        Row::dropped("IPv6 first fragment", fixture(4), first(&datagram), "fragment"),
        Row::passed("IPv6 first fragment for nobody", fixture(4), first(&elsewhere), "not_ours"),
        Row::passed("IPv6 later fragment", fixture(4), later(&[LATER_FRAGMENT]), "later_fragment"),
        Row::passed(
            "IPv6 later fragment behind options",
            fixture(4),
            later(&[HOP_BY_HOP, LATER_FRAGMENT]),
            "later_fragment",
        ),
    ]
}

fn passed() -> Vec<Row<MapFixture>> {
    let frame = Packet::new(v6()).tcp("S");
    let row = |what: &str, headers: &[_]| {
        Row::passed(what, fixture(4), extended(&frame, headers), "other_protocol")
    };
    let encrypted = Packet::new(v6()).payload(&[0; 24]).other(50);
    let mobile = Packet::new(v6()).payload(&[59, 0, 5, 0, 0, 0, 0, 0]).other(135);
    let nothing = extended(&Packet::new(v6()).payload(&[]).other(59), &[DESTINATION]);
    vec![
        row("five extension headers", &[DESTINATION; 5]),
        Row::passed("ESP", fixture(4), encrypted, "other_protocol"),
        Row::passed("a mobility header", fixture(4), mobile, "other_protocol"),
        Row::passed("nothing behind options", fixture(4), nothing, "other_protocol"),
    ]
}

/// Where the packet ends before its headers do.
fn cut_short() -> Vec<Row<MapFixture>> {
    let frame = extended(&Packet::new(v6()).payload(b"").tcp("S"), &[DESTINATION]);
    // What IP says of its length, and what is there of it.
    let shortened = |by: usize| {
        let mut frame = frame[..frame.len() - by].to_vec();
        let length = frame.len() - 54;
        frame[18..20].copy_from_slice(&(length as u16).to_be_bytes());
        frame
    };
    // An end of the packet within the header, with bytes of padding where it should go on.
    let padded = |by: usize| {
        let mut padded = frame.clone();
        let length = frame.len() - 54 - by;
        padded[18..20].copy_from_slice(&(length as u16).to_be_bytes());
        padded
    };
    // A fragment whose packet ends within the fragment header; bytes that look like the rest of it are padding.
    let fragment = |payload: u16| {
        let mut frame = extended(&Packet::new(v6_udp()).udp(), &[FIRST_FRAGMENT]);
        frame[18..20].copy_from_slice(&payload.to_be_bytes());
        frame
    };
    let mut short = fragment(7);
    short.truncate(54 + 7);
    // 2,048 bytes of options.
    let mut long = frame.clone();
    long[55] = 255;
    let passed = |what: &str, frame| Row::passed(what, fixture(4), frame, "other_protocol");
    let dropped = |what: &str, frame| Row::dropped(what, fixture(4), frame, "malformed");
    vec![
        dropped("a TCP header behind options, a byte short", shortened(1)),
        dropped("a TCP header behind options, a byte short of it padding", padded(1)),
        dropped("no TCP header behind options", shortened(20)),
        passed("options of 16 bytes, 7 of them there", shortened(29)),
        dropped("options of 16 bytes, 8 of them there, the rest padding", padded(28)),
        dropped("options that end beyond the packet", long),
        dropped("a fragment header, none of it but padding", fragment(0)),
        dropped("a fragment header, 7 bytes of it and padding", fragment(7)),
        passed("a fragment header of 7 bytes", short),
        dropped("a UDP header in a fragment, a byte of it padding", fragment(15)),
        // Dropped for what it is, not for what is missing of it.
        Row::dropped("a UDP header in a fragment, no more", fixture(4), fragment(16), "fragment"),
    ]
}
