//! Fragments for services that take them: all packets of a client go by its address, so that those
//! without ports meet the others.

use etherparse::Ipv4Header;

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{HASH_KEY, MapFixture, NONE},
    flow_hash,
    frames::{ETHERNET, Flow, Packet, extended},
};

const TCP: u8 = 6;
const UDP: u8 = 17;
pub(super) const TO: (usize, u16) = (0, 5);

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [served(), passed(), dropped(), errors()].concat()
}

fn udp_v4() -> Flow {
    Flow::new("192.0.2.9:4711", "198.51.100.4:53")
}

fn tcp_v4() -> Flow {
    Flow::new("192.0.2.9:4711", "198.51.100.4:81")
}

fn udp_v6() -> Flow {
    Flow::new("[2001:db8:c::9]:4711", "[2001:db8:80::4]:5353")
}

/// Who has the slot of the addresses alone.
pub(super) fn fixture(flow: &Flow, protocol: u8) -> MapFixture {
    let hash = flow_hash::hash(flow, protocol, true, HASH_KEY);
    MapFixture::new(4).list(0, hash, [TO.1, NONE, NONE, NONE])
}

/// The frame as a fragment that says `word` for flags and offset, its checksum right.
pub(super) fn fragment_v4(frame: &[u8], word: u16) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[20..22].copy_from_slice(&word.to_be_bytes());
    let (header, _) = Ipv4Header::from_slice(&frame[ETHERNET..]).unwrap();
    frame[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    frame
}

/// A fragment without ports, of bytes that would be those of somebody else's.
pub(super) fn later_v4(flow: &Flow, protocol: u8, payload: &[u8], word: u16) -> Vec<u8> {
    fragment_v4(&Packet::new(*flow).payload(payload).other(protocol), word)
}

fn fragment_v6(frame: &[u8], word: u16) -> Vec<u8> {
    extended(frame, &[(44, &format!("00 00 {word:04x} 0000002a"))])
}

fn later_v6(flow: &Flow, protocol: u8, word: u16) -> Vec<u8> {
    fragment_v6(&Packet::new(*flow).payload(&[0x5a; 32]).other(protocol), word)
}

fn served() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let datagram = Packet::new(udp_v4()).payload(&[7; 64]).udp();
    let other_port = Flow { client: "192.0.2.9:9".parse().unwrap(), ..udp_v4() };
    let datagram_v6 = Packet::new(udp_v6()).payload(&[7; 64]).udp();
    let options =
        extended(&datagram_v6, &[(60, "00 00 0104 00000000"), (44, "00 00 0001 00000007")]);
    for (what, flow, protocol, frame) in [
        ("whole datagram", udp_v4(), UDP, datagram.clone()),
        ("whole datagram from another port", other_port, UDP, Packet::new(other_port).udp()),
        ("first fragment", udp_v4(), UDP, fragment_v4(&datagram, 0x2000)),
        ("later fragment", udp_v4(), UDP, later_v4(&udp_v4(), UDP, &[0x5a; 32], 0x20b9)),
        ("last fragment", udp_v4(), UDP, later_v4(&udp_v4(), UDP, &[0x5a; 32], 0x0172)),
        ("last fragment of one byte", udp_v4(), UDP, later_v4(&udp_v4(), UDP, &[1], 0x0172)),
        (
            "later fragment that looks like another service's",
            udp_v4(),
            UDP,
            later_v4(&udp_v4(), UDP, &[0, 9, 0, 54, 0, 8, 0, 0], 0x20b9),
        ),
        ("first fragment", tcp_v4(), TCP, fragment_v4(&Packet::new(tcp_v4()).tcp("A"), 0x2000)),
        (
            "first fragment with SYN",
            tcp_v4(),
            TCP,
            fragment_v4(&Packet::new(tcp_v4()).tcp("S"), 0x2000),
        ),
        ("later fragment", tcp_v4(), TCP, later_v4(&tcp_v4(), TCP, &[0xff; 32], 0x20b9)),
        ("first fragment", udp_v6(), UDP, fragment_v6(&datagram_v6, 0x0001)),
        ("first fragment behind options", udp_v6(), UDP, options),
        ("later fragment", udp_v6(), UDP, later_v6(&udp_v6(), UDP, 0x0579)),
        ("last fragment", udp_v6(), UDP, later_v6(&udp_v6(), UDP, 0x0af0)),
    ] {
        let name = if protocol == TCP { "TCP" } else { "UDP" };
        let version = if flow.vip.is_ipv4() { 4 } else { 6 };
        let what = format!("served, {name} over IPv{version}: {what}");
        let connections = u64::from(what.ends_with("SYN"));
        let of = (&flow, protocol, connections);
        rows.push(Row::sent_as(what, fixture(&flow, protocol), of, frame, TO));
    }
    rows
}

