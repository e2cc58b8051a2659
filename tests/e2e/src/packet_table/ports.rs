//! Services of any port, and flows that are hashed by the service's port alone.

use std::net::{IpAddr, Ipv4Addr};

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{HASH_KEY, MapFixture, NONE},
    flow_hash,
    frames::{ETHERNET, Flow, Packet},
    layout,
};

use super::flows::{tcp_hash, udp_hash};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [by_port(), beside(), for_nobody(), errors()].concat()
}

/// Slots that name one member alone.
fn slots(hashes: &[(flow_hash::Hash, u16)]) -> MapFixture {
    let list = |fixture: MapFixture, (hash, rank): &(_, _)| {
        fixture.list(0, *hash, [*rank, NONE, NONE, NONE])
    };
    hashes.iter().fold(MapFixture::new(4), list)
}

fn of_port(port: u16) -> flow_hash::Hash {
    flow_hash::of_port(port, HASH_KEY)
}

/// A port has one backend, whoever asks, over either IP version.
fn by_port() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for port in [1, 80, 7_777, 65_535] {
        for (client, vip) in [
            ("192.0.2.9:1000", "198.51.100.3"),
            ("203.0.113.200:50000", "198.51.100.3"),
            ("[2001:db8:c::9]:1000", "[2001:db8:80::3]"),
        ] {
            let flow = Flow::new(client, &format!("{vip}:{port}"));
            for flags in ["S", "A"] {
                let what = format!("by port, {flags} from {client} to {}", flow.vip);
                let frame = Packet::new(flow).tcp(flags);
                rows.push(Row::sent(what, slots(&[(of_port(port), 4)]), (&flow, frame), (0, 4)));
            }
        }
    }
    rows
}

/// A port of another service is that one's; the rest is that of any.
fn beside() -> Vec<Row<MapFixture>> {
    let exact = Flow::new("192.0.2.9:1000", "198.51.100.3:443");
    let near = Flow::new("192.0.2.9:1000", "198.51.100.3:444");
    let udp = Flow::new("[2001:db8:c::9]:1000", "[2001:db8:80::3]:4433");
    let zero = Flow::new("192.0.2.9:1000", "198.51.100.3:0");
    let fixture = || {
        slots(&[
            (tcp_hash(&exact), 1),
            (of_port(443), 2),
            (of_port(444), 3),
            (udp_hash(&udp), 5),
            (of_port(0), 6),
        ])
    };
    let syn = |flow: Flow| Packet::new(flow).tcp("S");
    vec![
        Row::sent("a port of its own beside any", fixture(), (&exact, syn(exact)), (0, 1)),
        Row::sent("any port beside one", fixture(), (&near, syn(near)), (0, 3)),
        Row::sent("any port, by connection", fixture(), (&udp, Packet::new(udp).udp()), (0, 5)),
        Row::sent("any port is port 0 too", fixture(), (&zero, syn(zero)), (0, 6)),
    ]
}

fn for_nobody() -> Vec<Row<MapFixture>> {
    let to = |vip: &str| Packet::new(Flow::new("192.0.2.9:1000", vip));
    let shared = format!("{}:80", neighbour());
    vec![
        Row::passed(
            "any port of TCP, by UDP",
            MapFixture::new(4),
            to("198.51.100.3:80").udp(),
            "not_ours",
        ),
        Row::passed(
            "an address with the bit of one with any port",
            MapFixture::new(4),
            to(&shared).tcp("S"),
            "not_ours",
        ),
        Row::passed(
            "port 0 of an address with fragments alone",
            MapFixture::new(4),
            to("198.51.100.4:0").udp(),
            "not_ours",
        ),
        Row::passed(
            "another port of an address with fragments",
            MapFixture::new(4),
            to("198.51.100.4:54").udp(),
            "not_ours",
        ),
    ]
}

/// An address whose bit is that of the VIP with any port.
fn neighbour() -> Ipv4Addr {
    let bit = layout::any_port(IpAddr::from([198, 51, 100, 3]));
    let mut addresses = (0..=u16::MAX).map(|low| {
        let [high, low] = low.to_be_bytes();
        Ipv4Addr::new(198, 18, high, low)
    });
    addresses.find(|address| layout::any_port((*address).into()) == bit).expect("one of 65536")
}

/// An error about what a backend of any port sent.
fn errors() -> Vec<Row<MapFixture>> {
    let flow = Flow::new("192.0.2.9:1000", "198.51.100.3:8080");
    let quoted = &Packet::new(flow.answered()).tcp("A")[ETHERNET..];
    let router = Flow { client: "203.0.113.77:0".parse().unwrap(), vip: flow.vip };
    let frame = Packet::new(router).error(3, 4, [0, 0, 5, 0], quoted);
    let fixture = slots(&[(of_port(8080), 4)]);
    vec![Row::sent_as("too big, any port", fixture, (&flow, 6, 0), frame, (0, 4))]
}
