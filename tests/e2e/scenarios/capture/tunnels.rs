//! A capture has packets to backends by a second interface, in GUE, without a tunnel, and behind VLAN tags.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HTTP, Health, Tunnel};
use lb_tests::capture::{Capture, Frames};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_http;

use crate::capture::command::RunningCapture;
use crate::capture::tcpdump::{ExpectedFrames, transport};

/// The balancer's second arm, and the router's end of it.
const ARM: (&str, &str) = ("eth1", "second");
/// The first.
const FIRST: (&str, &str) = ("eth0", "balancer");
/// Tags as a provider's network has them, and a customer's alone.
const TAGS: [(&str, &[[u16; 2]]); 2] =
    [("tagged", &[[0x8100, 0x200a]]), ("stacked", &[[0x88a8, 100], [0x8100, 10]])];

pub(crate) fn by_a_second_arm(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "redirected", Health::QUICK)?;
    second_arm(&fixture)?;
    let way = Way { verdict: "redirected (redirect)", arm: ARM };
    way.settles(&fixture)?;
    way.seen(&fixture, "redirected", |wire| frames(wire, in_tunnels()))
}

/// Gives the balancer a second link to the router, by which all backends are reached.
pub(crate) fn second_arm(fixture: &Fixture) -> Result<()> {
    let Fabric { net, balancer, router, .. } = &fixture.fabric;
    net.link(balancer, ARM.0, router, ARM.1, 1600)?;
    net.pass_all(router, ARM.1)?;
    for (node, end, host) in [(balancer, ARM.0, 2), (router, ARM.1, 1)] {
        node.ip(&format!(
            "address add 10.9.0.{host}/24 dev {end}\naddress add fd00:9::{host}/64 dev {end} nodad"
        ))?;
    }
    net.ready()?;
    // Receivers allow the address of the first arm.
    let (v4, v6) = (Fabric::BALANCER_V4, Fabric::BALANCER_V6);
    balancer.ip(&format!(
        "route add 10.1.0.0/24 via 10.9.0.1 src {v4}\nroute add fd00:1::/64 via fd00:9::1 src {v6}\n\
         route add 10.2.0.0/24 via 10.9.0.1 src {v4}\nroute add fd00:2::/64 via fd00:9::1 src {v6}"
    ))
}

pub(crate) fn in_gue(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "gue", Health::QUICK)?;
    for pool in ["v4", "v6"] {
        fixture.balancer.cli(&["pool", "update", pool, "--encapsulation", "gue"])?;
    }
    let way = Way { verdict: "transmitted (transmit)", arm: FIRST };
    way.seen(&fixture, "gue", |wire| {
        // Variant 0, no flags, the protocol of what is inside.
        let gue = "udp.dstport == 6080 && (data[0:4] == 00:04:00:00 || data[0:4] == 00:29:00:00)";
        frames(wire, gue.to_owned())
    })
}

pub(crate) fn as_they_are(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "direct", Health::QUICK)?;
    let Fabric { net, balancer, router, .. } = &fixture.fabric;
    // A leg on the link of the backends.
    net.link(balancer, ARM.0, router, ARM.1, 1600)?;
    router.ip(&format!("link set {} master eu", ARM.1))?;
    net.pass_all(router, ARM.1)?;
    balancer.ip("address add 10.1.0.2/24 dev eth1\naddress add fd00:1::2/64 dev eth1 nodad")?;
    net.ready()?;
    for pool in ["v4", "v6"] {
        fixture.balancer.cli(&["pool", "update", pool, "--encapsulation", "direct"])?;
    }
    let way = Way { verdict: "redirected (redirect)", arm: ARM };
    way.settles(&fixture)?;
    way.seen(&fixture, "direct", |wire| {
        // The TTL of the client is 64; router and balancer are a hop each.
        let to = Tunnel::ALL.map(|tunnel| match tunnel.vip() {
            IpAddr::V4(vip) => format!("(ip.dst == {vip} && ip.ttl == 62)"),
            IpAddr::V6(vip) => format!("(ipv6.dst == {vip} && ipv6.hlim == 62)"),
        });
        frames(wire, format!("tcp.dstport == {HTTP} && ({})", to.join(" || ")))
    })
}

