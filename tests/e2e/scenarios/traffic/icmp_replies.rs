//! The packet program answers pings of VIPs by itself, within a limit that is counted.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::packets::frames::{ETHERNET, Flow, Packet};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// No backend is there to answer, and the balancer's own kernel does not have the VIPs.
pub(crate) fn a_vip_answers_pings_by_itself(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "ping", Health::QUICK)?;
    let client = &fixture.fabric.client;
    for backend in &fixture.fabric.backends {
        backend.unplug()?;
    }
    for tunnel in Tunnel::ALL {
        let vip = tunnel.vip().to_string();
        for size in ["0", "56", "1400"] {
            let said =
                client.run("ping", ["-n", "-c", "3", "-i", "0.01", "-W", "2", "-s", size, &vip])?;
            ensure!(said.contains(" 3 received"), "{vip}: {said}");
        }
    }
    ensure!(fixture.balancer.packets("answered_echo")? == 4 * 3 * 3, "not by the packet program");

    // Of a thousand at once not all are answered; and what becomes of a VIP becomes of its pings.
    let vip = Tunnel::Ipip.vip().to_string();
    let flood =
        client.run("ping", ["-n", "-q", "-c", "1000", "-i", "0", "-l", "1000", "-W", "1", &vip])?;
    ensure!(!flood.contains(" 1000 received"), "{flood}");
    ensure!(fixture.balancer.packets("echo_limited")? > 0, "{flood}");
    fixture.balancer.apply("[[region]]\nname = \"eu\"\n")?;
    let gone = client.command("ping").args(["-n", "-c", "1", "-W", "1", &vip]).output()?;
    ensure!(!gone.status.success(), "a VIP without a service answers");
    Ok(())
}

/// Of many packets that ask for an answer by the packet program at once a few get one, as the settings say. Each
/// is counted, of both IP versions.
pub(crate) fn answers_are_limited_and_counted(sandbox: &Sandbox) -> Result<()> {
    const RATE: u64 = 20;
    const EACH: u64 = 200;
    let mut fixture = Fixture::start(sandbox, "limited", Health::QUICK)?;
    for limit in ["--icmp-errors", "--icmp-echoes"] {
        fixture.balancer.more.extend([limit.to_owned(), RATE.to_string()]);
    }
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    fixture.fabric.balancer.ip("link set eth0 mtu 1500")?;
    let tunnels = [Tunnel::Ipip, Tunnel::Ip6Ip6];
    let client = fixture.fabric.client.clone();
    let addresses = [IpAddr::V4(Fabric::CLIENT_V4), IpAddr::V6(Fabric::CLIENT_V6)];
    let too_large: Vec<_> = tunnels
        .iter()
        .zip(addresses)
        .map(|(tunnel, own)| {
            let vip = SocketAddr::new(tunnel.vip(), ECHO);
            let header = if own.is_ipv4() { 28 } else { 48 };
            let flow = Flow { client: SocketAddr::new(own, 7), vip };
            let frame = Packet::new(flow).payload(&vec![0; 1_490 - header]).udp();
            (vip, frame[ETHERNET..].to_vec())
        })
        .collect();
    let send = |times: u64| {
        client.enter(|| -> Result<()> {
            for (vip, packet) in &too_large {
                // It makes its IP header itself, and no more of it than one packet.
                let raw =
                    Socket::new(Domain::for_address(*vip), Type::RAW, Some(Protocol::from(255)))?;
                let to = SockAddr::from(SocketAddr::new(vip.ip(), 0));
                for _ in 0..times {
                    raw.send_to(packet, &to)?;
                }
            }
            Ok(())
        })?
    };
    let packets = |verdict: &str| fixture.balancer.packets(verdict);
    // The daemon may not have heard of the link yet.
    until("a datagram is too large", PATIENCE, || {
        send(1)?;
        Ok((packets("answered_too_large")? >= 2).then_some(()))
    })?;
    let both = |answered: &str, limited: &str| {
        Ok::<_, anyhow::Error>((packets(answered)?, packets(limited)?))
    };
    let is_within = |what: &str, answered: u64, begun: Instant| {
        // A burst is at most what a second may have.
        let most = RATE + RATE * (begun.elapsed().as_secs() + 1);
        ensure!(answered > 0 && answered <= most, "{what}: {answered} answered, {most} may be");
        Ok(())
    };
    let (before, begun) = (both("answered_too_large", "too_large")?, Instant::now());
    // What came before may have used up what this second has.
    let mut sent = 0;
    until("some are answered, and some are not", PATIENCE, || {
        send(EACH)?;
        sent += 2 * EACH;
        let now = both("answered_too_large", "too_large")?;
        Ok((now.0 > before.0 && now.1 > before.1).then_some(()))
    })?;
    let after = until("all are counted", PATIENCE, || {
        let now = both("answered_too_large", "too_large")?;
        Ok((now.0 + now.1 - before.0 - before.1 >= sent).then_some(now))
    })?;
    ensure!(after.0 + after.1 - before.0 - before.1 == sent, "{before:?}, then {after:?}");
    is_within("too large", after.0 - before.0, begun)?;

    let (before, begun) = (both("answered_echo", "echo_limited")?, Instant::now());
    let count = EACH.to_string();
    let mut answered = 0;
    for tunnel in tunnels {
        let vip = tunnel.vip().to_string();
        let flood = ["-n", "-q", "-c", &count, "-i", "0", "-l", &count, "-W", "1", &vip];
        let said = client.command("ping").args(flood).output()?;
        let said = String::from_utf8(said.stdout)?;
        let received = said.split(", ").find_map(|part| part.strip_suffix(" received"));
        answered += received.context("ping says nothing")?.parse::<u64>()?;
    }
    let after = both("answered_echo", "echo_limited")?;
    ensure!(after.0 - before.0 == answered, "{answered} heard: {before:?}, then {after:?}");
    ensure!(after.0 + after.1 - before.0 - before.1 == 2 * EACH, "{before:?}, then {after:?}");
    is_within("pings", answered, begun)
}
