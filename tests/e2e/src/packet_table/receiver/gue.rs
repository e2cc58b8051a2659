//! Tunnels in UDP: GUE, variant 0 (draft-ietf-intarea-gue), to port 6080.

use super::{inside, opened, passed, with};
use crate::packet_table::flows::{v4, v4_udp, v6, v6_udp};
use crate::packet_table::row::Row;
use lb_tests::packets::frames::{ETHERNET, Flow, Packet, classed, extended, hex};

/// GUE around IPv4 and IPv6.
const PLAIN: [[u8; 4]; 2] = [[0, 4, 0, 0], [0, 41, 0, 0]];
/// Where the UDP header of a tunnel stands, by the outer version.
const UDP: [(u8, usize); 2] = [(4, 34), (6, 54)];

pub(super) fn rows() -> Vec<Row<()>> {
    [
        by_hand(),
        forms(),
        lengths(),
        corrupt(),
        not_covered(),
        not_ours(),
        ends(),
        as_others(),
        cut(),
    ]
    .concat()
}

/// Its UDP checksum is right.
fn summed(version: u8, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let own = match version {
        4 => Flow::new("10.0.0.1:49153", "10.1.0.1:6080"),
        _ => Flow::new("[fd00::1]:49153", "[fd00:1::1]:6080"),
    };
    Packet::new(own).payload(&[header, inner].concat()).udp()
}

/// `frame` in GUE, as balancers send it: without a UDP checksum.
fn gue(version: u8, frame: &[u8]) -> Vec<u8> {
    let header = PLAIN[usize::from(frame[ETHERNET] >> 4 == 6)];
    unsummed(&summed(version, &header, &frame[ETHERNET..]))
}

/// The frame with a UDP checksum of zero.
fn unsummed(frame: &[u8]) -> Vec<u8> {
    with(frame, if frame[ETHERNET] >> 4 == 4 { 40 } else { 60 }, &[0, 0])
}

/// As [`gue`], with a UDP checksum that is right.
fn right(version: u8, frame: &[u8]) -> Vec<u8> {
    let header = PLAIN[usize::from(frame[ETHERNET] >> 4 == 6)];
    summed(version, &header, &frame[ETHERNET..])
}

fn dropped(what: String, frame: Vec<u8>, verdict: &'static str) -> Row<()> {
    Row::dropped(what, (), frame, verdict)
}

/// Written out: no library had a hand in it. 40 bytes of IPv4 in GUE over IPv4 and over IPv6.
fn by_hand() -> Vec<Row<()>> {
    let inner = "4500 0028 0001 4000 3f 06 4f91 c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 90de 0000";
    let outer = [
        "4500 0048 0000 4000 40 11 26a3 0a000001 0a010001",
        "60012345 0034 11 40 fd000000000000000000000000000001 fd000001000000000000000000000001",
    ];
    let shim = "c001 17c0 0034 0000 0004 0000";
    let mut rows = Vec::new();
    for (outer, ether_type) in outer.into_iter().zip(["0800", "86dd"]) {
        let frame = hex(&format!("020000000001 02000000000c {ether_type} {outer} {shim} {inner}"));
        let after = hex(&format!("020000000001 02000000000c 0800 {inner}"));
        let what = format!("by hand: GUE behind EtherType {ether_type}");
        rows.push(Row::changed(what, (), (frame, after), "decapsulated"));
    }
    rows
}

/// Outer and inner versions, protocols, and the two kinds of outer checksum.
fn forms() -> Vec<Row<()>> {
    let echo = Packet::new(v4()).payload(&hex("0800 f7fe 0000 0001")).other(1);
    let error = Packet::new(v6()).error(1, 4, [0; 4], &Packet::new(v6().answered()).tcp("A")[14..]);
    let behind = extended(&Packet::new(v6()).tcp("A"), &[(60, "00 00 01 04 00 00 00 00")]);
    let mut rows = Vec::new();
    for (name, frame) in [
        ("TCP over IPv4", Packet::new(v4()).tcp("A")),
        ("TCP over IPv6", Packet::new(v6()).tcp("S")),
        ("TCP behind IP options", Packet::new(v4()).options(40).tcp("A")),
        ("TCP behind an extension header", behind),
        ("UDP over IPv4", Packet::new(v4_udp()).udp()),
        ("UDP over IPv6", Packet::new(v6_udp()).udp()),
        ("an echo request", echo),
        ("an ICMPv6 error", error),
    ] {
        for (outer, udp) in UDP {
            let what = format!("{name} in GUE over IPv{outer}");
            rows.push(opened(&*what, gue(outer, &frame), &frame));
            let (what, frame_in) = (format!("{what}, summed"), right(outer, &frame));
            rows.push(opened(&*what, frame_in.clone(), &frame));
            let wrong = with(&frame_in, udp + 6, &[!frame_in[udp + 6]]);
            rows.push(dropped(format!("{what} wrongly"), wrong, "outer_checksum"));
        }
    }
    rows
}