/// What came with tags leaves with them.
pub(crate) fn behind_tags(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "tags", Health::QUICK)?;
    let Fabric { net, balancer, router, .. } = &fixture.fabric;
    for (name, tags) in TAGS {
        net.tag_vips((router, FIRST.1), (balancer, FIRST.0), tags)?;
        let way = Way { verdict: "transmitted (transmit)", arm: FIRST };
        way.seen(&fixture, name, |wire| {
            let left = frames(wire, in_tunnels())?;
            let stack: Vec<_> = tags.iter().flatten().flat_map(|word| word.to_be_bytes()).collect();
            for frame in &left {
                ensure!(frame[12..].starts_with(&stack), "{name}: {frame:02x?}");
            }
            Ok(left)
        })
        .with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// A way that packets of connections go.
struct Way<'a> {
    /// What is said of them.
    verdict: &'a str,
    /// The interface of the balancer that they leave by, and its end at the router.
    arm: (&'a str, &'a str),
}

impl Way<'_> {
    /// Waits until they go so.
    fn settles(&self, fixture: &Fixture) -> Result<()> {
        let (name, _) = self.verdict.split_once(' ').context("a verdict")?;
        for (number, tunnel) in Tunnel::ALL.into_iter().enumerate() {
            until(&format!("packets to {} go that way", tunnel.vip()), PATIENCE, || {
                let before = fixture.balancer.packets(name)?;
                // Meanwhile the way may be none.
                let answer = ask(fixture, tunnel, 39_000 + number as u16);
                let after = fixture.balancer.packets(name)?;
                Ok((answer.is_ok() && after >= before + 4).then_some(()))
            })?;
        }
        Ok(())
    }

    /// A connection by each tunnel's VIP, as the wire has it and as it was taken down; `left` picks the frames that
    /// go to backends out of all of the wire.
    fn seen(
        &self,
        fixture: &Fixture,
        name: &str,
        left: impl Fn(&Frames) -> Result<Vec<Vec<u8>>>,
    ) -> Result<()> {
        let router = &fixture.fabric.router;
        let (verdict, _) = self.verdict.split_once(' ').context("a verdict")?;
        let first = Capture::start(router, FIRST.1, "")?;
        let second = (self.arm != FIRST).then(|| Capture::start(router, self.arm.1, ""));
        let second = second.transpose()?;
        let flags = ["--verdict", verdict, "--snap", "2000", "--duration", "5s"];
        let running = RunningCapture::start(fixture, name, &flags)?;
        let mut ends = Vec::new();
        for (number, tunnel) in Tunnel::ALL.into_iter().enumerate() {
            let port = 40_000 + number as u16;
            let backend = ask(fixture, tunnel, port).with_context(|| format!("{tunnel:?}"))?;
            let backend = &fixture.fabric.backends[fixture.number(&backend)?];
            ends.push((port, tunnel.end(backend)));
        }
        let (taken, said) = running.end()?;
        let first = first.stop()?;
        let second = second.map(Capture::stop).transpose()?;
        let vips = Tunnel::ALL.map(|tunnel| match tunnel.vip() {
            IpAddr::V4(vip) => format!("(ip.dst == {vip} && ip.proto == 6)"),
            IpAddr::V6(vip) => format!("(ipv6.dst == {vip} && ipv6.nxt == 6)"),
        });
        let no_tunnel = "!(ip.proto == 4 || ip.proto == 41 || ipv6.nxt == 4 || ipv6.nxt == 41)";
        let vips = vips.join(" || ");
        let wire = ExpectedFrames {
            came: first.bytes(&format!("({vips}) && {no_tunnel}"))?,
            left: left(second.as_ref().unwrap_or(&first))?,
            out: self.arm.0,
            decided: &|frame| {
                let port = u16::from_be_bytes(*transport(frame)?.first_chunk().context("a port")?);
                let end = ends.iter().find(|(of, _)| *of == port).context("another port")?;
                Ok(format!("verdict {}, backend {}", self.verdict, end.1))
            },
            kept: transport,
        };
        let packets = wire.compare(&taken)?;
        ensure!(packets >= 4 * Tunnel::ALL.len(), "connections of {packets} packets");
        ensure!(said.ends_with(&format!("; {packets} matched, 0 lost\n")), "{said}");
        Ok(())
    }
}

fn frames(wire: &Frames, filter: String) -> Result<Vec<Vec<u8>>> {
    wire.bytes(&filter).context(filter)
}

/// Frames in any tunnel in IP.
fn in_tunnels() -> String {
    Tunnel::ALL.map(|tunnel| format!("({})", tunnel.filter())).join(" || ")
}

/// Asks for the page by a tunnel's VIP, from a port; answers who gave it.
fn ask(fixture: &Fixture, tunnel: Tunnel, port: u16) -> Result<String> {
    let address: IpAddr = match tunnel.vip() {
        IpAddr::V4(_) => Fabric::CLIENT_V4.into(),
        IpAddr::V6(_) => Fabric::CLIENT_V6.into(),
    };
    name_over_http(&fixture.fabric.client, SocketAddr::new(address, port), tunnel.endpoint(HTTP))
}
