//! Metrics at the start, after configurations, and of what backends report.

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::scrape;
use lb_tests::openmetrics::Exposition;
use lb_tests::process::until;

use super::{PATIENCE, watch::Watch};
use crate::metrics::fixture::MetricsFixture;
use lb_common::abi::names;
use lb_maps::{Component, Pins};
use nix::sys::signal::Signal;

pub(super) fn fixed(first: &Exposition) -> Result<()> {
    let builds: Vec<_> = first.samples("spillway_build_info").collect();
    ensure!(builds.len() == 1, "{builds:?}");
    let [(labels, _)] = builds[..] else { unreachable!() };
    ensure!((labels["component"].as_str(), labels["region"].as_str()) == ("balancer", "eu"));
    ensure!(labels["version"] == env!("CARGO_PKG_VERSION") && labels["program"].len() == 16);
    // docs/operations.md: what the table holds unless said otherwise.
    ensure!(first.value("spillway_flow_table_room_cells", &[]) == Some(1_048_576.0));
    ensure!(first.value("spillway_generation", &[]) == Some(0.0));
    ensure!(first.value("spillway_packet_path_behind", &[]) == Some(0.0));
    Ok(())
}

pub(super) fn configured(watch: &mut Watch<'_>) -> Result<()> {
    watch.fixture.balancer.apply(&watch.fixture.configuration(false))?;
    watch.until("a configuration is applied", |now| {
        let up = now.value("spillway_backend_up", &[]);
        let hops = now.value("spillway_backend_next_hop_resolved", &[]);
        // Six in each of three pools, three in two; six hosts.
        (up, hops) == (Some(24.0), Some(6.0))
    })?;
    let now = &watch.before;
    let of = |pool, region| [("pool", pool), ("region", region)];
    for (name, labels, wanted) in [
        ("generation", vec![], 1.0),
        ("balancers", vec![], 2.0),
        ("service_backends", vec![("service", "datagrams")], 6.0),
        ("service_backends_up", vec![("service", "datagrams")], 6.0),
        ("group_backends", of("even", "us").into(), 3.0),
        ("group_scaler_ratio", of("far", "eu").into(), 0.0),
        ("group_scaler_ratio", of("even", "eu").into(), 1.0),
        ("group_portion_ratio", of("strict", "eu").into(), 0.5),
        ("group_limit_connections_per_second", of("strict", "eu").into(), 0.05),
        ("group_capacity_connections_per_second", of("strict", "eu").into(), 0.1),
        ("group_configured_connections_per_second", of("strict", "eu").into(), 0.1),
        ("group_limit_connections_per_second", of("far", "eu").into(), 0.0),
    ] {
        let value = now.value(&format!("spillway_{name}"), &labels);
        let near = value.is_some_and(|value| (value - wanted).abs() < 1e-6);
        ensure!(near, "{name} {labels:?}: {value:?}, not {wanted}");
    }
    let unlimited = now.value("spillway_group_limit_connections_per_second", &of("even", "eu"));
    ensure!(unlimited.is_none(), "there is no limit to show");
    Ok(())
}

/// What backends say is shown, and a share that one asks for is its own.
pub(super) fn said(watch: &mut Watch<'_>) -> Result<()> {
    let of = |backend| [("pool", "even"), ("backend", backend), ("region", "eu")];
    let (share, utilisation) =
        ("spillway_backend_share_ratio", "spillway_backend_utilisation_ratio");
    ensure!(watch.before.value(utilisation, &[]).is_none(), "nobody has said one");
    ensure!(
        watch.before.value(share, &of("10.1.0.11")) == Some(1.0),
        "it takes all that is its own"
    );
    // Too little to do for shares to follow it.
    watch.fixture.agents[0].say("60% cpu_utilization=0.05");
    watch.until("backends say how they are", |now| {
        // 153 of 255.
        now.value(share, &of("10.1.0.11")) == Some(0.6)
            && now.value(utilisation, &of("10.1.0.11")) == Some(0.05)
    })?;
    ensure!(watch.before.value(share, &of("10.1.0.12")) == Some(1.0), "another's is not touched");
    watch.fixture.agents[0].say("100%");
    until("it has its whole share again", PATIENCE, || {
        let now = scrape(&watch.fixture.fabric.balancer)?;
        Ok((now.value(share, &of("10.1.0.11")) == Some(1.0)).then_some(()))
    })
}

