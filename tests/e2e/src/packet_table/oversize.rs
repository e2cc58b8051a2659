//! Packets that do not fit: an ICMP error tells their sender which size fits, and quotes the packet.

use etherparse::{IpDscp, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{MapFixture, Room},
    frames::{ETHERNET, Flow, HOST, Packet, SENDER, extended, hex, ip_length},
};

use super::flows::{fixture, v4, v4_udp, v6, v6_udp};

const ANSWERED: &str = "answered_too_large";

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [sizes(), packets(), by_hand(), unanswered(), unfragmented()].concat()
}

fn version(flow: &Flow) -> u8 {
    if flow.vip.is_ipv4() { 4 } else { 6 }
}

/// The VIP's answer to a frame: packets of `room` bytes fit.
pub(crate) fn answer(flow: &Flow, frame: &[u8], room: u16) -> Vec<u8> {
    let [high, low] = room.to_be_bytes();
    let (kind, code) = if flow.vip.is_ipv4() { (3, 4) } else { (2, 0) };
    error(flow, frame, (kind, code, [0, 0, high, low]))
}

/// The VIP's error about a frame: type, code and four bytes, then as much of the packet as 576 or 1,280 bytes take.
pub(crate) fn error(flow: &Flow, frame: &[u8], (kind, code, rest): (u8, u8, [u8; 4])) -> Vec<u8> {
    let most = if flow.vip.is_ipv4() { 548 } else { 1_232 };
    let quoted = &frame[ETHERNET..][..ip_length(frame).min(most)];
    let ethernet = PacketBuilder::ethernet2(HOST, SENDER);
    let mut out = Vec::new();
    match (flow.vip.ip(), flow.client.ip()) {
        (std::net::IpAddr::V4(vip), std::net::IpAddr::V4(client)) => {
            let mut header =
                Ipv4Header::new(0, 64, IpNumber::ICMP, vip.octets(), client.octets()).unwrap();
            header.dont_fragment = true;
            header.dscp = IpDscp::try_new(0x30).unwrap();
            ethernet
                .ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
                .icmpv4_raw(kind, code, rest)
                .write(&mut out, quoted)
        }
        (std::net::IpAddr::V6(vip), std::net::IpAddr::V6(client)) => {
            let header = Ipv6Header {
                hop_limit: 64,
                source: vip.octets(),
                destination: client.octets(),
                ..Default::default()
            };
            ethernet
                .ip(etherparse::IpHeaders::Ipv6(header, Default::default()))
                .icmpv6_raw(kind, code, rest)
                .write(&mut out, quoted)
        }
        addresses => panic!("{addresses:?}: of two IP versions"),
    }
    .unwrap();
    out
}

fn mtu(fixture: MapFixture, mtu: u16) -> MapFixture {
    fixture.member(0, 0, |owner| owner.mtu = mtu)
}

/// One byte too many in each of the four forms, and many.
fn sizes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (tunnel, overhead) in [(4, 20), (6, 40)] {
        for (flow, headers) in [(v4(), 40), (v6(), 60)] {
            for outer in [1_500, 1_320] {
                let room = outer - overhead;
                for beyond in [1, 1_000] {
                    let payload = vec![0x5a; usize::from(room - headers + beyond)];
                    let frame = Packet::new(flow).payload(&payload).tcp("A");
                    let after = answer(&flow, &frame, room);
                    let version = version(&flow);
                    let what =
                        format!("IPv{version} in IPv{tunnel}, MTU {outer}: {beyond} too many");
                    let fixture = mtu(fixture(tunnel), outer);
                    rows.push(Row::changed(what, fixture, (frame, after), ANSWERED));
                }
            }
        }
    }
    rows
}