/// A sum is made of parts of several sizes, and one byte may be left over.
fn lengths() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for length in (0..=68).chain([475, 476, 490, 491, 492, 493, 1_003, 1_004, 1_400, 1_433]) {
        let payload: Vec<u8> = (0..length).map(|byte| (byte * 7 + 3) as u8).collect();
        let outer = if length % 2 == 0 { 4 } else { 6 };
        let frame = Packet::new(v4()).payload(&payload).tcp("A");
        let what = format!("{length} bytes of TCP in GUE over IPv{outer}");
        rows.push(opened(&*what, right(outer, &frame), &frame));
        let last = frame.len() - 1;
        let wrong = with(&frame, last, &[frame[last] ^ 0x40]);
        rows.push(dropped(
            format!("{what}, the last byte wrong"),
            gue(outer, &wrong),
            "inner_checksum",
        ));
    }
    rows
}

/// What is wrong inside is found, though the outer checksum is right.
fn corrupt() -> Vec<Row<()>> {
    let echo = Packet::new(v4()).payload(&hex("0800 f7ff 0000 0001")).other(1);
    let error = Packet::new(v6()).error(1, 4, [0; 4], &Packet::new(v6().answered()).tcp("A")[14..]);
    let error = with(&error, 56, &[!error[56]]);
    let flip = |frame: &[u8], at: usize| with(frame, at, &[frame[at] ^ 1]);
    let behind = extended(&Packet::new(v6()).tcp("A"), &[(60, "00 00 01 04 00 00 00 00")]);
    let mut rows = Vec::new();
    for (name, frame) in [
        ("the payload of TCP over IPv4", flip(&Packet::new(v4()).tcp("A"), 14 + 42)),
        ("a port of TCP over IPv4", flip(&Packet::new(v4()).tcp("A"), 14 + 21)),
        ("the payload of TCP over IPv6", flip(&Packet::new(v6()).tcp("A"), 14 + 62)),
        ("an address of TCP over IPv6", flip(&Packet::new(v6()).tcp("A"), 14 + 20)),
        ("TCP behind an extension header", flip(&behind, 14 + 70)),
        ("the payload of UDP over IPv4", flip(&Packet::new(v4_udp()).udp(), 14 + 30)),
        ("the checksum of UDP over IPv6", flip(&Packet::new(v6_udp()).udp(), 14 + 47)),
        ("an echo request", echo),
        ("an ICMPv6 error", error),
        ("the length of UDP, below its header", with(&Packet::new(v4_udp()).udp(), 38, &[0, 7])),
        ("the length of UDP, beyond the packet", with(&Packet::new(v4_udp()).udp(), 38, &[0, 14])),
    ] {
        for (outer, _) in UDP {
            let what = format!("{name} wrong in GUE over IPv{outer}");
            rows.push(dropped(what.clone(), gue(outer, &frame), "inner_checksum"));
            rows.push(dropped(format!("{what}, summed"), right(outer, &frame), "inner_checksum"));
        }
    }
    rows
}

