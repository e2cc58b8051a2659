//! Packets that go to backends in GUE.

use anyhow::{Context as _, Result, ensure};
use etherparse::Ipv4Header;

use crate::packet_table::row::Row;
use lb_tests::packets::expected::Expected;
use lb_tests::packets::{
    balancer::Balancer,
    fixture::{Form, GATEWAY, MapFixture, Room},
    frames::{ETHERNET, Flow, Packet, extended, hex},
};

use super::{
    balancer_rows,
    flows::{self, v4, v4_udp, v6, v6_udp},
    oversize,
};

const OWNER: (usize, u16) = (0, 0);
/// The registered port.
const PORT: u16 = 6_080;
/// UDP and GUE.
const SHIM: u16 = 12;

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [by_hand(), packets(), sizes(), unfragmented(), refused()].concat()
}

fn in_gue(fixture: MapFixture) -> MapFixture {
    fixture.with(|fixture| fixture.form = Form::Gue(PORT))
}

fn fixture(tunnel: u8) -> MapFixture {
    in_gue(flows::fixture(tunnel))
}

/// The packets of `by_hand`, with what stands between them and their outer headers written out too.
fn by_hand() -> Vec<Row<MapFixture>> {
    // The last 14 bits of the flows' hashes, ..ca91e3e8 and ..34c32d9d, behind two that are set.
    let v4 = "e3e8 17c0 0034 0000 0004 0000";
    let v6 = "ed9d 17c0 0048 0000 0029 0000";
    let heads = [
        "0200000000fe 020000000001 0800 4500 0048 0000 4000 40 11 26a3 0a000001 0a010001",
        "0200000000fe 020000000001 86dd 6001e3e8 0034 11 40
            fd000000000000000000000000000001 fd000001000000000000000000000001",
        "0200000000fe 020000000001 0800 4500 005c 0000 4000 40 11 268f 0a000001 0a010001",
        "0200000000fe 020000000001 86dd 60032d9d 0048 11 40
            fd000000000000000000000000000001 fd000001000000000000000000000001",
    ];
    let rows = super::by_hand::rows().into_iter().zip(heads).zip([v4, v4, v6, v6]);
    rows.map(|((row, head), shim)| {
        let frame = row.expected.frame.expect("it is sent");
        let outer = hex(head).len();
        let previous = outer - ETHERNET;
        let after = [&hex(head)[..], &hex(shim), &frame[ETHERNET + previous..]].concat();
        let expected = Expected { frame: Some(after), ..row.expected };
        Row { what: format!("{}, in GUE", row.what), fixture: in_gue(row.fixture), expected, ..row }
    })
    .collect()
}

