//! ICMP errors about packets from a VIP: they go where those came from, unchanged but for a hop.

use etherparse::Ipv4Header;

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{HASH_KEY, MapFixture, NOTHING, OPEN_ONLY},
    flow_hash,
    frames::{ETHERNET, Flow, Packet, extended, hex},
};

use super::flows::{fixture, v4, v4_udp, v6, v6_udp};

const OWNER: (usize, u16) = (0, 0);
const TCP: u8 = 6;
const UDP: u8 = 17;

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [kinds(), quotes(), choice(), others(), untrue(), cut_short(), dropped()].concat()
}

/// A router on the way to the client, on its way to the VIP of a flow.
pub(super) fn router(flow: &Flow) -> Packet {
    let router = if flow.vip.is_ipv4() { "203.0.113.77:0" } else { "[2001:db8:77::1]:0" };
    Packet::new(Flow { client: Flow::new(router, router).client, vip: flow.vip })
}

/// What a backend of the flow sent, from the IP header on, with so many bytes behind it.
fn sent_by_vip(flow: &Flow, payload: &[u8]) -> Vec<u8> {
    let packet = Packet::new(flow.answered()).payload(payload);
    let frame = if flow.vip.port() == 80 { packet.tcp("A") } else { packet.udp() };
    frame[ETHERNET..].to_vec()
}

/// The error that says that a packet does not fit 1,280 bytes.
fn too_big(flow: &Flow, quoted: &[u8]) -> Vec<u8> {
    let mtu = [0, 0, 5, 0];
    match flow.vip.is_ipv4() {
        true => router(flow).error(3, 4, mtu, quoted),
        false => router(flow).error(2, 0, mtu, quoted),
    }
}

fn protocol(flow: &Flow) -> u8 {
    if flow.vip.port() == 80 { TCP } else { UDP }
}

fn version(flow: &Flow) -> u8 {
    if flow.vip.is_ipv4() { 4 } else { 6 }
}

fn sent(what: String, fixture: MapFixture, flow: &Flow, frame: Vec<u8>) -> Row<MapFixture> {
    Row::sent_as(what, fixture, (flow, protocol(flow), 0), frame, OWNER)
}

/// Every error there is.
fn kinds() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (tunnel, flow) in [(4, v4()), (6, v4()), (4, v6()), (6, v6()), (4, v4_udp()), (6, v6_udp())]
    {
        let quoted = sent_by_vip(&flow, b"and more");
        let kinds: &[(&str, u8, u8)] = match flow.vip.is_ipv4() {
            true => &[
                ("net unreachable", 3, 0),
                ("port unreachable", 3, 3),
                ("fragmentation needed", 3, 4),
                ("TTL exceeded", 11, 0),
                ("parameter problem", 12, 0),
            ],
            false => &[
                ("no route", 1, 0),
                ("port unreachable", 1, 4),
                ("packet too big", 2, 0),
                ("hop limit exceeded", 3, 0),
                ("parameter problem", 4, 1),
            ],
        };
        for (name, kind, code) in kinds {
            let frame = router(&flow).error(*kind, *code, [0, 0, 5, 0xdc], &quoted);
            let of = if protocol(&flow) == TCP { "TCP" } else { "UDP" };
            let what = format!("{of}, IPv{} in IPv{tunnel}: {name}", version(&flow));
            rows.push(sent(what, fixture(tunnel), &flow, frame));
        }
    }
    rows
}

