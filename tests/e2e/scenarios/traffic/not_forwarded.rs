//! What no router forwards reaches no backend: frames for a group of hosts, and sources that no host has.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::packets::frames::{ETHERNET, Flow, Packet};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_udp;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Next hops of the router's, with a MAC of the test's.
const NEXT_HOPS: [&str; 2] = ["169.254.0.2", "fe80::ffff"];
const VIPS: [Tunnel; 2] = [Tunnel::Ipip, Tunnel::Ip6Ip6];
const CLIENTS: [IpAddr; 2] = [IpAddr::V4(Fabric::CLIENT_V4), IpAddr::V6(Fabric::CLIENT_V6)];

/// The router sends the VIPs' packets in frames for a group; then to the MAC of a virtual router, which is one host's.
pub(crate) fn frames_for_a_group_are_not_forwarded(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "groups", Health::QUICK)?;
    for (via, vip) in NEXT_HOPS.iter().zip(VIPS.map(Tunnel::vip)) {
        fixture.fabric.router.ip(&format!("route replace {vip} via {via} dev balancer onlink"))?;
    }
    for mac in ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "33:33:00:00:00:01"] {
        send_to(&fixture, mac)?;
        let before = counters(&fixture)?;
        for (tunnel, client) in VIPS.iter().zip(CLIENTS) {
            let flow = Flow { client: SocketAddr::new(client, 7), vip: tunnel.endpoint(80) };
            let datagram = Flow { vip: tunnel.endpoint(ECHO), ..flow };
            let last = Packet::new(flow).hop_limit(1);
            for packet in [Packet::new(flow).tcp("S"), Packet::new(datagram).udp(), last.tcp("S")] {
                from_router(&fixture, flow, &packet)?;
            }
            let vip = tunnel.vip().to_string();
            let ping = ["-n", "-c", "1", "-W", "0.2", &vip];
            let pinged = fixture.fabric.client.command("ping").args(ping).output()?;
            ensure!(!pinged.status.success(), "{mac}: a ping is answered");
        }
        until("all are counted", PATIENCE, || {
            let passed = fixture.balancer.packets("broadcast_frame")? - before.0;
            Ok((passed >= 2 * 4).then_some(()))
        })
        .with_context(|| mac.to_owned())?;
        let after = counters(&fixture)?;
        ensure!(after.1 == before.1, "{mac}: {before:?}, then {after:?}");
    }
    send_to(&fixture, "00:00:5e:00:01:01")?;
    for (tunnel, client) in VIPS.iter().zip(CLIENTS) {
        let name = name_over_udp(
            &fixture.fabric.client,
            SocketAddr::new(client, 43_000),
            tunnel.endpoint(ECHO),
        )?;
        fixture.number(&name)?;
    }
    Ok(())
}

/// Packets in frames for a group, and of services.
fn counters(fixture: &Fixture) -> Result<(u64, u64)> {
    let services = fixture.balancer.stats()?.services;
    let forwarded = services.iter().map(|service| service.packets).sum();
    Ok((fixture.balancer.packets("broadcast_frame")?, forwarded))
}

/// Has the router send the VIPs' packets to a MAC.
fn send_to(fixture: &Fixture, mac: &str) -> Result<()> {
    for via in NEXT_HOPS {
        let neighbour = format!("neighbour replace {via} lladdr {mac} nud permanent dev balancer");
        fixture.fabric.router.ip(&neighbour)?;
    }
    Ok(())
}

/// Sends a packet as it is from the router, whose kernel would not forward each of them.
fn from_router(fixture: &Fixture, flow: Flow, frame: &[u8]) -> Result<()> {
    fixture.fabric.router.enter(|| {
        // It makes its IP header itself.
        let raw = Socket::new(Domain::for_address(flow.vip), Type::RAW, Some(Protocol::from(255)))?;
        let to = SockAddr::from(SocketAddr::new(flow.vip.ip(), 0));
        raw.send_to(&frame[ETHERNET..], &to)?;
        Ok(())
    })?
}

/// They are dropped before they are counted as connections, remembered or answered.
pub(crate) fn sources_that_no_router_forwards_are_no_clients(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "martians", Health::QUICK)?;
    let mut sent = 0;
    for (tunnel, sources) in VIPS.iter().zip([
        &["0.0.0.1", "127.0.0.1", "169.254.9.9", "224.1.1.1", "240.0.0.1", "255.255.255.255"][..],
        &["::", "::1", "fe80::9", "ff02::1", "::ffff:192.0.2.9"],
    ]) {
        let vip = tunnel.vip();
        let own = vip.to_string();
        for source in sources.iter().copied().chain([&*own]) {
            let client = SocketAddr::new(source.parse()?, 43_000);
            let flow = Flow { client, vip: tunnel.endpoint(80) };
            let datagram = Flow { vip: tunnel.endpoint(ECHO), ..flow };
            let packet = Packet::new(flow);
            let (kind, last) = (if vip.is_ipv4() { 8 } else { 128 }, packet.clone().hop_limit(1));
            for frame in [
                packet.tcp("S"),
                packet.tcp("A"),
                Packet::new(datagram).udp(),
                packet.error(kind, 0, [0, 1, 0, 1], b"ping"),
                last.tcp("S"),
            ] {
                from_router(&fixture, flow, &frame).with_context(|| source.to_owned())?;
                sent += 1;
            }
        }
    }
    let dropped = || fixture.balancer.packets("martian_source");
    until("all are dropped", PATIENCE, || Ok((dropped()? >= sent).then_some(())))?;
    ensure!(dropped()? == sent, "{} dropped, {sent} sent", dropped()?);
    let stats = fixture.balancer.stats()?;
    let forwarded: Vec<_> = stats.services.iter().filter(|it| it.packets > 0).collect();
    ensure!(forwarded.is_empty(), "{forwarded:?}");
    // A client of the same network is one.
    let from = SocketAddr::new(CLIENTS[0], 43_000);
    let name = name_over_udp(&fixture.fabric.client, from, Tunnel::Ipip.endpoint(ECHO))?;
    fixture.number(&name)?;
    Ok(())
}