/// Whatever the packet is, as long as it is of a service.
fn packets() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let payload: Vec<u8> = (0..2_000_u16).map(|n| (n * 7) as u8).collect();
    let mut row = |what: &str, flow: Flow, frame: Vec<u8>| {
        let what = format!("IPv{} {what} that is too large", version(&flow));
        let after = answer(&flow, &frame, 1_480);
        rows.push(Row::changed(what, fixture(4), (frame, after), ANSWERED));
    };
    for flow in [v4(), v6()] {
        let packet = Packet::new(flow).payload(&payload);
        row("segment with flags SP", flow, packet.tcp("SP"));
        row("segment at hop limit 2 with CE", flow, packet.hop_limit(2).traffic_class(3).tcp("A"));
    }
    for flow in [v4_udp(), v6_udp()] {
        row("datagram", flow, Packet::new(flow).payload(&payload).udp());
    }
    row("segment with IP options", v4(), Packet::new(v4()).options(40).payload(&payload).tcp("A"));
    let mut padded = Packet::new(v4()).payload(&payload).tcp("A");
    padded.extend([0xee; 9]);
    row("segment with padding after it", v4(), padded);
    let options = [(60, "00 01 01 0c 000000000000000000000000")];
    let frame = extended(&Packet::new(v6()).payload(&payload).tcp("A"), &options);
    row("segment behind options", v6(), frame);
    // The checksum is for the client's host to judge.
    let mut wrong = Packet::new(v4_udp()).payload(&payload).udp();
    wrong[600] ^= 1;
    row("datagram with a wrong checksum", v4_udp(), wrong);
    rows
}

/// Written out: no library had a hand in it.
fn by_hand() -> Vec<Row<MapFixture>> {
    // An ACK of 192.0.2.9:4711 to 198.51.100.1:80 with 1,461 bytes of zeros: 1,501 bytes.
    let mut frame = hex("020000000001 02000000000c 0800
        4500 05dd 0001 4000 40 06 48dc c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 8b29 0000");
    frame.extend([0; 1_461]);
    // Under the checksum: 0304, 05c8 (1,480), and the quote, whose headers sum up to 0df2.
    let mut after = hex("02000000000c 020000000001 0800
        45c0 0240 0000 4000 40 01 4bbf c6336401 c0000209
        0304 e941 0000 05c8
        4500 05dd 0001 4000 40 06 48dc c0000209 c6336401
        1267 0050 00000001 00000000 5010 2000 8b29 0000");
    after.extend([0; 508]);
    let what = "by hand: an answer to what is too large";
    vec![Row::changed(what, fixture(4), (frame, after), ANSWERED)]
}

/// The frame without DF.
pub(crate) fn without_df(mut frame: Vec<u8>) -> Vec<u8> {
    frame[20] &= !0x40;
    let (header, _) = Ipv4Header::from_slice(&frame[ETHERNET..]).unwrap();
    frame[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    frame
}

/// Without DF: what fits goes in an outer packet with DF, as any packet does, and what does not is dropped, whatever it
/// is and wherever it goes. RFC 1191 has no error for it.
fn unfragmented() -> Vec<Row<MapFixture>> {
    let of = |length: usize| Packet::new(v4()).payload(&vec![0x5a; length - 40]);
    let fits = without_df(of(1_480).tcp("A"));
    let mut rows =
        vec![Row::sent("without DF, as much as fits", fixture(4), (&v4(), fits), (0, 0))];
    let mut row = |what: &str, fixture, frame| {
        let what = format!("too large without DF, {what}");
        rows.push(Row::dropped(what, fixture, without_df(frame), "too_large"));
    };
    row("by one byte", fixture(4), of(1_481).tcp("A"));
    row("in a tunnel of IPv6", fixture(6), of(1_461).tcp("A"));
    row("where the backend's MTU is small", mtu(fixture(4), 1_280), of(1_300).tcp("PA"));
    row("a SYN with data", fixture(4), of(1_490).tcp("S"));
    row("with IP options", fixture(4), of(1_450).options(40).tcp("A"));
    let datagram = Packet::new(v4_udp()).payload(&[7; 1_470]);
    row("a datagram", fixture(4), datagram.udp());
    let no_source = fixture(4).with(|fixture| fixture.sources.0 = [0; 4].into());
    row("without a source of tunnels", no_source, of(1_490).tcp("A"));
    rows
}

/// No ICMP error is sent, and the packet is dropped.
fn unanswered() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (what, room) in
        [("when the limit is reached", Room::Full), ("when none may be sent", Room::Closed)]
    {
        let fixture = fixture(6).with(|fixture| fixture.errors = room);
        let frame = Packet::new(v6()).payload(&[0; 1_500]).tcp("A");
        rows.push(Row::dropped(format!("too large, {what}"), fixture, frame, "too_large"));
    }
    rows
}
