//! What must not go round, with the help of the host or without: tunnels in tunnels, and packets that say
//! they come from where they go.

use super::{ip, opened, passed, tunnel};
use crate::packet_table::flows::{v4, v4_udp, v6};
use crate::packet_table::row::Row;
use lb_tests::packets::{
    frames::{ETHERNET, Flow, Packet, Tunnel, extended},
    receiver::VIPS,
};

pub(super) fn rows() -> Vec<Row<()>> {
    [tunnels_in_tunnels(), from_here(), martians(), to_vips(), time()].concat()
}

fn dropped(what: String, frame: Vec<u8>, verdict: &'static str) -> Row<()> {
    Row::dropped(what, (), frame, verdict)
}

/// An inner packet for a VIP that is again a tunnel packet: of whatever is in it, once is enough.
fn tunnels_in_tunnels() -> Vec<Row<()>> {
    let whole = Packet::new(v4()).tcp("A");
    let whole = &whole[ETHERNET..];
    let limit = "00 00 04 01 04 01 01 00";
    let mut rows = Vec::new();
    for outer in [4, 6] {
        for protocol in [4, 41] {
            for (version, flow) in [(4, v4()), (6, v6())] {
                let frame = Packet::new(flow).payload(whole).other(protocol);
                let what = format!("protocol {protocol} over IPv{version} out of IPv{outer}");
                rows.push(dropped(what, tunnel(outer).around(&frame), "inner_tunnel"));
            }
            // As RFC 2473 has it: the limit of encapsulations stands in between.
            let frame = Packet::new(v6()).payload(whole).other(protocol);
            let frame = extended(&frame, &[(60, limit)]);
            let what = format!("protocol {protocol} behind a limit out of IPv{outer}");
            rows.push(dropped(what, tunnel(outer).around(&frame), "inner_tunnel"));
            // A first fragment of one is one.
            let frame = Packet::new(v6()).payload(whole).other(protocol);
            let frame = extended(&frame, &[(44, "00 00 0001 0000002a")]);
            let what = format!("a fragment of protocol {protocol} out of IPv{outer}");
            rows.push(dropped(what, tunnel(outer).around(&frame), "inner_tunnel"));
        }
        // More extension headers than balancers read hide nothing.
        let frame = Packet::new(v6()).payload(whole).other(41);
        let frame = extended(&frame, &[(60, limit); 5]);
        let what = format!("five extension headers out of IPv{outer}");
        rows.push(dropped(what, tunnel(outer).around(&frame), "inner_malformed"));
        let frame = extended(&Packet::new(v6()).tcp("A"), &[(60, limit); 4]);
        let what = format!("TCP behind four extension headers out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&frame), &frame));
        // For somebody else it is not ours to judge.
        let frame = Packet::new(Flow::new("192.0.2.9:1", "198.51.100.2:1")).payload(whole).other(4);
        let what = format!("a tunnel in a tunnel to another VIP out of IPv{outer}");
        rows.push(passed(&what, tunnel(outer).around(&frame), "vip_not_allowed"));
    }
    // A packet for the end of the tunnel itself is for no VIP.
    let own = Flow::new("10.0.0.1:1", "10.1.0.1:1");
    let inside = Packet::new(own).payload(whole).other(4);
    let frame = tunnel(4).around(&inside);
    rows.push(passed("a tunnel in a tunnel with the same ends", frame, "vip_not_allowed"));
    rows
}

/// What says it comes from this host would be answered to this host.
fn from_here() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for outer in [4, 6] {
        for (what, from, to) in [
            ("a VIP to itself", "198.51.100.1:7", "198.51.100.1:7"),
            ("an IPv6 VIP to itself", "[2001:db8:80::1]:7", "[2001:db8:80::1]:7"),
        ] {
            let frame = Packet::new(Flow::new(from, to)).udp();
            let what = format!("{what} out of IPv{outer}");
            rows.push(dropped(what, tunnel(outer).around(&frame), "inner_from_here"));
        }
    }
    // The end of a tunnel is this host, by the IP version that it is of.
    let (v4_end, v6_end) = (Flow::new("10.1.0.1:7", "198.51.100.1:7"), {
        Flow::new("[fd00:1::1]:7", "[2001:db8:80::1]:7")
    });
    for (flow, own, other) in [(v4_end, 4, 6), (v6_end, 6, 4)] {
        let frame = Packet::new(flow).udp();
        let what = format!("from the end of its IPv{own} tunnel");
        rows.push(dropped(what, tunnel(own).around(&frame), "inner_from_here"));
        let what = format!("from an IPv{own} address in an IPv{other} tunnel");
        rows.push(opened(what, tunnel(other).around(&frame), &frame));
    }
    // A balancer checks the health of its backends by their tunnels.
    let frame = Packet::new(Flow::new("10.0.0.1:7", "198.51.100.1:80")).tcp("S");
    rows.push(opened("from the balancer itself", tunnel(4).around(&frame), &frame));
    let frame = Packet::new(Flow::new("[fd00::1]:7", "[2001:db8:80::1]:80")).tcp("S");
    rows.push(opened("from the balancer itself over IPv6", tunnel(6).around(&frame), &frame));
    rows
}

/// A client with such an address cannot be answered: no router would have forwarded its packet to a balancer.
fn martians() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for outer in [4, 6] {
        for source in [
            "0.0.0.0:7",
            "127.0.0.1:7",
            "169.254.1.1:7",
            "224.0.0.1:7",
            "240.0.0.1:7",
            "255.255.255.255:7",
            "[::]:7",
            "[::1]:7",
            "[::ffff:192.0.2.9]:7",
            "[fe80::1]:7",
            "[ff02::1]:7",
        ] {
            let vip = if source.starts_with('[') { v6().vip } else { v4().vip };
            let frame = Packet::new(Flow { client: source.parse().unwrap(), vip }).tcp("S");
            let what = format!("from {source} out of IPv{outer}");
            rows.push(dropped(what, tunnel(outer).around(&frame), "inner_martian"));
        }
    }
    rows
}

/// No tunnel ends at a VIP: what comes there in one is a service's.
fn to_vips() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for inner in [v4(), v6(), v4_udp()] {
        let frame = Packet::new(inner).tcp("A");
        for (destination, source) in VIPS.into_iter().zip([ip("10.0.0.1"), ip("fd00::1")]) {
            let version = if source.is_ipv4() { 4 } else { 6 };
            let tunnel = Tunnel { destination, ..tunnel(version) };
            let what = format!("to {} in a tunnel that ends at {destination}", inner.vip);
            rows.push(passed(&what, tunnel.around(&frame), "tunnel_to_vip"));
        }
    }
    rows
}

/// What has reached the end of its time.
fn time() -> Vec<Row<()>> {
    let mut rows = Vec::new();
    for outer in [4, 6] {
        let frame = Packet::new(v4()).hop_limit(0).tcp("A");
        let what = format!("inner TTL 0 out of IPv{outer}");
        rows.push(dropped(what, tunnel(outer).around(&frame), "inner_expired"));
        // A host takes what is for it with any hop limit (RFC 8200, 3).
        let frame = Packet::new(v6()).hop_limit(0).tcp("A");
        let what = format!("inner hop limit 0 out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&frame), &frame));
        let frame = Packet::new(v6()).hop_limit(1).tcp("A");
        let what = format!("inner hop limit 1 of IPv6 out of IPv{outer}");
        rows.push(opened(what, tunnel(outer).around(&frame), &frame));
    }
    rows
}
