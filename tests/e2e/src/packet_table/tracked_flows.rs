//! Flows that are remembered one by one, and ICMP errors about them: both go where the flow is, not where its
//! hash leads.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{MapFixture, NOTHING, OPEN_ONLY, Owners, UP},
    frames::{ETHERNET, Flow, Packet},
};

use super::{
    flows::{fixture, listed, tcp_hash, udp_hash, v4, v4_udp, v6, v6_udp},
    icmp_errors::router,
};

/// Where the hash leads.
const HOME: (usize, u16) = (0, 0);
/// Where the flow is.
const AWAY: (usize, u16) = (1, 5);
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The services' flag for flows that are tracked, with an idle time of a minute.
const TRACKED: u32 = 2 | 56 << 16;

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    [kinds(), neighbours(), hosts(), pools(), tracked()].concat()
}

fn two_regions(tunnel: u8) -> MapFixture {
    listed(fixture(tunnel).and_region(tunnel), 1)
}

/// An error about what a backend of the flow sent, which it quotes up to so many bytes behind its IP header.
fn error(flow: &Flow, protocol: u8, [kind, code]: [u8; 2], quoted: usize) -> Vec<u8> {
    let packet = Packet::new(flow.answered()).payload(&[0x5a; 400]);
    let frame = if protocol == TCP { packet.tcp("PA") } else { packet.udp() };
    let header = if flow.vip.is_ipv4() { 20 } else { 40 };
    let quote = &frame[ETHERNET..][..header + quoted];
    router(flow).error(kind, code, [0, 0, 5, 0xdc], quote)
}

fn too_big(flow: &Flow, protocol: u8) -> Vec<u8> {
    error(flow, protocol, if flow.vip.is_ipv4() { [3, 4] } else { [2, 0] }, 8)
}

fn row(
    what: String,
    fixture: MapFixture,
    (flow, protocol): (&Flow, u8),
    frame: Vec<u8>,
    to: (usize, u16),
) -> Row<MapFixture> {
    Row::sent_as(what, fixture, (flow, protocol, 0), frame, to)
}

/// Every error that says of a packet that it did not arrive, however much of that it quotes.
fn kinds() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (tunnel, flow) in [(4, v4()), (6, v4()), (4, v6()), (6, v6())] {
        let (version, kinds) = match flow.vip.is_ipv4() {
            true => (4, [("unreachable", [3, 1]), ("too big", [3, 4]), ("TTL exceeded", [11, 0])]),
            false => {
                (6, [("unreachable", [1, 3]), ("too big", [2, 0]), ("hop limit exceeded", [3, 0])])
            }
        };
        let away = || two_regions(tunnel).remembering(flow, TCP, AWAY);
        for (name, kind) in kinds {
            for quoted in [8, 13, 420] {
                let what = format!(
                    "away from home, IPv{version} in IPv{tunnel}: {name}, {quoted} bytes of TCP"
                );
                let frame = error(&flow, TCP, kind, quoted);
                rows.push(row(what, away(), (&flow, TCP), frame, AWAY));
            }
        }
        let what = format!("away from home, IPv{version} in IPv{tunnel}: ACK");
        rows.push(row(what, away(), (&flow, TCP), Packet::new(flow).tcp("A"), AWAY));
    }
    rows
}

/// What is remembered of one flow is nothing to another, of the same hash or not.
fn neighbours() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (version, flow) in [(4, v4()), (6, v6())] {
        // By address: all ports of the client have one hash.
        let mut one = flow;
        one.vip.set_port(81);
        let mut other = one;
        other.client.set_port(4_712);
        let hash = lb_tests::packets::flow_hash::of_service(
            &one,
            TCP,
            1,
            lb_tests::packets::fixture::HASH_KEY,
        );
        let fixture = || two_regions(4).list(0, hash, [0, 1, 2, 3]).remembering(one, TCP, AWAY);
        for (what, of, to) in [("away", &one, AWAY), ("not", &other, HOME)] {
            let what = format!("of one hash, IPv{version}: too big, of the flow that is {what}");
            rows.push(row(what, fixture(), (of, TCP), too_big(of, TCP), to));
        }
        let mut next = flow;
        next.client.set_port(4_712);
        let fixture = two_regions(4).list(0, tcp_hash(&next), [0, 1, 2, 3]);
        let what = format!("away from home, IPv{version}: too big, of the client's next port");
        let fixture = fixture.remembering(flow, TCP, AWAY);
        rows.push(row(what, fixture, (&next, TCP), too_big(&next, TCP), HOME));
        // The same numbers, of another protocol.
        let what = format!("away from home, IPv{version}: too big, of UDP");
        let udp = if version == 4 { v4_udp() } else { v6_udp() };
        let fixture = two_regions(4).flags(TRACKED).remembering(udp, TCP, AWAY);
        rows.push(row(what, fixture, (&udp, UDP), too_big(&udp, UDP), HOME));
    }
    rows
}