/// Whatever the packet is.
fn packets() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let mut row = |what: &str, fixture: MapFixture, flow: Flow, frame| {
        rows.push(Row::sent(format!("GUE, {what}"), fixture, (&flow, frame), OWNER));
    };
    for tunnel in [4, 6] {
        let name = |what: &str| format!("{what} in IPv{tunnel}");
        for (what, flow, frame) in [
            ("SYN over IPv4", v4(), Packet::new(v4()).tcp("S")),
            ("ACK over IPv6", v6(), Packet::new(v6()).tcp("A")),
            ("UDP over IPv4", v4_udp(), Packet::new(v4_udp()).udp()),
            ("UDP over IPv6", v6_udp(), Packet::new(v6_udp()).udp()),
            ("DSCP 46 and ECT(0)", v4(), Packet::new(v4()).traffic_class(0xba).tcp("A")),
            ("CE over IPv6", v6(), Packet::new(v6()).traffic_class(3).tcp("A")),
            ("IP options", v4(), Packet::new(v4()).options(40).tcp("A")),
            ("no payload", v4(), Packet::new(v4()).payload(&[]).tcp("A")),
            ("hop limit 2", v6(), Packet::new(v6()).hop_limit(2).tcp("A")),
        ] {
            row(&name(what), fixture(tunnel), flow, frame);
        }
        let mut padded = Packet::new(v4()).payload(&[]).tcp("A");
        padded.extend([0xee; 6]);
        row(&name("padding after it"), fixture(tunnel), v4(), padded);
        let elsewhere = fixture(tunnel).with(|fixture| {
            fixture.next_hops.insert(31, (GATEWAY, 5));
            fixture.interfaces.insert(5, [2, 0, 0, 0, 5, 1]);
            fixture.devices.insert(5);
            fixture.regions[0].members[0].next_hop = 31;
        });
        row(&name("by another interface"), elsewhere, v6(), Packet::new(v6()).tcp("PA"));
    }
    // One flow has one source port, whatever its packets are; another has another.
    for flags in ["SA", "FA", "R", "PAUEC"] {
        row(&format!("flags {flags}"), fixture(4), v4(), Packet::new(v4()).tcp(flags));
    }
    let other = Flow { client: "192.0.2.9:4712".parse().unwrap(), ..v4() };
    let listed = fixture(4).list(0, flows::tcp_hash(&other), [0, 1, 2, 3]);
    row("the client's next port", listed, other, Packet::new(other).tcp("A"));
    let by_address = Flow { vip: "198.51.100.1:81".parse().unwrap(), ..v4() };
    for port in [4_711, 4_712] {
        let mut flow = by_address;
        flow.client.set_port(port);
        let hash = lb_tests::packets::flow_hash::of_service(
            &flow,
            6,
            1,
            lb_tests::packets::fixture::HASH_KEY,
        );
        let fixture = fixture(4).list(0, hash, [0, 1, 2, 3]);
        let what = format!("by address, client port {port}");
        row(&what, fixture, flow, Packet::new(flow).tcp("A"));
    }
    for port in [4_755, 61_080] {
        let fixture = flows::fixture(6).with(|fixture| fixture.form = Form::Gue(port));
        row(&format!("to port {port}"), fixture, v6(), Packet::new(v6()).tcp("A"));
    }
    let (flow, packet) = (v6(), Packet::new(v6()).tcp("A"));
    let options = extended(&packet, &[(60, "00 01 01 0c 000000000000000000000000")]);
    rows.push(Row::sent_as("GUE, behind options", fixture(4), (&flow, 6, 0), options, OWNER));
    rows
}

/// What fits, to the byte, and what is told of what does not.
fn sizes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (tunnel, outer) in [(4, 20), (6, 40)] {
        for (flow, headers) in [(v4(), 40), (v6(), 60)] {
            let version = if flow.vip.is_ipv4() { 4 } else { 6 };
            let frame = |length: u16| {
                Packet::new(flow).payload(&vec![7; usize::from(length - headers)]).tcp("A")
            };
            for mtu in [1_500, 1_332] {
                let room = mtu - outer - SHIM;
                let fixture = || fixture(tunnel).member(0, 0, |owner| owner.mtu = mtu);
                let what = format!("GUE, IPv{version} in IPv{tunnel}, MTU {mtu}");
                let (fits, too_many) = (frame(room), frame(room + 1));
                rows.push(Row::sent(format!("{what}: fits"), fixture(), (&flow, fits), OWNER));
                let after = oversize::answer(&flow, &too_many, room);
                let what = format!("{what}: one byte too many");
                rows.push(Row::changed(what, fixture(), (too_many, after), "answered_too_large"));
            }
        }
    }
    rows
}

/// A packet without DF is dropped if it does not fit with GUE's header.
fn unfragmented() -> Vec<Row<MapFixture>> {
    let of = |length: usize| {
        let frame = Packet::new(v4()).payload(&vec![0x5a; length - 40]).tcp("A");
        oversize::without_df(frame)
    };
    let dropped = |what: &str, fixture, length| {
        Row::dropped(format!("GUE, too large without DF, {what}"), fixture, of(length), "too_large")
    };
    vec![
        Row::sent("GUE, without DF, as much as fits", fixture(4), (&v4(), of(1_468)), OWNER),
        dropped("by one byte", fixture(4), 1_469),
        dropped("in a tunnel of IPv6", fixture(6), 1_449),
    ]
}

