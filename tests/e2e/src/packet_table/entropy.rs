//! What the outer header shows of a flow, so that networks and cards spread flows: an IPv4 source from the balancer's
//! prefix, the source port of GUE, the flow label. It is of the flow's own addresses and ports, whatever its service
//! goes by.

use std::net::Ipv4Addr;

use crate::packet_table::row::Row;
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{
    fixture::{Form, MapFixture},
    frames::{ETHERNET, Flow, Packet, extended, hex},
};

use super::{
    flows::{self, v4, v4_udp, v6},
    fragments,
};

const TCP: u8 = 6;
const UDP: u8 = 17;
const OWNER: (usize, u16) = (0, 0);
const PREFIX: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [prefixes_by_hand(), tunnels_by_hand(), affinities_by_hand(), packets(), of_fragments()]
        .concat()
}

/// The SYN of `by_hand`, whose hash ends in the bytes e8 e3 91 ca: these, as an address, have the host part.
fn prefixes_by_hand() -> Vec<Row<MapFixture>> {
    let heads = [
        ("10.64.0.0/24 gives .202", [10, 64, 0, 0], 24, "25b3 0a4000ca"),
        ("10.64.16.0/20 gives 17.202", [10, 64, 16, 0], 20, "14b3 0a4011ca"),
        ("10.0.0.0/8 gives 227.145.202", [10, 0, 0, 0], 8, "940f 0ae391ca"),
        ("10.64.0.6/31 gives .6", [10, 64, 0, 6], 31, "2677 0a400006"),
        ("10.64.0.7/32 is one address", [10, 64, 0, 7], 32, "2676 0a400007"),
    ];
    let rows = heads.map(|(what, first, bits, source)| {
        let mut rows = super::by_hand::rows();
        let row = rows.swap_remove(0);
        let head =
            format!("0200000000fe 020000000001 0800 4500 003c 0000 4000 40 04 {source} 0a010001");
        replaced(row, what, (first.into(), bits), Form::IpInIp, &head)
    });
    rows.into()
}

/// The other tunnels with a prefix: IPv6 in IPv4 by its own hash, GUE, and IPv6 tunnels, which have their label.
fn tunnels_by_hand() -> Vec<Row<MapFixture>> {
    let rows = super::by_hand::rows();
    let prefix = (PREFIX, 24);
    let gue = "0200000000fe 020000000001 0800
        4500 0048 0000 4000 40 11 259a 0a4000ca 0a010001  e3e8 17c0 0034 0000 0004 0000";
    let six_in_four = "0200000000fe 020000000001 0800
        4500 0050 0000 4000 40 29 2610 0a400034 0a010001";
    let four_in_six = "0200000000fe 020000000001 86dd
        6001e3e8 0028 04 40 fd000000000000000000000000000001 fd000001000000000000000000000001";
    vec![
        replaced(rows[0].clone(), "SYN in GUE", prefix, Form::Gue(6_080), gue),
        replaced(rows[2].clone(), "IPv6 in IPv4", prefix, Form::IpInIp, six_in_four),
        replaced(rows[1].clone(), "IPv4 in IPv6", prefix, Form::IpInIp, four_in_six),
    ]
}

/// A row of `by_hand` with another outer header.
fn replaced(
    row: Row<MapFixture>,
    what: &str,
    (first, bits): (Ipv4Addr, u8),
    form: Form,
    head: &str,
) -> Row<MapFixture> {
    let fixture = row.fixture.sending_from(first, bits).with(|fixture| fixture.form = form);
    let frame = row.expected.frame.expect("it is sent");
    let outer = if frame[ETHERNET] >> 4 == 4 { 20 } else { 40 };
    let after = [&hex(head)[..], &frame[ETHERNET + outer..]].concat();
    let expected = Expected { frame: Some(after), ..row.expected };
    Row { what: format!("entropy by hand: {what}"), fixture, expected, frame: row.frame }
}

