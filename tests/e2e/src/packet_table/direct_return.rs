//! Packets that go to backends without a tunnel.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packet_table::row::Row;
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{
    fixture::{Form, GATEWAY, MapFixture, Room},
    frames::{Flow, Packet, extended, hex, tagged},
};

use super::{
    flows::{self, v4, v4_udp, v6, v6_udp},
    last_hop, oversize,
};

const OWNER: (usize, u16) = (0, 0);

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [by_hand(), packets(), ways(), sizes()].concat()
}

/// Backends told by an address of a version, without a source address of tunnels.
fn fixture(version: u8) -> MapFixture {
    flows::fixture(version).with(|fixture| {
        fixture.form = Form::Direct;
        fixture.sources = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    })
}

/// Two MACs are another, and the TTL with its checksum.
fn by_hand() -> Vec<Row<MapFixture>> {
    let packet = |ttl: &str, checksum: &str| {
        format!(
            "0800 4500 0028 0001 4000 {ttl} 06 {checksum} c0000209 c6336401
            1267 0050 00000001 00000000 5002 2000 90ec 0000"
        )
    };
    let before = hex(&format!("020000000001 02000000000c {}", packet("40", "4e91")));
    let after = hex(&format!("0200000000fe 020000000001 {}", packet("3f", "4f91")));
    let traffic = Some((11, 10, 1));
    let expected = Expected { verdict: "transmitted", frame: Some(after), traffic };
    vec![Row { what: "direct, by hand".into(), fixture: fixture(4), frame: before, expected }]
}

/// Whatever the packet and whatever the version of the backend's address is.
fn packets() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for version in [4, 6] {
        for (what, flow, frame) in [
            ("SYN over IPv4", v4(), Packet::new(v4()).tcp("S")),
            ("ACK over IPv6", v6(), Packet::new(v6()).tcp("A")),
            ("UDP over IPv4", v4_udp(), Packet::new(v4_udp()).udp()),
            ("UDP over IPv6", v6_udp(), Packet::new(v6_udp()).udp()),
            ("hop limit 2 over IPv4", v4(), Packet::new(v4()).hop_limit(2).tcp("A")),
            ("hop limit 255 over IPv6", v6(), Packet::new(v6()).hop_limit(255).tcp("A")),
            ("IP options", v4(), Packet::new(v4()).options(40).traffic_class(0xbb).tcp("A")),
        ] {
            let what = format!("direct, {what}, backend of IPv{version}");
            rows.push(Row::sent(what, fixture(version), (&flow, frame), OWNER));
        }
    }
    let mut padded = Packet::new(v4()).payload(&[]).tcp("A");
    padded.extend([0xee; 6]);
    rows.push(Row::sent("direct, padding after it", fixture(4), (&v4(), padded), OWNER));
    let options = [(60, "00 01 01 0c 000000000000000000000000")];
    let frame = extended(&Packet::new(v6()).tcp("A"), &options);
    rows.push(Row::sent_as("direct, behind options", fixture(4), (&v6(), 6, 0), frame, OWNER));
    let last = Packet::new(v4()).hop_limit(1).tcp("A");
    let told = last_hop::answer(&v4(), &last);
    let what = "direct, hop limit 1";
    rows.push(Row::changed(what, fixture(4), (last, told), "answered_time_exceeded"));
    let syn = Packet::new(v4()).tcp("S");
    let behind = fixture(4).member(0, 0, |owner| owner.on_link = false);
    rows.push(Row::dropped("direct, behind a gateway", behind, syn.clone(), "next_hop_unresolved"));
    // A switch floods what it has no port for: another balancer's frame.
    let flooded = [&GATEWAY[..], &syn[6..]].concat();
    rows.push(Row::passed("direct, on its way already", fixture(4), flooded, "not_ours"));
    rows
}

/// Two arms, and tags.
fn ways() -> Vec<Row<MapFixture>> {
    const OTHER: u16 = 5;
    let elsewhere = |fixture: MapFixture| {
        fixture.with(|fixture| {
            fixture.next_hops.insert(31, (GATEWAY, OTHER));
            fixture.interfaces.insert(OTHER, [2, 0, 0, 0, 5, 1]);
            fixture.devices.insert(OTHER.into());
            fixture.regions[0].members[0].next_hop = 31;
        })
    };
    let packet = || Packet::new(v6()).tcp("PA");
    let plain = |what: &str, fixture| {
        Row::sent(format!("direct, {what}"), fixture, (&v6(), packet()), OWNER)
    };
    let tags = |row: Row<MapFixture>, came: &[[u16; 2]], leaves: &[[u16; 2]]| {
        let frame = row.expected.frame.map(|frame| tagged(&frame, leaves));
        let expected = Expected { frame, ..row.expected };
        Row { frame: tagged(&row.frame, came), expected, ..row }
    };
    let one = [[0x8100, 42]];
    let two = [[0x88a8, 7], [0x8100, 0xb001]];
    let set = |fixture: MapFixture, interface| {
        fixture.with(|fixture| fixture.vlans.extend([(interface, 20)]))
    };
    vec![
        plain("by another interface", elsewhere(fixture(4))),
        tags(plain("with a tag", fixture(4)), &one, &one),
        tags(plain("with two tags", fixture(4)), &two, &two),
        tags(plain("with a tag, by another interface", elsewhere(fixture(4))), &one, &[]),
        tags(plain("with a VLAN set", set(fixture(4), 1)), &one, &[[0x8100, 20]]),
        tags(plain("untagged, with a VLAN set", set(fixture(4), 1)), &[], &[[0x8100, 20]]),
    ]
}

/// All that the link takes fits; of what does not, the sender is told.
fn sizes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let frame = |flow: Flow, headers: usize, length: usize| {
        Packet::new(flow).payload(&vec![7; length - headers]).tcp("A")
    };
    for (flow, headers) in [(v4(), 40), (v6(), 60)] {
        let what = format!("direct, {} bytes over IPv{}", 1_500, if headers == 40 { 4 } else { 6 });
        let fits = frame(flow, headers, 1_500);
        rows.push(Row::sent(what.clone(), fixture(4), (&flow, fits), OWNER));
        let large = frame(flow, headers, 1_501);
        let after = oversize::answer(&flow, &large, 1_500);
        let what = format!("{what} and one");
        rows.push(Row::changed(what, fixture(6), (large, after), "answered_too_large"));
    }
    let large = frame(v4(), 40, 1_501);
    let full = fixture(4).with(|fixture| fixture.errors = Room::Full);
    rows.push(Row::dropped(
        "direct, too large, when the limit is reached",
        full,
        large.clone(),
        "too_large",
    ));
    rows.push(Row::dropped(
        "direct, too large without DF",
        fixture(4),
        oversize::without_df(large),
        "too_large",
    ));
    rows
}
