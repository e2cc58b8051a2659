//! The doctor reports services whose backends are down or get no packets.

use std::{net::IpAddr, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::printed::Finding;
use lb_tests::daemon::{Balancer, Check, Document, Member, Pool, Receiver, Service};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};
use lb_tests::traffic::{WebServer, Work};

use super::{host::DoctorHost, set_up};

/// One service with a backend in each region, looked at by a check.
fn document(fabric: &Fabric) -> String {
    let member = |b: &lb_tests::topology::Backend| Member {
        address: b.v4.into(),
        region: b.region.into(),
        weight: 1,
    };
    Document {
        hash_key: None,
        regions: REGIONS.map(String::from).to_vec(),
        checks: vec![Check {
            name: "web".into(),
            path: None,
            port: 80,
            interval_ms: 500,
            fall: 2,
            is_tunnelled: true,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["web".into()],
            members: fabric.backends.iter().map(member).collect(),
        }],
        services: vec![Service {
            name: "web".into(),
            address: Fabric::VIP_V4.into(),
            port: 80,
            protocol: "tcp",
            pool: "web".into(),
        }],
    }
    .text()
}

pub(crate) fn without_backends(sandbox: &Sandbox) -> Result<()> {
    let (fabric, binaries) = set_up(sandbox, "services")?;
    let [near, far] = &fabric.backends[..] else { anyhow::bail!("two backends") };
    let mut receivers = Vec::new();
    for backend in [near, far] {
        let (from, vips) = ([Fabric::BALANCER_V4.into()], [Fabric::VIP_V4.into()]);
        receivers.push(Receiver::start(sandbox, &binaries, &backend.node, &from, &vips)?);
    }
    let work = Work { time: Duration::from_millis(1), at_a_time: 4 };
    let start = |node| WebServer::start(node, work);
    let [server_near, server_far] = [start(&near.node)?, start(&far.node)?];
    let node = &fabric.balancer;
    let mut balancer = Balancer::started(sandbox, &binaries, node, REGIONS[0])?;
    balancer.apply(&document(&fabric))?;
    let both: [IpAddr; 2] = [near.v4.into(), far.v4.into()];
    balancer.wait_up(&both, PATIENCE)?;
    let host = DoctorHost::balancing(node, &binaries, &balancer);
    host.until_wrong(&[])?;
    let first = services(&host)?;
    ensure!(first.found == "2 backends up", "{first:?}");

    // An application that is stopped, and then the other one.
    drop(server_far);
    let wrong = host.until_wrong(&[("services", "warning", "web")])?;
    ensure!(wrong[0].found == "1 of 2 backends is up", "{wrong:?}");
    let refused = format!("check web of {}: connection refused", Fabric::VIP_V4);
    ensure!(wrong[0].why == format!("{}: {refused}", far.v4), "{wrong:?}");
    drop(server_near);
    let wrong = host.until_wrong(&[("services", "problem", "web")])?;
    ensure!(wrong[0].found == "none of 2 backends is up", "{wrong:?}");
    let why = format!("{} and 1 more: {refused}", near.v4);
    ensure!(wrong[0].why == why, "{wrong:?}");
    let all = host.ask()?.0;
    ensure!(all.findings[0].check == "services", "services come first: {all:?}");

    // What an operator took out is no fault while another backend is up; without one it is, and is mended.
    let _servers = [start(&near.node)?, start(&far.node)?];
    balancer.wait_up(&both, PATIENCE)?;
    host.until_wrong(&[])?;
    balancer.cli(&["backend", "drain", &near.v4.to_string()])?;
    host.until_wrong(&[])?;
    let first = services(&host)?;
    ensure!(
        first.found == "1 backend up, 1 taken out by the configuration or overrides",
        "{first:?}"
    );
    // The last one is not taken out by mistake.
    let last = ["backend", "disable", &far.v4.to_string()];
    let refused = balancer.try_cli(&last, None)?;
    let said = String::from_utf8_lossy(&refused.stderr);
    let stops = "this stops packets: pool web has no backend left for new connections";
    ensure!(refused.status.code() == Some(2) && said.contains(stops), "{refused:?}");
    host.until_wrong(&[])?;
    balancer.cli(&[&last[..], &["--yes"]].concat())?;
    let wrong = host.until_wrong(&[("services", "problem", "web")])?;
    let why = format!(
        "{0}: override backends/{0}/drain; {1}: override backends/{1}/disable",
        near.v4, far.v4
    );
    ensure!(wrong[0].why == why, "{wrong:?}");
    for command in &wrong[0].mend {
        let mut shell = balancer.shell(command);
        let status = shell.stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{command}: {status}");
    }
    balancer.wait_up(&both, PATIENCE)?;
    host.until_wrong(&[])?;

    deaf_router(&fabric, &host)?;

    // Nobody else knows.
    balancer.kill()?;
    let faults = [("services", "warning", "balancer"), ("daemon", "problem", "balancer")];
    host.until_wrong(&faults)?;
    Ok(())
}

/// A gateway that answers for its address no more: what the kernel believed of it a moment ago is no sign that
/// packets get anywhere.
fn deaf_router(fabric: &Fabric, host: &DoctorHost) -> Result<()> {
    // The kernel is sure of a neighbour for so long; by default half a minute, which is too long for a test.
    fabric.balancer.sysctls(&[
        ("net.ipv4.neigh.eth0.base_reachable_time_ms", "5000"),
        ("net.ipv4.neigh.eth0.delay_first_probe_time", "1"),
    ])?;
    fabric.router.ip("link set balancer arp off")?;
    let is = |it: &Finding, check: &str, level: &str| (&*it.check, &*it.level) == (check, level);
    // The checks find it before the kernel gives the neighbour up.
    let mut last = Vec::new();
    let down = until("no backend is up", PATIENCE, || {
        last = host.ask()?.0.findings;
        Ok(last.iter().any(|it| is(it, "services", "problem")).then_some(()))
    });
    down.with_context(|| format!("{last:#?}"))?;
    let away = last.iter().find(|it| is(it, "tunnels", "warning"));
    let away = away.with_context(|| format!("tunnels are in order: {last:#?}"))?;
    ensure!(away.found == "the host does not answer, in or outside the tunnel", "{away:?}");
    let no_way = [
        ("services", "problem", "web"),
        ("neighbours", "problem", "10.0.0.1 on eth0"),
        ("tunnels", "warning", &*format!("{} and 1 more", fabric.backends[0].v4)),
    ];
    // The daemon takes the next hop away as soon as the kernel has given the neighbour up.
    until("the reason is the next hop", PATIENCE, || {
        let wrong = host.until_wrong(&no_way)?;
        Ok(wrong[0].why.contains("no next hop: ").then_some(()))
    })?;
    fabric.router.ip("link set balancer arp on")?;
    host.until_wrong(&[])?;
    Ok(())
}

/// What is said of services, first of all.
fn services(host: &DoctorHost) -> Result<Finding> {
    let first = host.ask()?.0.findings.swap_remove(0);
    ensure!(first.check == "services", "{first:?}");
    Ok(first)
}
