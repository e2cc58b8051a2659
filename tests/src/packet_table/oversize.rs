//! Packets that do not fit: their sender is told how much does, and which packet it was.

use etherparse::{IpDscp, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};

use crate::packet_table::row::{Expected, Row};
use crate::packets::{
    fixture::{GATEWAY, MapFixture, Room},
    frames::{ETHERNET, Flow, HOST, Packet, SENDER, extended, hex},
};

use super::flows::{fixture, v4, v4_udp, v6, v6_udp};

const ANSWERED: &str = "answered_too_large";

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [sizes(), packets(), by_hand(), untold(), divisible(), indivisible()].concat()
}

fn version(flow: &Flow) -> u8 {
    if flow.vip.is_ipv4() { 4 } else { 6 }
}

/// The VIP's answer to a frame: packets of `room` bytes fit.
pub(crate) fn answer(flow: &Flow, frame: &[u8], room: u16) -> Vec<u8> {
    let [high, low] = room.to_be_bytes();
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
                .icmpv4_raw(3, 4, [0, 0, high, low])
                .write(&mut out, &frame[ETHERNET..][..548])
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
                .icmpv6_raw(2, 0, [0, 0, high, low])
                .write(&mut out, &frame[ETHERNET..][..1_232])
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
    // What the client's host says of the checksum is for the client's host.
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
    with_checksum(frame)
}

/// The frame with the header checksum that it should have.
fn with_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    let (header, _) = Ipv4Header::from_slice(&frame[ETHERNET..]).unwrap();
    frame[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    frame
}

/// A row of a packet without DF that goes on: so does the outer one, with the inner identification (0x1234)
/// plus the upper 16 bits of the addresses' product with 0x9e3779b97f4a7c15.
pub(crate) fn goes_on(row: Row<MapFixture>) -> Row<MapFixture> {
    let inner = &row.frame[ETHERNET..];
    let addresses = u128::from(u64::from_be_bytes(inner[12..20].try_into().unwrap()));
    let product = addresses * 0x9e37_79b9_7f4a_7c15 % (1 << 64);
    let identification = (0x1234 + (product >> 48)) as u16;
    let mut frame = row.expected.frame.clone().unwrap();
    frame[18..20].copy_from_slice(&identification.to_be_bytes());
    frame[20..22].copy_from_slice(&[0, 0]);
    let expected = Expected { frame: Some(with_checksum(frame)), ..row.expected };
    Row { expected, ..row }
}

/// What lets itself be fragmented goes on whole where the link carries it.
fn divisible() -> Vec<Row<MapFixture>> {
    let owner = (0, 0);
    let narrow = |mtu, link| fixture(4).member(0, 0, |owner| (owner.mtu, owner.link) = (mtu, link));
    let of = |length: usize| Packet::new(v4()).payload(&vec![0x5a; length - 40]);
    let mut rows = Vec::new();
    let mut row = |what: &str, fixture, flow: &Flow, frame| {
        let what = format!("too large and divisible, {what}");
        rows.push(goes_on(Row::sent(what, fixture, (flow, without_df(frame)), owner)));
    };
    row("a byte beyond the MTU", narrow(1_400, 1_500), &v4(), of(1_381).tcp("A"));
    row("all that the link carries", narrow(1_280, 1_500), &v4(), of(1_480).tcp("PA"));
    row("on a link of 9000 bytes", narrow(1_280, 9_000), &v4(), of(3_300).tcp("A"));
    row("a SYN with data", narrow(1_280, 1_500), &v4(), of(1_440).tcp("S"));
    row("with DSCP and CE", narrow(1_280, 1_500), &v4(), of(1_440).traffic_class(0xbb).tcp("A"));
    row("with hop limit 2", narrow(1_280, 1_500), &v4(), of(1_440).hop_limit(2).tcp("A"));
    let datagram = Packet::new(v4_udp()).payload(&[7; 1_400]);
    row("a datagram", narrow(1_280, 1_500), &v4_udp(), datagram.udp());
    row("with IP options", narrow(1_280, 1_500), &v4(), of(1_400).options(24).tcp("A"));
    let mut padded = of(1_400).tcp("A");
    padded.extend([0xee; 9]);
    row("with padding after it", narrow(1_280, 1_500), &v4(), padded);
    let elsewhere = narrow(1_280, 1_500).with(|fixture| {
        fixture.next_hops.insert(31, (GATEWAY, 5));
        fixture.interfaces.insert(5, [2, 0, 0, 0, 5, 1]);
        fixture.devices.insert(5);
        fixture.regions[0].members[0].next_hop = 31;
    });
    row("by another interface", elsewhere, &v4(), of(1_440).tcp("A"));
    let client = Flow { client: "203.0.113.250:9".parse().unwrap(), ..v4() };
    let list = |fixture: MapFixture| fixture.list(0, super::flows::tcp_hash(&client), [0, 1, 2, 3]);
    let frame = Packet::new(client).payload(&[1; 1_400]).tcp("A");
    row("of another client", list(narrow(1_280, 1_500)), &client, frame);
    rows
}