/// How much is quoted, and of what.
fn quotes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6(), v4_udp(), v6_udp()] {
        let name = format!(
            "{} over IPv{}",
            if protocol(&flow) == TCP { "TCP" } else { "UDP" },
            version(&flow)
        );
        let header = if flow.vip.is_ipv4() { 20 } else { 40 };
        let whole = sent_by_vip(&flow, &[0x5a; 1_000]);
        for (what, length) in
            [("8 bytes", header + 8), ("13 bytes", header + 13), ("all", whole.len())]
        {
            let frame = too_big(&flow, &whole[..length]);
            rows.push(sent(format!("too big, {what} of {name} quoted"), fixture(4), &flow, frame));
        }
        let mut padded = too_big(&flow, &whole[..header + 8]);
        padded.extend([0xee; 4]);
        rows.push(sent(format!("too big, {name}, padding after it"), fixture(4), &flow, padded));
    }
    for length in [4, 40] {
        let packet = Packet::new(v4().answered()).options(length).tcp("A");
        let frame = too_big(&v4(), &packet[ETHERNET..]);
        let what = format!("too big, a packet with {length} bytes of IP options quoted");
        rows.push(sent(what, fixture(4), &v4(), frame));
        let frame = router(&v4()).options(length).error(3, 4, [0; 4], &sent_by_vip(&v4(), b""));
        let what = format!("too big, with {length} bytes of IP options of its own");
        rows.push(sent(what, fixture(4), &v4(), frame));
    }
    // The host that it is for judges it, not we.
    for (flow, checksum) in [(v4(), ETHERNET + 20 + 2), (v6(), ETHERNET + 40 + 2)] {
        let mut frame = too_big(&flow, &sent_by_vip(&flow, b""));
        frame[checksum] ^= 0x5a;
        let what = format!("too big, with a wrong checksum, IPv{}", version(&flow));
        rows.push(sent(what, fixture(4), &flow, frame));
    }
    let options = [(0, "00 00 0502 0000 0100"), (60, "00 01 01 0c 000000000000000000000000")];
    let quoted = extended(&Packet::new(v6().answered()).tcp("A"), &options);
    let frame = too_big(&v6(), &quoted[ETHERNET..]);
    let what = "too big, a packet with extension headers quoted".to_owned();
    rows.push(sent(what, fixture(6), &v6(), frame));
    let frame = extended(&too_big(&v6(), &sent_by_vip(&v6(), b"")), &options);
    let what = "too big, with extension headers of its own".to_owned();
    rows.push(sent(what, fixture(6), &v6(), frame));
    // Of a first fragment the ports are there.
    let mut first = sent_by_vip(&v4_udp(), b"");
    first[6] = 0x20;
    let (header, _) = Ipv4Header::from_slice(&first).unwrap();
    first[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    let what = "too big, a first fragment quoted".to_owned();
    rows.push(sent(what, fixture(4), &v4_udp(), too_big(&v4_udp(), &first)));
    rows
}

/// The error has the backend of the flow: by state as an open connection or a datagram has it.
fn choice() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let frame = |flow: &Flow| too_big(flow, &sent_by_vip(flow, b""));
    for (flow, state, name, rank) in [
        (v4(), OPEN_ONLY, "unfit, TCP", 0),
        (v4(), NOTHING, "dead, TCP", 1),
        (v6(), NOTHING, "dead, TCP over IPv6", 1),
        (v4_udp(), OPEN_ONLY, "unfit, UDP", 1),
        (v6_udp(), NOTHING, "dead, UDP over IPv6", 1),
    ] {
        let fixture = fixture(4).states(0, state, &[0]);
        let of = (&flow, protocol(&flow), 0);
        rows.push(Row::sent_as(
            format!("too big, owner {name}"),
            fixture,
            of,
            frame(&flow),
            (0, rank),
        ));
    }
    // By address: the slot of the client alone.
    let flow = Flow::new("192.0.2.9:4711", "198.51.100.1:81");
    let slots =
        MapFixture::new(4).list(0, flow_hash::hash(&flow, TCP, true, HASH_KEY), [3, 0, 1, 2]);
    let quoted = &Packet::new(flow.answered()).tcp("A")[ETHERNET..];
    let what = "too big, a service by address";
    rows.push(Row::sent_as(what, slots, (&flow, TCP, 0), too_big(&flow, quoted), (0, 3)));
    rows
}

/// Neither errors nor of a service: the host's.
fn others() -> Vec<Row<MapFixture>> {
    let (v4, v6) = (v4(), v6());
    let (of4, of6) = (sent_by_vip(&v4, b""), sent_by_vip(&v6, b""));
    let other_port = Flow::new("192.0.2.9:4711", "198.51.100.1:82");
    let other_port = &Packet::new(other_port.answered()).tcp("A")[ETHERNET..];
    let icmp =
        &Packet::new(v4.answered()).payload(&hex("0000 ffff 0000 0001")).other(1)[ETHERNET..];
    let passed = |what: &str, frame, verdict| Row::passed(what, fixture(4), frame, verdict);
    vec![
        passed("redirect", router(&v4).error(5, 1, [192, 0, 2, 1], &of4), "other_protocol"),
        passed("source quench", router(&v4).error(4, 0, [0; 4], &of4), "other_protocol"),
        passed("ICMPv6 type 0", router(&v6).error(0, 0, [0; 4], &of6), "other_protocol"),
        passed("ICMPv6 type 5", router(&v6).error(5, 0, [0; 4], &of6), "other_protocol"),
        passed("ICMPv6 in IPv4", router(&v4).payload(&of4).other(58), "other_protocol"),
        passed("ICMP in IPv6", router(&v6).payload(&of6).other(1), "other_protocol"),
        passed("too big, of no service", too_big(&v4, other_port), "not_ours"),
        passed("too big, of an echo reply", too_big(&v4, icmp), "other_protocol"),
    ]
}

