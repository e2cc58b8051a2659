//! A gateway that says nothing for a moment: open connections behind it wait, new ones go to backends behind another.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health, LONG_CONNECTIONS, Tunnel, configuration};
use lb_e2e::harness::{self, Case};
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{LongConnectionServer, LongConnections};

use crate::route_changes::{ALLOWED, add_arm};

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_moments_silence_breaks_no_connection", a_moments_silence),
    Case::waits("without_checks_connections_wait_for_ten_seconds", without_checks),
];

/// Connections behind both gateways.
const CONNECTIONS: usize = 500;
/// The backend behind the second gateway.
const OTHER: &str = "eu2";
/// Checks that need longer to notice than a gateway is silent here.
const SLOW: Health = Health { interval_ms: 3000, fall: 4 };

/// Long connections to backends of which one is behind a second gateway.
struct Behind {
    fixture: Fixture,
    connections: LongConnections,
    _servers: LongConnectionServer,
}

impl Behind {
    fn start(sandbox: &Sandbox, name: &str, has_checks: bool) -> Result<Self> {
        let fixture = Fixture::idle_with(sandbox, name, &ALLOWED, &[])?;
        let nodes = fixture.fabric.backends.iter().map(|backend| &backend.node);
        let servers = LongConnectionServer::start(nodes, LONG_CONNECTIONS)?;
        add_arm(&fixture)?;
        let other = fixture.fabric.backends[fixture.number(OTHER)?].v4;
        let balancer = &fixture.fabric.balancer;
        balancer.ip(&format!("route add {other} via 10.9.0.1"))?;
        // The kernel gives a neighbour up within a second.
        balancer.sysctls(&[
            ("net.ipv4.neigh.eth0.retrans_time_ms", "100"),
            ("net.ipv4.neigh.eth0.base_reachable_time_ms", "500"),
            ("net.ipv4.neigh.eth0.delay_first_probe_time", "0"),
        ])?;
        let mut document = configuration(&fixture.fabric, SLOW);
        document.services.push(Tunnel::Ipip.service("connections", LONG_CONNECTIONS, "tcp"));
        if !has_checks {
            document.pools.iter_mut().for_each(|pool| pool.checks.clear());
        }
        fixture.balancer.apply(&document.text())?;
        fixture.wait_up(&[])?;
        let mut connections = LongConnections::new(&fixture.fabric.client)?;
        connections.open(Self::service(), CONNECTIONS)?;
        connections.all_go_on(&[])?;
        Ok(Self { fixture, connections, _servers: servers })
    }

    fn service() -> SocketAddr {
        Tunnel::Ipip.endpoint(LONG_CONNECTIONS)
    }

    /// Whether the first gateway answers ARP requests (`arp_ignore`).
    fn set_answers(&self, answers: bool) -> Result<()> {
        let ignore = if answers { "0" } else { "8" };
        self.fixture.fabric.router.sysctls(&[("net.ipv4.conf.balancer.arp_ignore", ignore)])
    }

    /// Makes the first gateway silent, until packets of open connections wait for it.
    fn silence(&self) -> Result<()> {
        let before = self.waiting()?;
        self.set_answers(false)?;
        until("packets are dropped", PATIENCE, || Ok((self.waiting()? > before).then_some(())))
    }

    /// Packets that were dropped so far because their next hop was not there.
    fn waiting(&self) -> Result<u64> {
        self.fixture.balancer.packets("next_hop_unresolved")
    }

    /// Opens a connection, which must go to the backend that is reached.
    fn open_another(&mut self) -> Result<()> {
        let opened = self.connections.open(Self::service(), 1)?;
        let at = opened.first().context("it was opened")?.backend();
        ensure!(at == OTHER, "a new connection went to {at}");
        Ok(())
    }
}

fn a_moments_silence(sandbox: &Sandbox) -> Result<()> {
    let mut behind = Behind::start(sandbox, "moment", true)?;
    behind.silence()?;
    behind.open_another()?;
    pause(Duration::from_secs(3));
    behind.connections.ensure_open()?;
    behind.set_answers(true)?;
    behind.connections.all_go_on(&[])?;

    // A daemon that dies meanwhile leaves it to the next one.
    behind.silence()?;
    behind.fixture.balancer.kill()?;
    let before = behind.waiting()?;
    until("they wait without a daemon", PATIENCE, || {
        Ok((behind.waiting()? > before).then_some(()))
    })?;
    behind.fixture.balancer.start()?;
    let before = behind.waiting()?;
    until("they still wait", PATIENCE, || Ok((behind.waiting()? > before).then_some(())))?;
    behind.connections.ensure_open()?;
    behind.set_answers(true)?;
    behind.connections.all_go_on(&[])
}

/// The control: longer silence where nothing else says that a backend is gone. Only the connections of the backend that is
/// reached are left.
fn without_checks(sandbox: &Sandbox) -> Result<()> {
    let mut behind = Behind::start(sandbox, "unchecked", false)?;
    let names: Vec<_> =
        behind.fixture.fabric.backends.iter().map(|backend| backend.name().to_owned()).collect();
    let eu: Vec<_> = names.iter().filter(|name| name.starts_with("eu") && *name != OTHER).collect();
    let lost = |behind: &Behind| {
        let all = behind.connections.connections().iter();
        all.filter(|each| each.ensure_open().is_err()).count()
    };
    behind.silence()?;
    let begun = std::time::Instant::now();
    behind.open_another()?;
    until("connections move", PATIENCE, || Ok((lost(&behind) > 0).then_some(())))?;
    let took = begun.elapsed();
    harness::note(format!("the first connection was reset after {:.1} s", took.as_secs_f64()));
    // The daemon looks each second; packets before `begun` may have been the first to wait.
    ensure!(took > Duration::from_secs(8), "after {took:?}");
    let eu: Vec<&str> = eu.iter().map(|name| name.as_str()).collect();
    behind.set_answers(true)?;
    behind.connections.forget(&eu);
    behind.connections.all_go_on(&[])
}