/// Sets an override, and ends it.
pub(super) fn overridden(watch: &mut Watch<'_>) -> Result<()> {
    let weigh = |percent: &str| {
        let weigh = ["backend", "weight", "10.1.0.12", "--percent", percent];
        watch.fixture.balancer.cli(&weigh)
    };
    weigh("50")?;
    weigh("40")?;
    watch.until("an override is set", |now| {
        now.value("spillway_overrides", &[("kind", "weight")]) == Some(1.0)
    })?;
    watch.fixture.balancer.cli(&["backend", "weight", "10.1.0.12", "--percent", "100"])?;
    Ok(())
}

pub(super) fn reconfigured(watch: &mut Watch<'_>) -> Result<()> {
    watch.fixture.balancer.apply(&watch.fixture.configuration(true))?;
    watch.until("another configuration is applied", |now| {
        let out = [("pool", "away"), ("region", "eu")];
        let settling = [("pool", "even")];
        now.value("spillway_group_marked_out", &out) == Some(1.0)
            && now.value("spillway_pool_settling", &settling) == Some(1.0)
    })?;
    let labels = [("pool", "away"), ("region", "eu"), ("state", "disabled")];
    let disabled = watch.before.value("spillway_backend_state", &labels);
    ensure!(disabled == Some(3.0), "{disabled:?} of 3 are disabled");
    ensure!(watch.before.value("spillway_generation", &[]) == Some(2.0));
    Ok(())
}

/// A frozen map takes no writes from the daemon: the generation is in force, the packet path behind.
pub(super) fn refused(watch: &mut Watch<'_>) -> Result<()> {
    let fixture = watch.fixture;
    let pins = Pins::new(&fixture.balancer.bpffs, Component::Balancer);
    let map = pins.map(names::ADDRESSES).display().to_string();
    fixture.fabric.balancer.run("bpftool", ["map", "freeze", "pinned", &map])?;
    let more = "[[service]]\nname = \"late\"\naddress = \"203.0.113.77\"\nport = 7005\n\
                protocol = \"tcp\"\npool = \"even\"\n";
    let text = fixture.configuration(true) + more;
    ensure!(fixture.balancer.apply(&text).is_err(), "a frozen map takes a service");
    let failures = "spillway_publish_failures_total";
    watch.until("the kernel refuses a write", |now| {
        now.value("spillway_packet_path_behind", &[]) == Some(1.0)
            && now.value(failures, &[]) >= Some(2.0)
    })?;
    ensure!(watch.before.value("spillway_generation", &[]) == Some(3.0), "it is in force");
    Ok(())
}

/// Takes the program off, and puts another one in its place while the daemon is stopped, which would attach it again.
pub(super) fn take_off(fixture: &mut MetricsFixture) -> Result<()> {
    let pins = Pins::new(&fixture.balancer.bpffs, Component::Balancer);
    let link = pins.link("eth0").display().to_string();
    let daemon = fixture.balancer.running().context("the daemon does not run")?;
    daemon.signal(Signal::SIGSTOP)?;
    let node = &fixture.fabric.balancer;
    node.run("bpftool", ["link", "detach", "pinned", &link])?;
    fixture.fabric.net.pass_all(node, "eth0")?;
    daemon.signal(Signal::SIGCONT)
}

pub(super) fn taken_off(watch: &mut Watch<'_>) -> Result<()> {
    let attached = [("component", "balancer"), ("interface", "eth0")];
    watch.until("the program is taken off", |now| {
        now.value("spillway_interface_attached", &attached) == Some(0.0)
    })
}
