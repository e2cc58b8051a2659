//! What is the host's own: it passes untouched.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::MapFixture,
    frames::{Flow, Packet, hex},
};

use super::flows::{fixture, v4, v4_udp, v6};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [other_services(), other_protocols(), other_frames()].concat()
}

fn passed(what: &str, frame: Vec<u8>, verdict: &'static str) -> Row<MapFixture> {
    Row::passed(what, fixture(4), frame, verdict)
}

/// TCP and UDP for nobody's service.
fn other_services() -> Vec<Row<MapFixture>> {
    let to = |vip: &str| match vip.starts_with('[') {
        true => Packet::new(Flow::new("[2001:db8:c::9]:4711", vip)),
        false => Packet::new(Flow::new("192.0.2.9:4711", vip)),
    };
    let rows = [
        ("another port", to("198.51.100.1:82").tcp("S")),
        ("the port with its bytes swapped", to("198.51.100.1:20480").tcp("S")),
        ("a TCP service's port, by UDP", to("198.51.100.1:80").udp()),
        ("a UDP service's port, by TCP", to("198.51.100.1:53").tcp("S")),
        ("another address", to("198.51.100.2:80").tcp("S")),
        ("the VIP's bytes reversed", to("1.100.51.198:80").tcp("S")),
        ("another IPv6 address", to("[2001:db8:80::2]:80").tcp("S")),
        ("another IPv6 port", to("[2001:db8:80::1]:8080").tcp("S")),
        ("an IPv4 VIP as a v4-mapped IPv6 address", to("[::ffff:198.51.100.1]:80").tcp("S")),
        ("from a VIP", Packet::new(Flow::new("198.51.100.1:80", "192.0.2.9:4711")).tcp("SA")),
        ("another port, SYN and FIN", to("198.51.100.1:82").tcp("SF")),
        ("another port, TTL 1", to("198.51.100.1:82").hop_limit(1).tcp("A")),
        ("another port, with IP options", to("198.51.100.1:82").options(8).tcp("A")),
        (
            "another port, larger than any tunnel",
            to("198.51.100.1:82").payload(&[0; 2_900]).tcp("A"),
        ),
    ];
    rows.map(|(what, frame)| passed(what, frame, "not_ours")).into()
}

fn other_protocols() -> Vec<Row<MapFixture>> {
    let (v4, v6) = (Packet::new(v4()), Packet::new(v6()));
    let inner = &Packet::new(v4_udp()).udp()[14..];
    let rows = [
        ("IGMP", v4.clone().payload(&[0x16, 0, 0, 0, 0, 0, 0, 0]).other(2)),
        ("GRE to the VIP", v4.clone().payload(&[0; 40]).other(47)),
        ("SCTP to the VIP's port", v4.clone().payload(&[0, 1, 0, 80, 0, 0, 0, 0]).other(132)),
        ("IPIP to the VIP", v4.clone().payload(inner).other(4)),
        ("IPv6 without anything after it", v6.payload(&[]).other(59)),
        ("IPv4 without anything after it", v4.payload(&[]).other(255)),
    ];
    rows.map(|(what, frame)| passed(what, frame, "other_protocol")).into()
}

fn other_frames() -> Vec<Row<MapFixture>> {
    let tagged = |tag: &[u8]| {
        let frame = Packet::new(v4()).tcp("S");
        [&frame[..12], tag, &frame[12..]].concat()
    };
    let arp = hex("ffffffffffff 02000000000c 0806
                   0001 0800 06 04 0001 02000000000c c0000209 000000000000 c6336401");
    let lldp = hex("0180c200000e 02000000000c 88cc 0207 0402000000000c 0403 076c6f 0602 0078 0000");
    let stp = hex("0180c2000000 02000000000c 0026 424203 0000000000");
    let ethernet_only = Packet::new(v4()).tcp("S")[..14].to_vec();
    let mut unknown = ethernet_only.clone();
    unknown[12..14].copy_from_slice(&[0x12, 0x34]);
    let rows = [
        ("ARP for the VIP", arp),
        ("LLDP", lldp),
        ("an 802.3 frame with a length", stp),
        ("tagged three times", tagged(&[0x88, 0xa8, 0, 0x2a, 0x81, 0, 0, 0x2b, 0x81, 0, 0, 0x2c])),
        ("tagged by the EtherType of old", tagged(&[0x91, 0x00, 0x00, 0x2a])),
        ("a tag and no more", tagged(&[0x81, 0x00, 0x00, 0x2a])[..16].to_vec()),
        ("a tag, a byte short of an EtherType", tagged(&[0x81, 0, 0, 0x2a])[..17].to_vec()),
        ("half of a second tag", tagged(&[0x81, 0, 0, 0x2a, 0x81, 0, 0, 0x2b])[..20].to_vec()),
        ("MPLS", tagged(&[0x88, 0x47, 0x00, 0x01, 0x01, 0x40])),
        ("an unknown EtherType and no more", unknown),
        (
            "a UDP datagram behind PPPoE",
            [
                &ethernet_only[..12],
                &hex("8864 1100 0001 0024 0021"),
                &Packet::new(v4_udp()).udp()[14..],
            ]
            .concat(),
        ),
    ];
    rows.map(|(what, frame)| passed(what, frame, "not_ip")).into()
}
