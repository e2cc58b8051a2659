//! Packets that go to backends without a tunnel.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packets::{
    frames::{Flow, Packet, extended, hex, tagged},
    row::{Expected, Row},
    scene::{Form, GATEWAY, Room, Scene},
};

use super::{
    flows::{self, v4, v4_udp, v6, v6_udp},
    too_large,
};

const OWNER: (usize, u16) = (0, 0);

pub(crate) fn rows() -> Vec<Row<Scene>> {
    [by_hand(), packets(), ways(), sizes()].concat()
}

/// Backends told by an address of a version, without a source address of tunnels.
fn scene(version: u8) -> Scene {
    flows::scene(version).with(|scene| {
        scene.form = Form::Direct;
        scene.sources = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    })
}

/// Two MACs are another, and the TTL with its checksum.
fn by_hand() -> Vec<Row<Scene>> {
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
    vec![Row { what: "direct, by hand".into(), scene: scene(4), frame: before, expected }]
}

/// Whatever the packet and whatever the version of the backend's address is.
fn packets() -> Vec<Row<Scene>> {
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
            rows.push(Row::sent(what, scene(version), (&flow, frame), OWNER));
        }
    }
    let mut padded = Packet::new(v4()).payload(&[]).tcp("A");
    padded.extend([0xee; 6]);
    rows.push(Row::sent("direct, padding after it", scene(4), (&v4(), padded), OWNER));
    let options = [(60, "00 01 01 0c 000000000000000000000000")];
    let frame = extended(&Packet::new(v6()).tcp("A"), &options);
    rows.push(Row::sent_as("direct, behind options", scene(4), (&v6(), 6, 0), frame, OWNER));
    let last = Packet::new(v4()).hop_limit(1).tcp("A");
    rows.push(Row::dropped("direct, hop limit 1", scene(4), last, "hop_limit_exceeded"));
    let syn = Packet::new(v4()).tcp("S");
    let behind = scene(4).member(0, 0, |owner| owner.on_link = false);
    rows.push(Row::dropped("direct, behind a gateway", behind, syn.clone(), "next_hop_unresolved"));
    // A switch floods what it has no port for: another balancer's frame.
    let flooded = [&GATEWAY[..], &syn[6..]].concat();
    rows.push(Row::passed("direct, on its way already", scene(4), flooded, "not_ours"));
    rows
}

/// Two arms, and tags.
fn ways() -> Vec<Row<Scene>> {
    const OTHER: u16 = 5;
    let elsewhere = |scene: Scene| {
        scene.with(|scene| {
            scene.next_hops.insert(31, (GATEWAY, OTHER));
            scene.interfaces.insert(OTHER, [2, 0, 0, 0, 5, 1]);
            scene.devices.insert(OTHER.into());
            scene.regions[0].members[0].next_hop = 31;
        })
    };
    let packet = || Packet::new(v6()).tcp("PA");
    let plain =
        |what: &str, scene| Row::sent(format!("direct, {what}"), scene, (&v6(), packet()), OWNER);
    let tags = |row: Row<Scene>, came: &[[u16; 2]], leaves: &[[u16; 2]]| {
        let frame = row.expected.frame.map(|frame| tagged(&frame, leaves));
        let expected = Expected { frame, ..row.expected };
        Row { frame: tagged(&row.frame, came), expected, ..row }
    };
    let one = [[0x8100, 42]];
    let two = [[0x88a8, 7], [0x8100, 0xb001]];
    let set = |scene: Scene, interface| scene.with(|scene| scene.vlans.extend([(interface, 20)]));
    vec![
        plain("by another interface", elsewhere(scene(4))),
        tags(plain("with a tag", scene(4)), &one, &one),
        tags(plain("with two tags", scene(4)), &two, &two),
        tags(plain("with a tag, by another interface", elsewhere(scene(4))), &one, &[]),
        tags(plain("with a VLAN set", set(scene(4), 1)), &one, &[[0x8100, 20]]),
        tags(plain("untagged, with a VLAN set", set(scene(4), 1)), &[], &[[0x8100, 20]]),
    ]
}

/// All that the link takes fits; of what does not, the sender is told.
fn sizes() -> Vec<Row<Scene>> {
    let mut rows = Vec::new();
    let frame = |flow: Flow, headers: usize, length: usize| {
        Packet::new(flow).payload(&vec![7; length - headers]).tcp("A")
    };
    for (flow, headers) in [(v4(), 40), (v6(), 60)] {
        let what = format!("direct, {} bytes over IPv{}", 1_500, if headers == 40 { 4 } else { 6 });
        let fits = frame(flow, headers, 1_500);
        rows.push(Row::sent(what.clone(), scene(4), (&flow, fits), OWNER));
        let large = frame(flow, headers, 1_501);
        let after = too_large::answer(&flow, &large, 1_500);
        let what = format!("{what} and one");
        rows.push(Row::changed(what, scene(6), (large, after), "answered_too_large"));
    }
    let large = frame(v4(), 40, 1_501);
    let full = scene(4).with(|scene| scene.errors = Room::Full);
    rows.push(Row::dropped(
        "direct, too large, when enough were told",
        full,
        large.clone(),
        "too_large",
    ));
    let divisible = too_large::without_df(large);
    rows.push(Row::dropped(
        "direct, too large and divisible",
        scene(4),
        divisible,
        "cannot_fragment",
    ));
    rows
}
