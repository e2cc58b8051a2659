//! The host's addresses.

use std::{net::IpAddr, time::Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{Fixture, Health, Tunnel},
    harness,
};
use lb_tests::{sandbox::Sandbox, topology::Fabric, traffic::Stream};

use super::{no_problem, streams, wait_for_condition, wait_for_no_condition, wait_for_sources};

/// The host's addresses after it was renumbered, which receivers allow too.
const NEXT: [&str; 2] = ["10.0.0.22", "fd00::22"];
const ALLOWED: [&str; 4] = ["--allow-source", NEXT[0], "--allow-source", NEXT[1]];

fn own() -> [String; 2] {
    [Fabric::BALANCER_V4.to_string(), Fabric::BALANCER_V6.to_string()]
}

/// As README has the VIP put on the interface, and as others have it in the route's `src`.
pub(super) fn services(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "src-service", Health::QUICK)?;
    let streams = streams(&fixture)?;
    let [v4, v6] = own();
    let balancer = fixture.fabric.balancer.clone();
    for tunnel in Tunnel::ALL {
        let (vip, bits) = (tunnel.vip(), if tunnel.vip().is_ipv4() { 32 } else { 128 });
        let how = if bits == 128 { " nodad" } else { "" };
        balancer.ip(&format!("address add {vip}/{bits} dev eth0{how}"))?;
    }
    wait_for_sources(&fixture, &v4, &v6)?;
    Stream::all_go_on(&streams).context("with the VIPs on the interface")?;

    let (vip_v4, vip_v6) = (Fabric::VIP_V4, Fabric::VIP_V6);
    balancer.ip(&format!(
        "route replace 10.1.0.0/24 via {} src {vip_v4}\n\
         route replace fd00:1::/64 via fd00::1 src {vip_v6}",
        Fabric::GATEWAY_V4
    ))?;
    let backend = &fixture.fabric.backends[0];
    let kernels = [prefers(&fixture, backend.v4.into())?, prefers(&fixture, backend.v6.into())?];
    ensure!(kernels == [IpAddr::from(vip_v4), vip_v6.into()], "the kernel takes {kernels:?}");
    Stream::all_go_on(&streams).context("with VIPs in the routes")?;
    wait_for_sources(&fixture, &v4, &v6)?;

    // A daemon that starts so knows of no service before it reads its store.
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    wait_for_sources(&fixture, &v4, &v6)?;
    Stream::all_go_on(&streams).context("after a restart")?;
    Stream::finish_all(streams)?;
    checks_decide(&fixture)?;
    wait_for_no_condition(&fixture)?;
    no_problem(&fixture)
}

/// Checks without a tunnel get answers: a host that has the VIPs sends none to them. Shown by one that sends none at all
/// for a while, and is taken back.
fn checks_decide(fixture: &Fixture) -> Result<()> {
    let backend = &fixture.fabric.backends[0];
    let ways = ["blackhole 10.0.0.0/24", "blackhole fd00::/64"];
    for way in ways {
        backend.node.ip(&format!("route add {way}"))?;
    }
    fixture.wait_up(&[backend.name()]).context("one is silent")?;
    for way in ways {
        backend.node.ip(&format!("route del {way}"))?;
    }
    fixture.wait_up(&[]).context("it answers again")
}

/// The source that the kernel takes towards an address.
fn prefers(fixture: &Fixture, to: IpAddr) -> Result<IpAddr> {
    let route = &fixture.fabric.balancer.ip_json(&format!("route get {to}"))?[0];
    Ok(route["prefsrc"].as_str().context("prefsrc")?.parse()?)
}

pub(super) fn renumbered(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start_with(sandbox, "renumbered", Health::QUICK, &ALLOWED)?;
    let streams = streams(&fixture)?;
    let Fabric { balancer, router, .. } = &fixture.fabric;
    let [v4, v6] = own();
    wait_for_sources(&fixture, &v4, &v6)?;
    // Otherwise the first of two addresses in a subnet takes the second along, and the routes.
    balancer.sysctls(&[("net.ipv4.conf.all.promote_secondaries", "1")])?;
    let begun = Instant::now();
    balancer.ip(&format!(
        "address add {}/24 dev eth0\naddress add {}/64 dev eth0 nodad\n\
         address del {v4}/24 dev eth0\naddress del {v6}/64 dev eth0",
        NEXT[0], NEXT[1]
    ))?;
    for tunnel in Tunnel::ALL {
        let via = if tunnel.vip().is_ipv4() { NEXT[0] } else { NEXT[1] };
        router.ip(&format!("route replace {} via {via}", tunnel.vip()))?;
    }
    wait_for_sources(&fixture, NEXT[0], NEXT[1])?;
    harness::note(format!("renumbered: tunnels follow after {:.2?}", begun.elapsed()));
    Stream::all_go_on(&streams).context("from the new addresses")?;
    Stream::finish_all(streams)?;
    fixture.wait_up(&[])?;
    wait_for_no_condition(&fixture)?;
    no_problem(&fixture)
}

pub(super) fn missing(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "src-missing", Health::QUICK)?;
    let balancer = &fixture.fabric.balancer;
    let [v4, v6] = own();
    // Only the VIP is left, and the routes stand.
    balancer.ip(&format!(
        "address add {}/128 dev eth0 nodad\naddress del {v6}/64 dev eth0\n\
         route add fd00::/64 dev eth0\nroute replace default via fd00::1",
        Fabric::VIP_V6
    ))?;
    let words =
        "missing: tunnels to fd00:1::11 and 5 more backends have none, so no packets go there";
    wait_for_condition(&fixture, "IPv6 source address", words)?;
    let status = fixture.balancer.status()?;
    for backend in &status.backends {
        let is_v6 = backend.address.contains(':');
        ensure!(backend.next_hop_resolved != is_v6, "{backend:?}");
        ensure!(backend.tunnel_source == if is_v6 { "" } else { &*v4 }, "{backend:?}");
    }
    balancer.ip(&format!("address add {v6}/64 dev eth0 nodad"))?;
    wait_for_sources(&fixture, &v4, &v6)?;
    wait_for_no_condition(&fixture)?;
    let streams = streams(&fixture)?;
    Stream::finish_all(streams)
}

pub(super) fn of_settings(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start_with(sandbox, "src-given", Health::QUICK, &ALLOWED)?;
    let balancer = fixture.fabric.balancer.clone();
    balancer.ip(&format!("address add {}/32 dev lo", NEXT[0]))?;
    fixture.balancer.stop()?;
    fixture.balancer.more.extend(["--source".into(), NEXT[0].into()]);
    fixture.balancer.start()?;
    let [_, v6] = own();
    wait_for_sources(&fixture, NEXT[0], &v6)?;
    wait_for_no_condition(&fixture)?;
    let streams = streams(&fixture)?;
    balancer.ip(&format!("address del {}/32 dev lo", NEXT[0]))?;
    let subject = format!("source {}", NEXT[0]);
    wait_for_condition(&fixture, &subject, "not an address of this host: answers to checks")?;
    Stream::all_go_on(&streams).context("from an address that is gone")?;
    balancer.ip(&format!("address add {}/32 dev lo", NEXT[0]))?;
    wait_for_no_condition(&fixture)?;
    Stream::finish_all(streams)
}
