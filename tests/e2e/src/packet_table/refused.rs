//! Packets for a service that must not be forwarded.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::MapFixture,
    frames::{Flow, Packet},
};

use super::flows::{fixture, v4, v4_udp, v6, v6_udp};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [flags(), fragments(), sizes(), sources()].concat()
}

fn version(flow: &Flow) -> u8 {
    if flow.vip.is_ipv4() { 4 } else { 6 }
}

fn flags() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4(), v6()] {
        for flags in ["SF", "SR", "SFA", "SRA", "SFR", "SFRPAUEC"] {
            let frame = Packet::new(flow).tcp(flags);
            let what = format!("IPv{} segment with flags {flags}", version(&flow));
            rows.push(Row::dropped(what, fixture(4), frame, "invalid_tcp_flags"));
        }
    }
    rows
}

/// The frame with its IPv4 flags and offset set to `word`.
fn fragment(mut frame: Vec<u8>, word: u16) -> Vec<u8> {
    frame[20..22].copy_from_slice(&word.to_be_bytes());
    frame
}

fn fragments() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (protocol, frame) in
        [("TCP", Packet::new(v4()).tcp("A")), ("UDP", Packet::new(v4_udp()).udp())]
    {
        let what = |which| format!("{which} fragment of {protocol}");
        let (first, later) = (fragment(frame.clone(), 0x2000), fragment(frame.clone(), 0x2001));
        rows.push(Row::dropped(what("first"), fixture(4), first, "fragment"));
        rows.push(Row::passed(what("later"), fixture(4), later, "later_fragment"));
        let last = fragment(frame, 0x0b50);
        rows.push(Row::passed(what("last"), fixture(4), last, "later_fragment"));
    }
    let mut short = fragment(Packet::new(v4()).tcp("A"), 0x0b50);
    short.truncate(14 + 24);
    short[16..18].copy_from_slice(&24_u16.to_be_bytes());
    let what = "last fragment shorter than a TCP header";
    rows.push(Row::passed(what, fixture(4), short, "later_fragment"));
    rows
}

/// Fits to the byte, in each of the four forms. What does not is in `too_large`.
fn sizes() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (tunnel, overhead) in [(4, 20), (6, 40)] {
        for (flow, headers) in [(v4(), 40), (v6(), 60)] {
            let frame = |payload: u16| Packet::new(flow).payload(&vec![7; payload.into()]).tcp("A");
            for mtu in [1_500, 1_280, 900] {
                let fixture = fixture(tunnel).member(0, 0, |owner| owner.mtu = mtu);
                let fits = (&flow, frame(mtu - overhead - headers));
                let what = format!("IPv{} in IPv{tunnel}, MTU {mtu}: fits", version(&flow));
                rows.push(Row::sent(what, fixture, fits, (0, 0)));
            }
        }
    }
    let mut padded = Packet::new(v4()).payload(&[]).tcp("A");
    padded.extend([0; 60]);
    let fixture = fixture(4).member(0, 0, |owner| owner.mtu = 60);
    rows.push(Row::sent("padding is no part of the size", fixture, (&v4(), padded), (0, 0)));
    rows
}

fn sources() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for flow in [v4_udp(), v6_udp()] {
        let frame = || Packet::new(flow).udp();
        let without_v4 =
            |tunnel| fixture(tunnel).with(|fixture| fixture.sources.0 = Ipv4Addr::UNSPECIFIED);
        let without_v6 =
            |tunnel| fixture(tunnel).with(|fixture| fixture.sources.1 = Ipv6Addr::UNSPECIFIED);
        let what = |tunnel| format!("IPv{} without a source of IPv{tunnel}", version(&flow));
        rows.push(Row::dropped(what(4), without_v4(4), frame(), "no_source_address"));
        rows.push(Row::dropped(what(6), without_v6(6), frame(), "no_source_address"));
        let what = |tunnel| format!("IPv{} needs no source but IPv{tunnel}", version(&flow));
        rows.push(Row::sent(what(4), without_v6(4), (&flow, frame()), (0, 0)));
        rows.push(Row::sent(what(6), without_v4(6), (&flow, frame()), (0, 0)));
    }
    rows
}