/// What has no checksum here goes through.
fn not_covered() -> Vec<Row<()>> {
    let v4_zero = with(&Packet::new(v4_udp()).udp(), 40, &[0, 0]);
    let v6_zero = with(&Packet::new(v6_udp()).udp(), 60, &[0, 0]);
    let mut fragment = Packet::new(v4()).payload(&[0x44; 32]).tcp("A");
    fragment[20..22].copy_from_slice(&0x2000_u16.to_be_bytes());
    fragment[50] ^= 1;
    let fragment = classed(&fragment, 0);
    let fragment6 = Packet::new(v6()).payload(&[0x44; 32]).tcp("A");
    let fragment6 = extended(&fragment6, &[(44, "00 00 0001 0000002d")]);
    let mut rows = Vec::new();
    for (outer, _) in UDP {
        for (name, frame) in [
            ("UDP without a checksum", &v4_zero),
            ("for the host to refuse: UDP over IPv6 without a checksum", &v6_zero),
            ("for the host to put together: a fragment", &fragment),
            ("for the host to put together: a fragment of IPv6", &fragment6),
        ] {
            rows.push(opened(format!("{name} in GUE over IPv{outer}"), gue(outer, frame), frame));
        }
    }
    rows
}

/// Balancers send no such thing; who listens on the port may.
fn not_ours() -> Vec<Row<()>> {
    let frame = Packet::new(v4()).tcp("A");
    let inner = &frame[ETHERNET..];
    let mut rows = Vec::new();
    for (name, header) in [
        ("variant 1, an IP header", &[][..]),
        ("variant 2", &[0x80, 4, 0, 0]),
        ("a control message", &[0x20, 4, 0, 0]),
        ("an optional field", &[0x01, 4, 0x80, 0, 0, 0, 0, 1]),
        ("room for one without a flag", &[0x01, 4, 0, 0, 0, 0, 0, 0]),
        ("a flag", &[0, 4, 0x80, 0]),
        ("the last flag", &[0, 4, 0, 1]),
        ("TCP itself", &[0, 6, 0, 0]),
        ("no next header", &[0, 59, 0, 0]),
    ] {
        for (outer, _) in UDP {
            let what = format!("GUE over IPv{outer} with {name}");
            let frame = unsummed(&summed(outer, header, inner));
            rows.push(passed(&what, frame, "gue_not_ours"));
        }
        let stranger = Flow::new("10.0.0.9:49153", "10.1.0.1:6080");
        let frame = Packet::new(stranger).payload(&[header, inner].concat()).udp();
        let what = format!("a stranger's GUE with {name}");
        rows.push(passed(&what, frame, "not_tunnel"));
    }
    rows
}

/// The lengths and ports of the UDP header.
fn ends() -> Vec<Row<()>> {
    let frame = Packet::new(v4()).tcp("A");
    let mut rows = Vec::new();
    for (outer, udp) in UDP {
        let tunnel = gue(outer, &frame);
        let length = |bytes: u16| with(&tunnel, udp + 4, &bytes.to_be_bytes());
        // 45 bytes inside and 12 of UDP and GUE.
        for (what, frame) in [
            ("to port 6081", with(&tunnel, udp + 2, &6_081_u16.to_be_bytes())),
            ("from port 6080 to another", with(&tunnel, udp, &[0x17, 0xc0, 0, 53])),
            ("with a length of nothing", length(0)),
            ("with a length that ends in GUE's header", length(11)),
            ("with a length beyond the packet", length(58)),
        ] {
            rows.push(passed(&format!("GUE over IPv{outer} {what}"), frame, "not_tunnel"));
        }
        let what = format!("GUE over IPv{outer} with a length that ends in the inner packet");
        rows.push(dropped(what, length(56), "inner_malformed"));
        let what = format!("GUE over IPv{outer} and more in the outer packet than in UDP");
        let mut longer = [&tunnel[..], &[0xee; 3]].concat();
        let at = if outer == 4 { 16 } else { 18 };
        let ip_length = u16::from_be_bytes([longer[at], longer[at + 1]]) + 3;
        longer[at..at + 2].copy_from_slice(&ip_length.to_be_bytes());
        let longer = classed(&longer, 0);
        let after = [&inside(&frame)[..], &[0xee; 3]].concat();
        rows.push(Row::changed(what, (), (longer, after), "decapsulated"));
    }
    rows
}

