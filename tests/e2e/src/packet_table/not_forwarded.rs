//! What no router forwards: frames for a group of hosts, and packets from sources that no host has.

use std::net::{IpAddr, SocketAddr};

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{MapFixture, Room},
    frames::{ETHERNET, Flow, Packet, extended, hex},
};

use super::{
    flows::{fixture, v4, v4_udp, v6, v6_udp},
    oversize::without_df,
};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [groups(), unicast(), martians(), neighbours(), not_served()].concat()
}

/// The frame to another MAC.
fn to_mac(mac: [u8; 6], frame: &[u8]) -> Vec<u8> {
    [&mac[..], &frame[6..]].concat()
}

/// MACs of groups: everybody; of IPv4 and IPv6; one that is set up locally; what bridges keep.
const GROUPS: [[u8; 6]; 5] = [
    [0xff; 6],
    [0x01, 0x00, 0x5e, 0x00, 0x00, 0x01],
    [0x33, 0x33, 0x00, 0x00, 0x00, 0x01],
    [0x03, 0xbf, 0xc6, 0x33, 0x64, 0x01],
    [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e],
];

/// Packets that the balancer forwards, answers or drops if they are for this host alone.
fn packets() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (flow, datagram) in [(v4(), v4_udp()), (v6(), v6_udp())] {
        let is_v4 = flow.vip.is_ipv4();
        let version = if is_v4 { 4 } else { 6 };
        let (ping, unreachable) = if is_v4 { (8, [3, 1]) } else { (128, [1, 0]) };
        let sent = &Packet::new(flow.answered()).tcp("A")[ETHERNET..];
        let packet = Packet::new(flow);
        for (what, frame) in [
            ("a SYN", packet.tcp("S")),
            ("an ACK", packet.tcp("A")),
            ("a datagram", Packet::new(datagram).udp()),
            ("a ping", packet.error(ping, 0, [1, 2, 3, 4], b"hello")),
            ("an ICMP error", packet.error(unreachable[0], unreachable[1], [0; 4], sent)),
            ("a packet that is too large", packet.clone().payload(&[0; 1_500]).tcp("A")),
            ("a packet at its last hop", packet.clone().hop_limit(1).tcp("S")),
        ] {
            all.push((format!("{what} of IPv{version}"), frame));
        }
    }
    all
}

/// The host gets frames for a group, unchanged.
fn groups() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let mut row = |what: String, frame: &[u8], mac: [u8; 6]| {
        let what = format!("{what} to {mac:02x?}");
        rows.push(Row::passed(what, fixture(4), to_mac(mac, frame), "broadcast_frame"));
    };
    for mac in GROUPS {
        for (what, frame) in packets() {
            row(what, &frame, mac);
        }
    }
    let behind =
        extended(&Packet::new(v6()).tcp("S"), &[(60, "00 01 01 0c 000000000000000000000000")]);
    row("a SYN behind options".into(), &behind, GROUPS[0]);
    let other = Packet::new(Flow::new("192.0.2.9:68", "255.255.255.255:67")).udp();
    row("what is for everybody".into(), &other, GROUPS[0]);
    let solicitation = Packet::new(Flow::new("[::]:0", "[ff02::1:ff00:1]:0"));
    row("a neighbour's question".into(), &solicitation.error(135, 0, [0; 4], &[0; 16]), GROUPS[2]);
    rows
}

/// For one host: whatever its MAC is, because a virtual router has one of its own (RFC 5798, 7.3).
fn unicast() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for mac in [[0x00, 0x00, 0x5e, 0x00, 0x01, 0x01], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff], [0; 6]]
    {
        for flow in [v4(), v6()] {
            let frame = to_mac(mac, &Packet::new(flow).tcp("S"));
            let what = format!("a SYN to {} in a frame to {mac:02x?}", flow.vip);
            rows.push(Row::sent(what, fixture(4), (&flow, frame), (0, 0)));
        }
    }
    rows
}

/// The flow from another client.
fn from(source: &str, flow: Flow) -> Flow {
    let source: IpAddr = source.parse().unwrap();
    Flow { client: SocketAddr::new(source, flow.client.port()), ..flow }
}

const MARTIANS: [&str; 21] = [
    "0.0.0.0",
    "0.255.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.0.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "198.51.100.1",
    "::",
    "::1",
    "::ffff:0.0.0.0",
    "::ffff:192.0.2.9",
    "fe80::",
    "fe80::1",
    "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "ff00::",
    "ff02::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8:80::1",
];

