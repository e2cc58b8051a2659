//! Traffic follows when the route to backends changes: another gateway, another interface, several at a time.

use std::{net::TcpStream, time::Duration};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_e2e::harness::Case;
use lb_tests::daemon::Binaries;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::Stream;

/// Largest packet of the fabric's links.
const MTU: u32 = 1600;

/// The second arm: the balancer's `eth1` and the router's `second`.
const ARM_V4: [&str; 2] = ["10.9.0.2/24", "10.9.0.1/24"];
const ARM_V6: [&str; 2] = ["fd00:9::2/64", "fd00:9::1/64"];

/// Tunnels by the second arm come from its addresses.
pub(crate) const ALLOWED: [&str; 4] = ["--allow-source", "10.9.0.2", "--allow-source", "fd00:9::2"];

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_gateway_with_another_mac_keeps_connections", another_gateway),
    Case::waits("a_second_interface_takes_connections_over_and_gives_them_back", second_arm),
    Case::waits("packets_come_in_by_several_interfaces", several_interfaces),
    Case::waits("the_documents_make_a_lab_of_namespaces_work", lab),
];

/// What a router does that takes another one's address over: it says so.
fn another_gateway(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "gateway", Health::QUICK)?;
    let streams = streams(&fixture)?;
    let router = &fixture.fabric.router;
    router.sysctls(&[
        ("net.ipv4.conf.balancer.arp_notify", "1"),
        ("net.ipv6.conf.balancer.ndisc_notify", "1"),
    ])?;
    router.ip("link set balancer address 02:00:5e:00:53:77")?;
    Stream::all_go_on(&streams).context("after the gateway's change")?;
    Stream::finish_all(streams)?;
    ensure!(fixture.balancer.packets("next_hop_unresolved")? == 0, "the way was lost meanwhile");
    fixture.wait_up(&[])
}

fn second_arm(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start_with(sandbox, "arm", Health::QUICK, &ALLOWED)?;
    let streams = streams(&fixture)?;
    ensure!(fixture.balancer.packets("redirected")? == 0, "there is one arm");
    add_arm(&fixture)?;
    let balancer = &fixture.fabric.balancer;
    balancer.ip("route add 10.1.0.0/24 via 10.9.0.1\nroute add fd00:1::/64 via fd00:9::1")?;
    let mut before = 0;
    until("packets leave by the second arm", PATIENCE, || {
        before = fixture.balancer.packets("redirected")?;
        Ok((before > 0).then_some(()))
    })?;
    Stream::all_go_on(&streams).context("by the second arm")?;
    ensure!(fixture.balancer.packets("redirected")? > before, "they do not leave by it");

    // A link that goes down takes its routes along.
    balancer.ip("link set eth1 down")?;
    let by_first = fixture.balancer.packets("transmitted")?;
    Stream::all_go_on(&streams).context("by the first arm again")?;
    ensure!(fixture.balancer.packets("transmitted")? > by_first, "they do not leave by it");
    Stream::finish_all(streams)?;
    for lost in ["redirect_failed", "inconsistent"] {
        ensure!(fixture.balancer.packets(lost)? == 0, "{lost}");
    }
    Ok(())
}

/// One set of programs and maps: half of the VIPs come by another interface, and connections that are open
/// do not see it.
fn several_interfaces(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "several", Health::QUICK)?;
    add_arm(&fixture)?;
    fixture.balancer.stop()?;
    fixture.balancer.more.extend(["--interface".into(), "eth1".into()]);
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    let streams = streams(&fixture)?;
    let router = &fixture.fabric.router;
    for (tunnel, via) in [(Tunnel::Ipip, "10.9.0.2"), (Tunnel::Ip6Ip6, "fd00:9::2")] {
        router.ip(&format!("route replace {} via {via}", tunnel.vip()))?;
    }
    let before = fixture.balancer.packets("redirected")?;
    Stream::all_go_on(&streams).context("by both")?;
    // What comes in by the second leaves by the first.
    ensure!(fixture.balancer.packets("redirected")? > before, "nothing comes in by the second");
    Stream::finish_all(streams)
}

/// A second link between balancer and router, with addresses and no routes over it.
pub(crate) fn add_arm(fixture: &Fixture) -> Result<()> {
    let Fabric { net, balancer, router, .. } = &fixture.fabric;
    net.link(balancer, "eth1", router, "second", MTU)?;
    net.pass_all(router, "second")?;
    for (node, end, number) in [(balancer, "eth1", 0), (router, "second", 1)] {
        node.ip(&format!(
            "address add {} dev {end}\naddress add {} dev {end} nodad",
            ARM_V4[number], ARM_V6[number]
        ))?;
    }
    net.ready()
}

/// Nothing but the command of the documents has the router's end of a veth pair take what the balancer sends back.
fn lab(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "lab", Health::QUICK)?;
    let Fabric { router, client, .. } = &fixture.fabric;
    router.ip("link set balancer xdp off")?;
    router.run("ethtool", ["-K", "balancer", "gro", "off"])?;
    let connect = |patience| {
        let to = Tunnel::Ipip.endpoint(ECHO);
        client.enter(|| TcpStream::connect_timeout(&to, patience).map(drop))
    };
    let lost = connect(Duration::from_secs(2))?;
    ensure!(lost.is_err(), "a packet came without a program");

    let page = include_str!("../../../docs/operations.md");
    let (_, page) = page.split_once("## In a lab of namespaces").context("no such section")?;
    let command = page.split("```").nth(1).and_then(|block| block.strip_prefix("sh\n"));
    let command = command.context("no command")?.replace("to-balancer", "balancer");
    // `ip netns exec` gives it a mount namespace of its own.
    let command = command
        .replace("ip netns exec router", &format!("ip netns exec {}", router.namespace()))
        .replace("spillwayd", &Binaries::find()?.spillwayd.display().to_string());
    let mut running = router.spawn("sh", ["-c", &format!("exec {command}")])?;
    until("a connection comes about", PATIENCE, || {
        running.check()?;
        Ok(connect(Duration::from_secs(1))?.is_ok().then_some(()))
    })?;
    let streams = streams(&fixture)?;
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)?;
    drop(running);
    until("its program goes with it", PATIENCE, || {
        Ok(connect(Duration::from_secs(1))?.is_err().then_some(()))
    })
}

/// Long connections by each tunnel.
pub(crate) fn streams(fixture: &Fixture) -> Result<Vec<Stream>> {
    let open = |tunnel: Tunnel, seed| {
        Stream::open(&fixture.fabric.client, tunnel.endpoint(ECHO), seed)
            .with_context(|| format!("{tunnel:?}"))
    };
    let all = Tunnel::ALL.into_iter().flat_map(|tunnel| (0..4).map(move |seed| (tunnel, seed)));
    let streams = all.map(|(tunnel, seed)| open(tunnel, seed)).collect::<Result<Vec<_>>>()?;
    Stream::all_go_on(&streams)?;
    Ok(streams)
}
