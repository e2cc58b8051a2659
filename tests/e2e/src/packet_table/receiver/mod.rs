//! What reaches a backend: tunnels of balancers lose their outer header, everything else stays.

mod ecn;
mod gue;
mod loops;

use std::net::IpAddr;

use crate::packet_table::row::Row;
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{
    frames::{ETHERNET, Flow, HOST, Packet, SENDER, Tunnel, classed, extended, hex, tagged},
    receiver::{ENDPOINTS, SOURCES, VIPS, is_for_tc},
};

use super::flows::{v4, v4_udp, v6, v6_udp};

pub(crate) fn rows() -> Vec<Row<()>> {
    let own = [forms(), admission(), other_hosts(), untouched(), outer_headers()].concat();
    let own = [own, damaged()].concat();
    [own, inner_headers(), cut(), ecn::rows(), loops::rows(), gue::rows()].concat()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A tunnel from a balancer (the first address of its prefix plus one) to this host.
fn tunnel(version: u8) -> Tunnel {
    let (source, destination) = match version {
        4 => (ip("10.0.0.1"), ip("10.1.0.1")),
        _ => (ip("fd00::1"), ip("fd00:1::1")),
    };
    Tunnel { macs: (HOST, SENDER), source, destination, flow_label: 0x1_2345 }
}

/// A frame as it came through a tunnel: its Ethernet header is the tunnel's but for the EtherType.
fn inside(frame: &[u8]) -> Vec<u8> {
    [&HOST[..], &SENDER, &frame[12..]].concat()
}

fn passed(what: &str, frame: Vec<u8>, verdict: &'static str) -> Row<()> {
    Row::passed(what, (), frame, verdict)
}

/// Loses its outer header and becomes `inner`.
fn opened(what: impl Into<String>, frame: Vec<u8>, inner: &[u8]) -> Row<()> {
    Row::changed(what, (), (frame, inside(inner)), "decapsulated")
}

fn forms() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for outer in [4, 6] {
        for (flow, inner) in [(4, v4()), (6, v6())] {
            for flags in ["S", "A", "R"] {
                let frame = Packet::new(inner).tcp(flags);
                let what = format!("TCP {flags} over IPv{flow} out of IPv{outer}");
                rows.push(opened(what, tunnel(outer).around(&frame), &frame));
            }
        }
        for (flow, inner) in [(4, v4_udp()), (6, v6_udp())] {
            let frame = Packet::new(inner).payload(&[0x33; 700]).udp();
            let what = format!("UDP over IPv{flow} out of IPv{outer}");
            rows.push(opened(what, tunnel(outer).around(&frame), &frame));
        }
        let frame = Packet::new(v4()).options(40).tcp("A");
        let what = format!("inner options out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&frame), &frame));
        let mut frame = Packet::new(v4()).payload(&[]).tcp("A");
        frame.extend([0xee; 6]);
        let what = format!("padding after the packet, out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&frame), &frame));
        let frame = Packet::new(v4()).traffic_class(0xb8).hop_limit(1).tcp("A");
        let what = format!("inner hop limit 1 out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&frame), &frame));
        let echo = Packet::new(v4()).payload(&hex("0800 f7fe 0000 0001")).other(1);
        let what = format!("inner ICMP out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&echo), &echo));
    }
    // The balancer's outer packet carries the inner fragment as any other: the host puts it together.
    for (what, word) in [("first", 0x2000_u16), ("later", 0x2001), ("last", 0x0001)] {
        let mut fragment = Packet::new(v4()).payload(&[0x44; 32]).tcp("A");
        fragment[20..22].copy_from_slice(&word.to_be_bytes());
        let fragment = classed(&fragment, 0);
        let what = format!("an inner {what} fragment");
        rows.push(opened(what, tunnel(4).around(&fragment), &fragment));
    }
    let offsets = [("first", "00 00 0001 0000002a"), ("last", "00 00 0008 0000002b")];
    for (what, header) in offsets {
        let fragment = Packet::new(v6()).payload(&[0x44; 32]).tcp("A");
        let fragment = extended(&fragment, &[(44, header)]);
        let what = format!("an inner {what} fragment of IPv6");
        rows.push(opened(what, tunnel(6).around(&fragment), &fragment));
    }
    rows
}

fn admission() -> Vec<Row<()>> {
    let to_vip = |outer| Packet::new(if outer == 4 { v4() } else { v6() }).tcp("S");
    let elsewhere = Packet::new(Flow::new("192.0.2.9:4711", "198.51.100.2:80")).tcp("S");
    let elsewhere6 = Packet::new(Flow::new("[2001:db8:c::9]:1", "[2001:db8:80::2]:80")).tcp("S");
    let mapped = Packet::new(Flow::new("[2001:db8:c::9]:1", "[::ffff:198.51.100.1]:80")).tcp("S");
    let from = |source: &str| {
        let source = ip(source);
        Tunnel { source, ..tunnel(if source.is_ipv4() { 4 } else { 6 }) }
    };
    assert_eq!(SOURCES[0], (ip("10.0.0.0"), 29));
    assert_eq!(VIPS[0], ip("198.51.100.1"));
    let mut rows = Vec::new();
    for (what, source) in [
        ("the last address of an allowed prefix", "10.0.0.7"),
        ("the first address of an allowed prefix", "10.0.0.0"),
        ("an allowed single address", "192.0.2.1"),
        ("an allowed IPv6 prefix", "fd00::ffff:ffff:ffff:ffff"),
    ] {
        for inner in [4, 6] {
            let frame = to_vip(inner);
            rows.push(opened(format!("{what}, IPv{inner}"), from(source).around(&frame), &frame));
        }
    }
    for (what, source) in [
        ("one beyond an allowed prefix", "10.0.0.8"),
        ("one below an allowed prefix", "9.255.255.255"),
        ("beside an allowed single address", "192.0.2.2"),
        ("one beyond an allowed IPv6 prefix", "fd00:0:0:1::"),
        ("an IPv4 source that is v4-mapped", "::ffff:10.0.0.1"),
    ] {
        // A v4-mapped source is the same address to the trie; see the row below.
        if source.starts_with("::ffff") {
            continue;
        }
        for inner in [4, 6] {
            let frame = from(source).around(&to_vip(inner));
            let what = format!("{what}, IPv{inner}");
            rows.push(passed(&what, frame, "source_not_allowed"));
        }
    }
    for outer in [4, 6] {
        for (what, inner) in [
            ("another VIP", &elsewhere),
            ("another IPv6 VIP", &elsewhere6),
            ("an IPv4 VIP as a v4-mapped IPv6 address", &mapped),
        ] {
            let what = format!("{what} out of IPv{outer}");
            rows.push(passed(&what, tunnel(outer).around(inner), "vip_not_allowed"));
        }
    }
    let stranger = from("203.0.113.5").around(&elsewhere);
    rows.push(passed("another's tunnel to another address", stranger, "not_tunnel"));
    rows
}

/// What another host is to take apart, which may be reached through this one and serve the same VIPs.
fn other_hosts() -> Vec<Row<()>> {
    assert_eq!(ENDPOINTS, [ip("10.1.0.1"), ip("fd00:1::1")]);
    let whole = Packet::new(v4()).tcp("A");
    let tunnel_again = Packet::new(v4()).payload(&whole[ETHERNET..]).other(4);
    let elsewhere = Packet::new(Flow::new("192.0.2.9:4711", "198.51.100.2:80")).tcp("S");
    let mut rows = Vec::new();
    for destination in ["10.1.0.2", "10.1.0.0", "10.0.0.1", "fd00:1::2", "::ffff:10.1.0.1"].map(ip)
    {
        let tunnel = Tunnel { destination, ..tunnel(if destination.is_ipv4() { 4 } else { 6 }) };
        for (what, frame) in [
            ("TCP over IPv4", whole.clone()),
            ("TCP over IPv6", Packet::new(v6()).tcp("S")),
            ("UDP over IPv4", Packet::new(v4_udp()).udp()),
            ("UDP over IPv6", Packet::new(v6_udp()).udp()),
            // What would be dropped here is not ours to judge.
            ("a tunnel", tunnel_again.clone()),
            ("an inner TTL of 0", Packet::new(v4()).hop_limit(0).tcp("A")),
            ("a VIP to itself", Packet::new(Flow::new("198.51.100.1:7", "198.51.100.1:7")).udp()),
        ] {
            let what = format!("{what} in a tunnel to {destination}");
            rows.push(passed(&what, tunnel.around(&frame), "tunnel_not_local"));
        }
        let frame = tunnel.around(&whole);
        let length = if destination.is_ipv4() { 36 } else { 56 };
        for (what, frame) in [
            ("a mark that nobody knows", classed(&frame, 0b11)),
            ("an inner length that is wrong", with(&frame, length, &[0xff, 0xff])),
        ] {
            let what = format!("{what} in a tunnel to {destination}");
            rows.push(passed(&what, frame, "tunnel_not_local"));
        }
        let what = format!("another VIP in a tunnel to {destination}");
        rows.push(passed(&what, tunnel.around(&elsewhere), "vip_not_allowed"));
        let source = if destination.is_ipv4() { ip("10.0.0.9") } else { ip("fd00:0:0:1::") };
        let what = format!("a stranger's tunnel to {destination}");
        let frame = Tunnel { source, ..tunnel }.around(&whole);
        rows.push(passed(&what, frame, "source_not_allowed"));
    }
    rows
}

/// Everything that is no tunnel.
fn untouched() -> Vec<Row<()>> {
    let plain = Packet::new(v4());
    let arp = hex("ffffffffffff 02000000000c 0806
                   0001 0800 06 04 0001 02000000000c c0000209 000000000000 c6336401");
    let too_tagged = {
        let frame = tunnel(4).around(&plain.tcp("S"));
        tagged(&frame, &[[0x88a8, 7], [0x8100, 42], [0x8100, 43]])
    };
    let own = Flow::new("10.0.0.1:1", "10.1.0.1:2");
    let inner = &plain.tcp("S")[ETHERNET..];
    let gre = [&hex("0000 0800"), inner].concat();
    let rows = [
        ("plain TCP to the VIP", plain.tcp("S")),
        ("plain UDP to the VIP", Packet::new(v4_udp()).udp()),
        ("plain IPv6 to the VIP", Packet::new(v6()).tcp("A")),
        ("GRE from a balancer", Packet::new(own).payload(&gre).other(47)),
        ("ESP from a balancer", Packet::new(own).payload(&[0; 60]).other(50)),
        ("UDP from a balancer", Packet::new(own).payload(inner).udp()),
        ("ARP", arp),
        ("a tunnel with three VLAN tags", too_tagged),
        ("a bare Ethernet header of IPv4", plain.tcp("S")[..14].to_vec()),
    ];
    rows.map(|(what, frame)| passed(what, frame, "not_tunnel")).into()
}

/// The frame with bytes written over.
fn with(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// What balancers do not send is another's tunnel.
fn outer_headers() -> Vec<Row<()>> {
    let frame = tunnel(4).around(&Packet::new(v4()).tcp("A"));
    let frame6 = tunnel(6).around(&Packet::new(v4()).tcp("A"));
    let own = Flow::new("10.0.0.1:1", "10.1.0.1:2");
    let inner = &Packet::new(v4()).tcp("S")[ETHERNET..];
    let optional = Packet::new(own).options(4).payload(inner).other(4);
    let rows = [
        ("outer IP options", optional),
        ("outer IHL 4", with(&frame, 14, &[0x44])),
        ("outer first fragment", with(&frame, 20, &[0x20, 0x00])),
        ("outer later fragment", with(&frame, 20, &[0x00, 0x01])),
        ("outer total length one beyond the frame", with(&frame, 16, &66_u16.to_be_bytes())),
        ("outer total length below its header", with(&frame, 16, &19_u16.to_be_bytes())),
        ("outer version 5", with(&frame, 14, &[0x55])),
        ("outer version 6 where IPv4 is announced", with(&frame, 14, &[0x65])),
        ("outer version 4 where IPv6 is announced", with(&frame6, 14, &[0x40])),
        ("outer payload length one beyond the frame", with(&frame6, 18, &46_u16.to_be_bytes())),
    ];
    let groups = [("everybody", [0xff; 6]), ("a group", [0x33, 0x33, 0, 0, 0, 1])];
    let to_group = |(what, mac): (&str, [u8; 6])| {
        let what = format!("a tunnel in a frame to {what}");
        passed(&what, with(&frame, 0, &mac), "not_tunnel")
    };
    let to_groups = groups.map(to_group).into_iter();
    rows.map(|(what, frame)| passed(what, frame, "not_tunnel"))
        .into_iter()
        .chain(to_groups)
        .collect()
}

/// The outer IPv4 header has a wrong checksum. Where no tunnel would be opened the packet is the host's, which finds it.
fn damaged() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    let (plain, plain6) = (Packet::new(v4()).tcp("A"), Packet::new(v6()).tcp("A"));
    for (what, frame) in [
        ("IPv4", tunnel(4).around(&plain)),
        ("IPv6", tunnel(4).around(&plain6)),
        ("IPv4 in GUE", tunnel(4).around_in_gue(&plain, (50_000, 6_080))),
        ("IPv6 in GUE", tunnel(4).around_in_gue(&plain6, (50_000, 6_080))),
    ] {
        for (how, at, bit) in [
            ("the checksum's first bit", 24, 0x80),
            ("the checksum's last bit", 25, 0x01),
            ("the TTL", 22, 0x10),
            ("the identification", 19, 0x01),
            ("DF", 20, 0x40),
        ] {
            let what = format!("{what} out of IPv4, of which {how} was damaged");
            let frame = with(&frame, at, &[frame[at] ^ bit]);
            rows.push(Row::dropped(what, (), frame, "outer_checksum"));
        }
    }
    let frame = tunnel(4).around(&plain);
    let swapped = with(&frame, 24, &[frame[25], frame[24]]);
    rows.push(Row::dropped("an outer checksum in the wrong order", (), swapped, "outer_checksum"));
    rows.push(Row::dropped("no outer checksum", (), with(&frame, 24, &[0; 2]), "outer_checksum"));
    let other = |change: &dyn Fn(&mut Tunnel)| {
        let mut tunnel = tunnel(4);
        change(&mut tunnel);
        let frame = tunnel.around(&plain);
        with(&frame, 24, &[!frame[24]])
    };
    let source = other(&|it| it.source = ip("10.0.0.8"));
    rows.push(passed("damaged, from another source", source, "source_not_allowed"));
    let elsewhere = other(&|it| it.destination = ip("10.1.0.2"));
    rows.push(passed("damaged, to another host", elsewhere, "tunnel_not_local"));
    rows
}

/// A balancer's packet for one of our VIPs that contradicts itself.
fn inner_headers() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for (outer, at) in [(4, 34), (6, 54)] {
        // Inner: 20 + 20 + 5 bytes of IPv4, 40 + 20 + 5 bytes of IPv6.
        let v4 = tunnel(outer).around(&Packet::new(v4()).tcp("A"));
        let v6 = tunnel(outer).around(&Packet::new(v6()).tcp("A"));
        for (what, frame) in [
            ("total length one beyond the outer", with(&v4, at + 2, &46_u16.to_be_bytes())),
            ("total length 65535", with(&v4, at + 2, &65_535_u16.to_be_bytes())),
            ("total length one below the header", with(&v4, at + 2, &19_u16.to_be_bytes())),
            ("IHL 4", with(&v4, at, &[0x44])),
            ("IHL beyond the total length", with(&v4, at, &[0x4f])),
            ("version 6 where IPv4 is announced", with(&v4, at, &[0x65])),
            ("version 5 where IPv4 is announced", with(&v4, at, &[0x55])),
            ("version 4 where IPv6 is announced", with(&v6, at, &[0x45])),
            ("payload length one beyond the outer", with(&v6, at + 4, &26_u16.to_be_bytes())),
            ("payload length 65535", with(&v6, at + 4, &65_535_u16.to_be_bytes())),
        ] {
            let what = format!("inner {what}, out of IPv{outer}");
            rows.push(Row::dropped(what, (), frame, "inner_malformed"));
        }
        // Less than the outer header has room for: the rest is padding, and stays.
        let shorter = with(&v4, at + 2, &44_u16.to_be_bytes());
        let inner = [&HOST[..], &SENDER, &[0x08, 0x00], &shorter[at..]].concat();
        let what = format!("inner total length below the outer, out of IPv{outer}");
        rows.push(Row::changed(what, (), (shorter, inner), "decapsulated"));
    }
    rows
}

/// A frame that ends early contradicts its outer length at every byte.
fn cut() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for outer in [4, 6] {
        let frame = tunnel(outer).around(&Packet::new(v4()).tcp("A"));
        for length in 14..frame.len() {
            let what = format!("IPv4 in IPv{outer} cut to {length} bytes");
            rows.push(passed(&what, frame[..length].to_vec(), "not_tunnel"));
        }
    }
    // Whole outer packets, but with too little inside for an inner header.
    for (outer, inner, header, protocol) in [(4, 4, 20, 4), (4, 6, 40, 41)] {
        let own = Flow::new("10.0.0.1:1", "10.1.0.1:2");
        for length in [0, 1, header - 1] {
            let frame = Packet::new(own).payload(&vec![inner << 4 | 5; length]).other(protocol);
            let what = format!("{length} bytes of IPv{inner} in IPv{outer}");
            rows.push(passed(&what, frame, "not_tunnel"));
        }
    }
    rows
}

/// What the row is at tc's hook, where the stack sums up what is inside of a tunnel, and no program needs to. `None`: a
/// frame on which the kernel tries no program for it.
pub(crate) fn at_tc(row: Row<()>) -> Option<Row<()>> {
    if !is_for_tc(&row.frame) {
        return None;
    }
    let what = format!("{}, at tc", row.what);
    let expected = match row.expected.verdict {
        "inner_checksum" => {
            Expected { verdict: "decapsulated", frame: Some(out_of_gue(&row.frame)), traffic: None }
        }
        _ => row.expected,
    };
    Some(Row { what, expected, ..row })
}

/// The packet in GUE, behind the same MACs.
fn out_of_gue(frame: &[u8]) -> Vec<u8> {
    let outer = if frame[ETHERNET] >> 4 == 4 { 20 } else { 40 };
    let inner = &frame[ETHERNET + outer + 12..];
    let ether_type = if inner[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&frame[..12], &ether_type, inner].concat()
}