fn refused() -> Vec<Row<MapFixture>> {
    let no_source = fixture(4).with(|fixture| fixture.sources.0 = [0; 4].into());
    let unanswered = fixture(6).with(|fixture| fixture.errors = Room::Full);
    let large = Packet::new(v6()).payload(&[0; 1_400]).tcp("A");
    vec![
        Row::dropped(
            "GUE, without a source of IPv4",
            no_source,
            Packet::new(v4()).tcp("A"),
            "no_source_address",
        ),
        Row::dropped("GUE, too large, when the limit is reached", unanswered, large, "too_large"),
    ]
}

/// Each row that a backend gets in IP alone, in GUE with as much more room: the same frame, but for the
/// twelve bytes and what the outer header says of them.
pub(crate) fn makes_no_difference() -> Result<()> {
    const TO: u16 = 4_711;
    let mut balancer = Balancer::load()?;
    let mut seen = 0;
    for row in balancer_rows() {
        if row.expected.traffic.is_none() || row.fixture.form != Form::IpInIp {
            continue;
        }
        let fixture = row.fixture.clone().with(|fixture| {
            fixture.form = Form::Gue(TO);
            for member in fixture.regions.iter_mut().flat_map(|region| &mut region.members) {
                member.mtu += SHIM;
            }
        });
        balancer.show(&fixture)?;
        let ran = balancer.run(&row.frame)?;
        let expected = row.expected.frame.as_ref().context("it is sent")?;
        differs_by_gue(expected, &ran.frame, TO).with_context(|| row.what.clone())?;
        seen += 1;
    }
    ensure!(seen > 200, "only {seen} rows");
    Ok(())
}

/// Checks that `frame` is what `plain` is, with UDP and GUE in it.
fn differs_by_gue(plain: &[u8], frame: &[u8], to: u16) -> Result<()> {
    let mut at = 12;
    while let [0x81, 0x00] | [0x88, 0xa8] = plain[at..at + 2] {
        at += 4;
    }
    let at = at + 2;
    let mut outer = plain[at..].to_vec();
    let inner = if outer[0] >> 4 == 4 {
        let (mut header, _) = Ipv4Header::from_slice(&outer)?;
        let inner = header.protocol.0;
        header.protocol.0 = 17;
        header.total_len += SHIM;
        header.header_checksum = header.calc_header_checksum();
        outer[..20].copy_from_slice(&header.to_bytes());
        inner
    } else {
        let inner = std::mem::replace(&mut outer[6], 17);
        let length = u16::from_be_bytes([outer[4], outer[5]]) + SHIM;
        outer[4..6].copy_from_slice(&length.to_be_bytes());
        inner
    };
    let header = if outer[0] >> 4 == 4 { 20 } else { 40 };
    let behind = at + header;
    let shim = &frame[behind..behind + usize::from(SHIM)];
    let without = [&frame[..behind], &frame[behind + usize::from(SHIM)..]].concat();
    ensure!(without == [&plain[..at], &outer].concat(), "{frame:02x?}\nwithout GUE:\n{plain:02x?}");
    let word = |at: usize| u16::from_be_bytes([shim[at], shim[at + 1]]);
    ensure!(word(0) >= 49_152, "source port {}", word(0));
    // Over IPv6 the outer flow label is of the same hash.
    let label = u16::from_be_bytes([outer[2], outer[3]]);
    ensure!(header == 20 || word(0) == label | 0xc000, "source port {:x}: {label:x}", word(0));
    let ip = &outer[header..];
    let ip_length = match ip[0] >> 4 {
        4 => u16::from_be_bytes([ip[2], ip[3]]),
        _ => u16::from_be_bytes([ip[4], ip[5]]) + 40,
    };
    ensure!((word(2), word(4), word(6)) == (to, ip_length + SHIM, 0), "UDP: {shim:02x?}");
    ensure!(shim[8..] == [0, inner, 0, 0], "GUE: {shim:02x?}");
    Ok(())
}