/// What nobody can have sent whose packet went wrong.
fn untrue() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        let to_vip = &Packet::new(flow).tcp("A")[ETHERNET..];
        let what = format!("too big, IPv{}: what a client sent quoted", version(&flow));
        rows.push(Row::passed(what, fixture(4), too_big(&flow, to_vip), "other_protocol"));
        let other = match flow.vip.is_ipv4() {
            true => Flow { vip: "198.51.100.2:80".parse().unwrap(), ..flow },
            false => Flow { vip: "[2001:db8:80::2]:80".parse().unwrap(), ..flow },
        };
        let what = format!("too big, IPv{}: sent to another address", version(&flow));
        let frame = too_big(&other, &sent_by_vip(&flow, b""));
        rows.push(Row::passed(what, fixture(4), frame, "not_ours"));
    }
    let mut of_other_version = sent_by_vip(&v4(), b"");
    of_other_version[0] = 0x65;
    let mut without_header = sent_by_vip(&v4(), b"");
    without_header[0] = 0x44;
    let mut later = sent_by_vip(&v4(), b"");
    later[7] = 1;
    for (what, quoted, verdict) in [
        ("IPv6 in the quote of IPv4", of_other_version, "other_protocol"),
        ("a header of 16 bytes quoted", without_header, "other_protocol"),
        ("a later fragment quoted", later, "later_fragment"),
    ] {
        let frame = too_big(&v4(), &quoted);
        rows.push(Row::passed(format!("too big, {what}"), fixture(4), frame, verdict));
    }
    let later = extended(&Packet::new(v6().answered()).tcp("A"), &[(44, "00 00 0008 0000002a")]);
    let frame = too_big(&v6(), &later[ETHERNET..]);
    rows.push(Row::passed(
        "too big, an IPv6 later fragment quoted",
        fixture(4),
        frame,
        "later_fragment",
    ));
    let mut fragment = too_big(&v4(), &sent_by_vip(&v4(), b""));
    fragment[ETHERNET + 6] = 0x20;
    rows.push(Row::passed("too big, itself a fragment", fixture(4), fragment, "other_protocol"));
    rows
}

/// Where the quote ends too early.
fn cut_short() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        let header = if flow.vip.is_ipv4() { 20 } else { 40 };
        let whole = sent_by_vip(&flow, b"");
        for length in [0, 1, header - 1, header, header + 4, header + 7] {
            let mut frame = too_big(&flow, &whole[..length]);
            let what = format!("too big, {length} bytes of IPv{} quoted", version(&flow));
            rows.push(Row::passed(&what, fixture(4), frame.clone(), "other_protocol"));
            // What stands behind the packet is no part of it.
            frame.extend(&whole[length..]);
            let what = format!("{what}, the rest behind the packet");
            rows.push(Row::passed(what, fixture(4), frame, "other_protocol"));
        }
    }
    rows
}

fn dropped() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        let quoted = sent_by_vip(&flow, &[0; 1_400]);
        let small = fixture(4).member(0, 0, |owner| owner.mtu = 1_280);
        let what = format!("too big, IPv{}, does not fit itself", version(&flow));
        rows.push(Row::dropped(what, small, too_big(&flow, &quoted), "too_large"));
        let mtu = [0, 0, 5, 0];
        let last = router(&flow).hop_limit(1);
        let frame = match flow.vip.is_ipv4() {
            true => last.error(3, 4, mtu, &quoted),
            false => last.error(2, 0, mtu, &quoted),
        };
        let what = format!("too big, IPv{}, at its last hop", version(&flow));
        rows.push(Row::dropped(what, fixture(4), frame, "hop_limit_exceeded"));
    }
    rows
}
