//! A capture has the packets that the packet program answers itself, and the answers, with VLAN tags and without.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::capture::Capture;
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_udp;

use crate::capture::command::RunningCapture;
use crate::capture::tcpdump::{ExpectedFrames, packet, transport};
use crate::capture::tunnels::second_arm;

/// A service's tag, and a customer's in it.
const TAGS: &[[u16; 2]] = &[[0x88a8, 100], [0x8100, 10]];
/// What goes in 1500 bytes over either IP version.
const FULL: [usize; 2] = [1_472, 1_452];
/// Pings of a VIP.
const PINGS: &str = "3";
/// Where datagrams come from.
const PORT: u16 = 42_000;

pub(crate) fn taken(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "answers", Health::QUICK)?;
    let Fabric { net, balancer, router, .. } = &fixture.fabric;
    // The way to backends is another than the answers'.
    second_arm(&fixture)?;
    balancer.ip("link set eth1 mtu 1504")?;
    // The daemon may not have heard of that yet.
    until("datagrams are too large", PATIENCE, || {
        large(&fixture, 41_000)?;
        Ok((fixture.balancer.packets("answered_too_large")? >= 2).then_some(()))
    })?;
    pings(&fixture, "pings").context("pings")?;
    too_large(&fixture, "large").context("too large")?;
    net.tag_vips((router, "balancer"), (balancer, "eth0"), TAGS)?;
    pings(&fixture, "taggedpings").context("pings behind tags")?;
    too_large(&fixture, "taggedlarge").context("too large behind tags")
}

fn pings(fixture: &Fixture, name: &str) -> Result<()> {
    let count = (2 * PINGS.parse::<u32>()?).to_string();
    let flags = ["--verdict", "answered_echo", "--count", &count];
    let wire = Capture::start(&fixture.fabric.router, "balancer", "")?;
    let running = RunningCapture::start(fixture, name, &flags)?;
    for tunnel in [Tunnel::Ipip, Tunnel::Ip6Ip6] {
        let vip = tunnel.vip().to_string();
        let ping = ["-n", "-c", PINGS, "-i", "0.01", "-W", "5", &vip];
        let said = fixture.fabric.client.run("ping", ping)?;
        ensure!(said.contains(&format!(" {PINGS} received")), "{said}");
    }
    let (taken, said) = running.end()?;
    let wire = wire.stop()?;
    let wire = ExpectedFrames {
        came: wire.bytes("icmp.type == 8 || icmpv6.type == 128")?,
        left: wire.bytes("icmp.type == 0 || icmpv6.type == 129")?,
        out: "eth0",
        decided: &|_| Ok("verdict answered_echo (transmit)".into()),
        // Identifier, number and data.
        kept: |frame| transport(frame)?.get(4..).context("no echo request"),
    };
    let packets = wire.compare(&taken)?;
    ensure!(packets.to_string() == count, "{packets} packets");
    ensure!(said.ends_with(&format!("; {count} matched, 0 lost\n")), "{said}");
    Ok(())
}

fn too_large(fixture: &Fixture, name: &str) -> Result<()> {
    // Who would have had them.
    let mut backends = Vec::new();
    for (from, to) in flows(PORT) {
        let backend = &name_over_udp(&fixture.fabric.client, from, to)?;
        let backend = &fixture.fabric.backends[fixture.number(backend)?];
        backends.push(match from.ip() {
            IpAddr::V4(_) => Tunnel::Ipip.end(backend),
            IpAddr::V6(_) => Tunnel::Ip6Ip6.end(backend),
        });
    }
    let flags = ["--verdict", "answered_too_large", "--count", "2", "--snap", "2000"];
    let wire = Capture::start(&fixture.fabric.router, "balancer", "")?;
    let running = RunningCapture::start(fixture, name, &flags)?;
    large(fixture, PORT)?;
    let (taken, said) = running.end()?;
    let wire = wire.stop()?;
    let wire = ExpectedFrames {
        came: wire.bytes(&format!("udp.srcport == {PORT} && !icmp && !icmpv6"))?,
        left: wire.bytes("(icmp.type == 3 && icmp.code == 4) || icmpv6.type == 2")?,
        out: "eth0",
        decided: &|frame| {
            let backend = backends[usize::from(packet(frame)?[0] >> 4 == 6)];
            Ok(format!("verdict answered_too_large (transmit), backend {backend}"))
        },
        // The IP header and that of UDP are quoted.
        kept: |frame| {
            let packet = packet(frame)?;
            packet.get(..if packet[0] >> 4 == 4 { 28 } else { 48 }).context("no headers")
        },
    };
    ensure!(wire.compare(&taken)? == 2, "of each IP version one");
    ensure!(said.ends_with("; 2 matched, 0 lost\n"), "{said}");
    Ok(())
}

/// From a port to the echo, over each IP version.
fn flows(port: u16) -> [(SocketAddr, SocketAddr); 2] {
    [
        (SocketAddr::new(Fabric::CLIENT_V4.into(), port), Tunnel::Ipip.endpoint(ECHO)),
        (SocketAddr::new(Fabric::CLIENT_V6.into(), port), Tunnel::Ip6Ip6.endpoint(ECHO)),
    ]
}

/// A datagram over each IP version that the client's link just carries, and no tunnel here.
fn large(fixture: &Fixture, port: u16) -> Result<()> {
    let client = &fixture.fabric.client;
    // It has heard what fits, perhaps, and is not to make fragments.
    for version in ["-4", "-6"] {
        client.run("ip", [version, "route", "flush", "cache"])?;
    }
    client.enter(|| -> Result<()> {
        for ((from, to), length) in flows(port).into_iter().zip(FULL) {
            let content = Random::new(length as u64).bytes(length);
            let sent = UdpSocket::bind(from)?.send_to(&content, to)?;
            ensure!(sent == length, "{sent} bytes sent");
        }
        Ok(())
    })?
}