/// Who may send, to whom, and what a mark means: as with other tunnels.
fn as_others() -> Vec<Row<()>> {
    let frame = Packet::new(v4()).tcp("A");
    let tunnel = |from: &str, to: &str, frame: &[u8]| {
        let payload = [&PLAIN[0][..], &frame[ETHERNET..]].concat();
        unsummed(&Packet::new(Flow::new(from, to)).payload(&payload).udp())
    };
    let elsewhere = Packet::new(Flow::new("192.0.2.9:4711", "198.51.100.2:80")).tcp("S");
    let again = Packet::new(v4()).payload(&frame[ETHERNET..]).other(4);
    let own = Packet::new(Flow::new("10.1.0.1:7", "198.51.100.1:7")).udp();
    let expired = Packet::new(v4()).hop_limit(0).tcp("A");
    let (balancer, end) = ("10.0.0.1:49153", "10.1.0.1:6080");
    let mut rows = vec![
        passed("GUE of a stranger", tunnel("10.0.0.9:1", end, &frame), "source_not_allowed"),
        passed("GUE to another VIP", tunnel(balancer, end, &elsewhere), "vip_not_allowed"),
        passed(
            "GUE of a stranger to another VIP",
            tunnel("10.0.0.9:1", end, &elsewhere),
            "not_tunnel",
        ),
        passed(
            "GUE to a VIP, which may have a service there",
            tunnel(balancer, "198.51.100.1:6080", &frame),
            "tunnel_to_vip",
        ),
        dropped("a tunnel in GUE".into(), tunnel(balancer, end, &again), "inner_tunnel"),
        dropped("the end of GUE in GUE".into(), tunnel(balancer, end, &own), "inner_from_here"),
        dropped(
            "an inner TTL of 0 in GUE".into(),
            tunnel(balancer, end, &expired),
            "inner_expired",
        ),
    ];
    // What is wrong with another host's GUE is for that host to find.
    let corrupt = with(&frame, frame.len() - 1, &[!frame[frame.len() - 1]]);
    for (name, frame) in [("GUE", &frame), ("corrupt GUE", &corrupt)] {
        for (to, version) in [("10.1.0.2:6080", 4), ("[fd00:1::2]:6080", 6)] {
            let from = if version == 4 { balancer } else { "[fd00::1]:49153" };
            let tunnel = tunnel(from, to, frame);
            rows.push(passed(&format!("{name} to {to}"), tunnel.clone(), "tunnel_not_local"));
            let udp = if version == 4 { 34 } else { 54 };
            let wrong = with(&tunnel, udp + 6, &[0xde, 0xad]);
            let what = format!("{name} to {to} with a wrong checksum");
            rows.push(passed(&what, wrong, "tunnel_not_local"));
        }
    }
    // GUE for a VIP inside of a tunnel is a datagram for the VIP: what is taken off is one header.
    let datagram = tunnel("192.0.2.9:1", "198.51.100.1:6080", &frame);
    rows.push(opened("GUE in IPv4", super::tunnel(4).around(&datagram), &datagram));
    rows.push(opened("GUE in GUE", gue(4, &datagram), &datagram));
    for (outer, _) in UDP {
        let packet = |ecn| Packet::new(v4()).traffic_class(ecn).tcp("A");
        let marked = classed(&gue(outer, &packet(0b10)), 0b11);
        rows.push(opened(
            format!("a mark of congestion on GUE over IPv{outer}"),
            marked,
            &packet(0b11),
        ));
        let marked = classed(&gue(outer, &packet(0b00)), 0b11);
        let what = format!("a mark that nobody knows on GUE over IPv{outer}");
        rows.push(dropped(what, marked, "not_ecn_capable"));
    }
    rows
}

/// A frame that ends early contradicts its outer length at every byte.
fn cut() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for (outer, udp) in UDP {
        let frame = gue(outer, &Packet::new(v4()).tcp("A"));
        for length in udp - 1..frame.len() {
            let what = format!("GUE over IPv{outer} cut to {length} bytes");
            rows.push(passed(&what, frame[..length].to_vec(), "not_tunnel"));
        }
    }
    // Whole datagrams with too little in them.
    for length in [0, 1, 19] {
        let what = format!("{length} bytes of IPv4 in GUE");
        let frame = unsummed(&summed(4, &PLAIN[0], &vec![0x45; length]));
        rows.push(passed(&what, frame, "not_tunnel"));
    }
    rows
}