/// Two connections of one client, of services by address and by port. Both go to one backend: by the formula the
/// addresses have slot 48,927, port 8080 has 62,884. Their own hashes end in 9d c0 21 0b, 1e d5 33 b0, cf d3 60 5f and
/// c9 ec 14 11.
fn affinities_by_hand() -> Vec<Row<MapFixture>> {
    let (by_address, by_port) = (("198.51.100.1:81", 48_927), ("198.51.100.3:8080", 62_884));
    let flows = [
        ("by address, client port 4711", 4_711, by_address, 15, 0x0b, 0xc09d),
        ("by address, client port 4712", 4_712, by_address, 15, 0xb0, 0xd51e),
        ("by port, client port 4711", 4_711, by_port, 18, 0x5f, 0xd3cf),
        ("by port, client port 4712", 4_712, by_port, 18, 0x11, 0xecc9),
    ];
    let mut rows = Vec::new();
    for (what, client_port, (vip, slot), service, last, source_port) in flows {
        let flow = Flow::new(&format!("192.0.2.9:{client_port}"), vip);
        let frame = Packet::new(flow).tcp("A");
        // 45 bytes, and 20 or 32 around them; the checksum is what the rest of the header leaves.
        let inner = Packet::new(flow).hop_limit(63).tcp("A");
        for (form, length, protocol) in [(Form::IpInIp, 65, 4), (Form::Gue(6_080), 77, 17)] {
            let sum: u32 = 0x4500 + length + 0x4000 + 0x4000 + protocol;
            let sum = sum + 0x0a40 + last + 0x0a01 + 0x0001;
            let checksum = 0xffff - (sum % 0xffff);
            let mut head = format!(
                "0200000000fe 020000000001 0800 4500 {length:04x} 0000 4000 40 {protocol:02x}
                    {checksum:04x} 0a40 00{last:02x} 0a010001"
            );
            if protocol == 17 {
                head += &format!("{source_port:04x} 17c0 0039 0000 0004 0000");
            }
            let fixture = MapFixture::new(4).sending_from(PREFIX, 24).with(|fixture| {
                fixture.form = form;
                fixture.regions[0].lists.insert(slot, [0, 1, 2, 3]);
            });
            let expected = Expected {
                verdict: "transmitted",
                frame: Some([hex(&head), inner[ETHERNET..].to_vec()].concat()),
                traffic: Some((service, 10, 0)),
            };
            let what = format!("entropy by hand: {what}, {form:?}");
            rows.push(Row { what, fixture, frame: frame.clone(), expected });
        }
    }
    rows
}

/// Whatever the packet is, and whether the fast path decides it or not.
fn packets() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let fixture = || flows::fixture(4).sending_from(PREFIX, 22);
    for (what, flow, frame) in [
        ("SYN", v4(), Packet::new(v4()).tcp("S")),
        ("FIN", v4(), Packet::new(v4()).tcp("FA")),
        ("over IPv6", v6(), Packet::new(v6()).tcp("A")),
        ("UDP", v4_udp(), Packet::new(v4_udp()).udp()),
        ("IP options", v4(), Packet::new(v4()).options(8).tcp("A")),
    ] {
        let what = format!("entropy: {what}");
        rows.push(Row::sent(what, fixture(), (&flow, frame), OWNER));
    }
    let remembered = fixture().remembering(v4(), TCP, (0, 3));
    let what = "entropy: a displaced connection";
    rows.push(Row::sent(what, remembered, (&v4(), Packet::new(v4()).tcp("A")), (0, 3)));
    let behind = extended(&Packet::new(v6()).tcp("A"), &[(60, "00 00 0104 00000000")]);
    let what = "entropy: behind options of IPv6";
    rows.push(Row::sent_as(what, fixture(), (&v6(), TCP, 0), behind, OWNER));
    // An error takes the way of the flow that it is about.
    let quoted = Packet::new(v4().answered()).tcp("A");
    let error = Packet::new(v4()).error(3, 4, [0, 0, 5, 0], &quoted[ETHERNET..]);
    rows.push(Row::sent_as("entropy: an ICMP error", fixture(), (&v4(), TCP, 0), error, OWNER));
    rows
}

/// Of a service that takes fragments, all packets between two addresses show the same: those of a datagram take one
/// way. By the formula the addresses' hash ends in a5 25 b2 7b, whatever the ports.
fn of_fragments() -> Vec<Row<MapFixture>> {
    let flow = Flow::new("192.0.2.9:4711", "198.51.100.4:53");
    let other = Flow { client: "192.0.2.9:9".parse().unwrap(), ..flow };
    let whole = Packet::new(flow).payload(&[7; 64]).udp();
    let rows = [
        ("whole datagram", flow, whole.clone()),
        ("whole datagram from another port", other, Packet::new(other).payload(&[7; 64]).udp()),
        ("first fragment", flow, fragments::fragment_v4(&whole, 0x2000)),
        ("later fragment", flow, fragments::later_v4(&flow, UDP, &[7; 72], 0x20b9)),
    ];
    let rows = rows.map(|(what, flow, frame)| {
        let fixture = fragments::fixture(&flow, UDP).sending_from(PREFIX, 24);
        let fixture = fixture.with(|fixture| fixture.form = Form::Gue(6_080));
        let what = format!("entropy, fragments: {what}");
        let row = Row::sent_as(what, fixture, (&flow, UDP, 0), frame, fragments::TO);
        let after = row.expected.frame.as_ref().expect("it is sent");
        let (source, port) = (&after[ETHERNET + 12..][..4], &after[ETHERNET + 20..][..2]);
        assert_eq!((source, port), (&[10, 64, 0, 0x7b][..], &[0xe5, 0xa5][..]), "{}", row.what);
        row
    });
    rows.into()
}