/// Where nobody takes them they are the host's.
fn passed() -> Vec<Row<MapFixture>> {
    let any_port = Flow::new("192.0.2.9:4711", "198.51.100.3:53");
    let elsewhere = Flow::new("192.0.2.9:4711", "198.51.100.5:53");
    let row = |what: &str, frame| Row::passed(what, MapFixture::new(4), frame, "later_fragment");
    vec![
        row(
            "later fragment of GRE to a VIP with fragments",
            later_v4(&udp_v4(), 47, &[0; 32], 0x20b9),
        ),
        row(
            "later fragment of ICMP to a VIP with fragments",
            later_v4(&udp_v4(), 1, &[0; 32], 0x20b9),
        ),
        row("later fragment of ESP over IPv6", later_v6(&udp_v6(), 50, 0x0579)),
        row("later fragment of TCP where UDP is served", later_v6(&udp_v6(), TCP, 0x0579)),
        row("later fragment for any port", later_v4(&any_port, TCP, &[0; 32], 0x20b9)),
        Row::passed(
            "later fragment for no VIP",
            MapFixture::new(4),
            later_v4(&elsewhere, UDP, &[0; 32], 0x20b9),
            "not_ours",
        ),
    ]
}

fn dropped() -> Vec<Row<MapFixture>> {
    let any_port = Flow::new("192.0.2.9:4711", "198.51.100.3:53");
    let first = fragment_v4(&Packet::new(any_port).tcp("A"), 0x2000);
    let last_hop = Packet::new(udp_v4()).hop_limit(1).payload(&[0; 32]).other(UDP);
    let narrow = |flow: &Flow, protocol| fixture(flow, protocol).member(0, TO.1, |m| m.mtu = 1_280);
    let large = [0; 1_300];
    let short = Packet::new(tcp_v4()).payload(&[0; 8]).other(TCP);
    vec![
        Row::dropped("first fragment for any port", MapFixture::new(4), first, "fragment"),
        Row::dropped(
            "later fragment at its last hop",
            fixture(&udp_v4(), UDP),
            fragment_v4(&last_hop, 0x20b9),
            "hop_limit_exceeded",
        ),
        Row::dropped(
            "first fragment shorter than a TCP header",
            fixture(&tcp_v4(), TCP),
            fragment_v4(&short, 0x2000),
            "malformed",
        ),
        // Of a fragment only the first is answered (RFC 1122, 3.2.2).
        Row::dropped(
            "later fragment with DF that does not fit",
            narrow(&udp_v4(), UDP),
            later_v4(&udp_v4(), UDP, &large, 0x60b9),
            "too_large",
        ),
    ]
}

/// An error about a fragment that a backend sent.
fn errors() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (what, flow, quoted) in [
        ("first fragment", udp_v4(), fragment_v4(&Packet::new(udp_v4().answered()).udp(), 0x2000)),
        ("later fragment", udp_v4(), later_v4(&udp_v4().answered(), UDP, &[0x5a; 32], 0x20b9)),
        (
            "later fragment of TCP",
            tcp_v4(),
            later_v4(&tcp_v4().answered(), TCP, &[0x5a; 8], 0x20b9),
        ),
        ("first fragment", udp_v6(), fragment_v6(&Packet::new(udp_v6().answered()).udp(), 1)),
        ("later fragment", udp_v6(), later_v6(&udp_v6().answered(), UDP, 0x0579)),
    ] {
        let (version, protocol) =
            (if flow.vip.is_ipv4() { 4 } else { 6 }, if flow == tcp_v4() { TCP } else { UDP });
        let router = if version == 4 { "203.0.113.77:0" } else { "[2001:db8:77::1]:0" };
        let router = Packet::new(Flow { client: router.parse().unwrap(), vip: flow.vip });
        let (kind, code) = if version == 4 { (3, 4) } else { (2, 0) };
        let frame = router.error(kind, code, [0, 0, 5, 0], &quoted[ETHERNET..]);
        let what = format!("too big, served IPv{version}: {what} quoted");
        rows.push(Row::sent_as(what, fixture(&flow, protocol), (&flow, protocol, 0), frame, TO));
        if is_later(&quoted) {
            let cut = router.error(kind, code, [0, 0, 5, 0], &quoted[ETHERNET..][..20]);
            if version == 4 {
                let what = "too big, no more than the header of a later fragment quoted";
                let name = format!("{what}, {protocol}");
                rows.push(Row::sent_as(
                    name,
                    fixture(&flow, protocol),
                    (&flow, protocol, 0),
                    cut,
                    TO,
                ));
            }
        }
    }
    rows
}

fn is_later(frame: &[u8]) -> bool {
    frame[ETHERNET] >> 4 == 4 && u16::from_be_bytes([frame[20], frame[21]]) & 0x1fff != 0
}
