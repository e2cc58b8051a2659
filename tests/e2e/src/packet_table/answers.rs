//! Limits of answers to one network, and in the name of one VIP.

use crate::packet_table::row::Row;
use lb_tests::packets::{
    fixture::{MapFixture, Room, Spent, SpentBy},
    frames::{Flow, Packet},
};

use super::{
    flows::fixture,
    oversize,
    pings::{self, kinds, message},
};

pub(crate) fn rows() -> Vec<Row<MapFixture>> {
    let mut rows = Vec::new();
    for [network, vip] in [
        // A network, and a VIP.
        ["192.0.2.0", "198.51.100.1"],
        ["2001:db8:c:2200::", "2001:db8:80::1"],
    ] {
        let spent_by =
            [SpentBy::Network(network.parse().unwrap()), SpentBy::Vip(vip.parse().unwrap())];
        for (of, (client, to, is_spent)) in spent_by.into_iter().flat_map(|of| {
            askers(matches!(of, SpentBy::Vip(_)), network.contains(':')).map(|asker| (of, asker))
        }) {
            let flow = Flow::new(client, to);
            for (kind, errors) in [("pings", false), ("errors", true)] {
                let which = match of {
                    SpentBy::Network(network) => {
                        format!("network {network} had its part of {kind}")
                    }
                    SpentBy::Vip(vip) => format!("VIP {vip} had its part of {kind}"),
                };
                let fixture = fixture(4).with(|fixture| {
                    (fixture.errors, fixture.echoes) = (Room::Free, Room::Free);
                    fixture.spent = vec![Spent { errors, of }];
                });
                let named = |what: &str| format!("{which}: {what} from {client} to {to}");
                let is_limited = |of_errors| is_spent && errors == of_errors;
                rows.push(ping(named("a ping"), &fixture, flow, is_limited(false)));
                rows.push(last_hop(named("a last hop"), &fixture, flow, is_limited(true)));
            }
        }
    }
    rows
}

/// Who asks which VIP, and whether that is what is spent.
fn askers(by_vip: bool, v6: bool) -> [(&'static str, &'static str, bool); 4] {
    if v6 {
        [
            ("[2001:db8:c:22ff::9]:4711", "[2001:db8:80::1]:80", true),
            ("[2001:db8:c:2200:1::1]:99", "[2001:db8:80::3]:80", !by_vip),
            ("[2001:db8:c:2300::9]:4711", "[2001:db8:80::1]:80", by_vip),
            ("[2001:db8:c:2100::9]:4711", "[2001:db8:80::3]:80", false),
        ]
    } else {
        [
            ("192.0.2.255:4711", "198.51.100.1:80", true),
            ("192.0.2.1:99", "198.51.100.3:80", !by_vip),
            ("192.0.3.1:4711", "198.51.100.1:80", by_vip),
            ("192.0.1.1:4711", "198.51.100.3:80", false),
        ]
    }
}

fn ping(what: String, fixture: &MapFixture, flow: Flow, is_limited: bool) -> Row<MapFixture> {
    let (packet, (request, _)) = (Packet::new(flow), kinds(&flow));
    let frame = message(&packet, request, b"hello");
    if is_limited {
        return Row::dropped(what, fixture.clone(), frame, "echo_limited");
    }
    let after = pings::answer(&packet, &flow, b"hello");
    Row::changed(what, fixture.clone(), (frame, after), "answered_echo")
}

fn last_hop(what: String, fixture: &MapFixture, flow: Flow, is_limited: bool) -> Row<MapFixture> {
    let frame = Packet::new(flow).hop_limit(1).tcp("A");
    if is_limited {
        return Row::dropped(what, fixture.clone(), frame, "hop_limit_exceeded");
    }
    let (kind, code) = if flow.vip.is_ipv4() { (11, 0) } else { (3, 0) };
    let after = oversize::error(&flow, &frame, (kind, code, [0; 4]));
    Row::changed(what, fixture.clone(), (frame, after), "answered_time_exceeded")
}