/// What lets itself be fragmented does not go on where somebody would have to do it here.
fn indivisible() -> Vec<Row<MapFixture>> {
    let of = |length: usize| Packet::new(v4()).payload(&vec![0x5a; length - 40]);
    let narrow = |tunnel, link| {
        fixture(tunnel).member(0, 0, |owner| (owner.mtu, owner.link) = (1_280, link))
    };
    let row = |what: &str, fixture, frame, verdict| {
        let what = format!("too large and divisible, {what}");
        Row::dropped(what, fixture, without_df(frame), verdict)
    };
    let no_source = narrow(4, 1_500).with(|fixture| fixture.sources.0 = [0; 4].into());
    let full = narrow(4, 1_400).with(|fixture| fixture.errors = Room::Full);
    let cannot = "cannot_fragment";
    vec![
        row("a byte more than the link carries", narrow(4, 1_500), of(1_481).tcp("A"), cannot),
        row("on a link of unknown size", narrow(4, 0), of(1_300).tcp("A"), cannot),
        row("in a tunnel of IPv6", narrow(6, 1_500), of(1_300).tcp("A"), cannot),
        row("a SYN beyond the link", narrow(4, 1_300), of(1_400).tcp("S"), cannot),
        row("when enough were told", full, of(1_440).tcp("A"), cannot),
        row("without a source of tunnels", no_source, of(1_300).tcp("A"), "no_source_address"),
    ]
}

/// Nobody is told, and the packet is dropped.
fn untold() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (what, room) in
        [("when enough were told", Room::Full), ("when nobody may be", Room::Closed)]
    {
        let fixture = fixture(6).with(|fixture| fixture.errors = room);
        let frame = Packet::new(v6()).payload(&[0; 1_500]).tcp("A");
        rows.push(Row::dropped(format!("too large, {what}"), fixture, frame, "too_large"));
    }
    let mut row = |what: &str, frame: Vec<u8>| {
        rows.push(Row::dropped(format!("too large, {what}"), fixture(4), frame, "too_large"));
    };
    for (what, client) in [
        ("from this network", "0.0.0.9:4711"),
        ("from the loopback network", "127.0.0.1:4711"),
        ("from a group", "224.0.0.1:4711"),
        ("from a reserved address", "240.0.0.1:4711"),
        ("from everybody", "255.255.255.255:4711"),
    ] {
        let flow = Flow { client: client.parse().unwrap(), ..v4() };
        row(what, Packet::new(flow).payload(&[0; 1_500]).tcp("A"));
    }
    for (what, client) in [
        ("from nowhere", "[::]:4711"),
        ("from ::1", "[::1]:4711"),
        ("from an IPv6 group", "[ff02::1]:4711"),
    ] {
        let flow = Flow { client: client.parse().unwrap(), ..v6() };
        row(what, Packet::new(flow).payload(&[0; 1_500]).tcp("A"));
    }
    rows
}