/// Who is remembered has it while it lives, as the flow's next packet would be.
fn hosts() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (version, flow) in [(4, v4()), (6, v6())] {
        let away = || two_regions(4).remembering(flow, TCP, AWAY);
        let rank = [AWAY.1];
        for (what, fixture, to) in [
            ("its host unfit", away().states(AWAY.0, OPEN_ONLY, &rank), AWAY),
            ("its host dead", away().states(AWAY.0, NOTHING, &rank), HOME),
            ("its host not reached", away().member(1, 5, |host| host.next_hop = 77), HOME),
            ("of a host that is gone", away().with(|s| s.remembered[0].incarnation = 6), HOME),
            ("home unfit too", away().states(0, OPEN_ONLY, &[0]), AWAY),
            ("the displaced check off", away().with(|fixture| fixture.has_displaced = false), HOME),
        ] {
            let what = format!("away from home, IPv{version}, {what}: too big");
            rows.push(row(what, fixture, (&flow, TCP), too_big(&flow, TCP), to));
        }
    }
    rows
}

/// A backend that several pools have is, for the flows of one, what that pool says of it.
fn pools() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    let states = [
        ("this one alone", Owners::This, AWAY),
        ("another one alone", Owners::Another, HOME),
        ("both, up here", Owners::Several(UP), AWAY),
        ("both, unfit here", Owners::Several(OPEN_ONLY), AWAY),
        ("both, dead here or here no more", Owners::Several(NOTHING), HOME),
    ];
    for (what, owners, to) in states {
        for (version, flow, udp) in [(4, v4(), v4_udp()), (6, v6(), v6_udp())] {
            let away = || two_regions(4).remembering(flow, TCP, AWAY).owned_by(owners);
            let tracks =
                || two_regions(4).flags(TRACKED).remembering(udp, UDP, AWAY).owned_by(owners);
            for (packet, fixture, of, frame) in [
                ("away from home", away(), (&flow, TCP), Packet::new(flow).tcp("A")),
                ("away from home, too big", away(), (&flow, TCP), too_big(&flow, TCP)),
                ("tracked", tracks(), (&udp, UDP), Packet::new(udp).udp()),
                ("tracked, too big", tracks(), (&udp, UDP), too_big(&udp, UDP)),
            ] {
                let what = format!("IPv{version}, its host is in {what}: {packet}");
                rows.push(row(what, fixture, of, frame, to));
            }
        }
    }
    rows
}

/// Datagrams, of services that track flows.
fn tracked() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for (version, flow) in [(4, v4_udp()), (6, v6_udp())] {
        let tracks = |flags| two_regions(4).flags(flags).remembering(flow, UDP, AWAY);
        let kinds = match version {
            4 => [("unreachable", [3, 3]), ("too big", [3, 4]), ("TTL exceeded", [11, 0])],
            _ => [("unreachable", [1, 4]), ("too big", [2, 0]), ("hop limit exceeded", [3, 0])],
        };
        for (name, kind) in kinds {
            let what = format!("tracked, IPv{version}: {name}");
            let frame = error(&flow, UDP, kind, 8);
            rows.push(row(what, tracks(TRACKED), (&flow, UDP), frame, AWAY));
        }
        let what = format!("tracked, IPv{version}: a datagram");
        rows.push(row(what, tracks(TRACKED), (&flow, UDP), Packet::new(flow).udp(), AWAY));
        let mut next = flow;
        next.client.set_port(4_712);
        let listed = tracks(TRACKED).list(0, udp_hash(&next), [0, 1, 2, 3]);
        let what = format!("tracked, IPv{version}: too big, of the client's next port");
        rows.push(row(what, listed, (&next, UDP), too_big(&next, UDP), HOME));
        let what = format!("tracked, IPv{version}, its host dead: too big");
        let dead = tracks(TRACKED).states(AWAY.0, NOTHING, &[AWAY.1]);
        rows.push(row(what, dead, (&flow, UDP), too_big(&flow, UDP), HOME));
        let what = format!("not tracked, IPv{version}: too big");
        rows.push(row(what, tracks(0), (&flow, UDP), too_big(&flow, UDP), HOME));
    }
    // By address: all ports of the client are one flow.
    let one = Flow::new("192.0.2.9:4711", "198.51.100.1:54");
    let client = Flow { client: "192.0.2.9:0".parse().unwrap(), ..one };
    let fixture = two_regions(4).flags(TRACKED).remembering(client, UDP, AWAY);
    let what = "tracked by address: too big".to_owned();
    rows.push(row(what, fixture, (&one, UDP), too_big(&one, UDP), AWAY));
    rows
}