fn martians() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for source in MARTIANS {
        let is_v4 = !source.contains(':');
        let (flow, datagram) = if is_v4 { (v4(), v4_udp()) } else { (v6(), v6_udp()) };
        let (ping, unreachable) = if is_v4 { (8, [3, 1]) } else { (128, [1, 0]) };
        let packet = Packet::new(from(source, flow));
        let sent = &Packet::new(flow.answered()).tcp("A")[ETHERNET..];
        let error = packet.error(unreachable[0], unreachable[1], [0; 4], sent);
        for (what, frame) in [
            ("a SYN", packet.tcp("S")),
            ("an ACK", packet.tcp("A")),
            ("a RST", packet.tcp("R")),
            ("a datagram", Packet::new(from(source, datagram)).udp()),
            ("a ping", packet.error(ping, 0, [1, 2, 3, 4], b"hello")),
            ("an ICMP error about a connection", error),
            ("what is too large", packet.clone().payload(&[0; 1_500]).tcp("A")),
            ("a packet at its last hop", packet.clone().hop_limit(1).tcp("S")),
            ("a SYN to an IPv6 tunnel", packet.clone().payload(b"6").tcp("S")),
        ] {
            let tunnel = if what.contains("IPv6 tunnel") { 6 } else { 4 };
            let what = format!("from {source}, {what}");
            rows.push(Row::dropped(what, fixture(tunnel), frame, "martian_source"));
        }
    }
    for (source, flow) in [("127.0.0.1", v4()), ("::1", v6())] {
        // Before any limit: where one is reached, the verdict is still about the source.
        let full = fixture(4).with(|fixture| {
            fixture.errors = Room::Full;
            fixture.echoes = Room::Full;
        });
        let packet = Packet::new(from(source, flow));
        let kind = if flow.vip.is_ipv4() { 8 } else { 128 };
        let frame = packet.error(kind, 0, [0; 4], b"");
        let what = format!("from {source}, a ping when enough were answered");
        rows.push(Row::dropped(what, full, frame, "martian_source"));
    }
    let options = Packet::new(from("127.0.0.1", v4())).options(8).tcp("S");
    let what = "from 127.0.0.1, a SYN with IP options";
    rows.push(Row::dropped(what, fixture(4), options, "martian_source"));
    let behind = [(60, "00 01 01 0c 000000000000000000000000")];
    let behind = extended(&Packet::new(from("fe80::1", v6())).tcp("S"), &behind);
    rows.push(Row::dropped("from fe80::1, behind options", fixture(4), behind, "martian_source"));
    let small = without_df(Packet::new(from("240.0.0.1", v4())).payload(&[0; 1_500]).tcp("A"));
    let what = "from 240.0.0.1, too large without DF";
    rows.push(Row::dropped(what, fixture(4), small, "martian_source"));
    rows.extend(by_hand());
    rows
}

/// Written out: a SYN of 127.0.0.1:4711 to 198.51.100.1:80.
fn by_hand() -> Vec<Row<MapFixture>> {
    let frame = hex("020000000001 02000000000c 0800
        4500 0028 0001 4000 40 06 9199 7f000001 c6336401
        1267 0050 00000001 00000000 5002 2000 d2f6 0000");
    vec![Row::dropped("by hand: from 127.0.0.1", fixture(4), frame, "martian_source")]
}

/// Addresses just beside those are clients'.
fn neighbours() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for source in [
        "1.0.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "223.255.255.255",
        "198.51.100.2",
        "198.51.101.1",
        "::2",
        "::1:0:0:1",
        "::fffe:c000:209",
        "::1:ffff:c000:209",
        "64:ff9b::192.0.2.9",
        "fdff::1",
        "fe7f:ffff::1",
        "fec0::1",
        "2001:db8:80::2",
        "2001:db8:81::1",
    ] {
        let flow = from(source, if source.contains(':') { v6() } else { v4() });
        // The slot of this flow is another one's.
        let fixture = super::flows::listed(fixture(4), 0).list(
            0,
            super::flows::tcp_hash(&flow),
            [0, 1, 2, 3],
        );
        let frame = Packet::new(flow).tcp("S");
        rows.push(Row::sent(format!("from {source}, a client"), fixture, (&flow, frame), (0, 0)));
    }
    rows
}

/// What is not for a service is the host's, which judges by its own addresses and routes.
fn not_served() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (what, flow, verdict) in [
        ("another port", Flow::new("127.0.0.1:1", "198.51.100.1:82"), "not_ours"),
        ("another address", Flow::new("[fe80::1]:1", "[2001:db8:80::2]:80"), "not_ours"),
        ("DHCP", Flow::new("0.0.0.0:68", "192.0.2.1:67"), "not_ours"),
    ] {
        let frame = Packet::new(flow).udp();
        rows.push(Row::passed(
            format!("from {}, to {what}", flow.client),
            fixture(4),
            frame,
            verdict,
        ));
    }
    let ping =
        Packet::new(Flow::new("[fe80::1]:0", "[2001:db8:80::2]:0")).error(128, 0, [0; 4], b"");
    rows.push(Row::passed("from fe80::1, a ping of another", fixture(4), ping, "not_ours"));
    rows
}
