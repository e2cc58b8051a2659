//! Statistics count each packet once and nothing else.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::syns;
use lb_tests::topology::Fabric;
use lb_tests::traffic::datagrams;
use spillway_proto::v1::{GroupCounters, StatsRequest, StatsResponse, Traffic};

const SYNS: u64 = 300;
/// Ethernet, IPv4, TCP.
const SYN_BYTES: u64 = 14 + 20 + 20;
const DATAGRAMS: u64 = 40;
/// Ethernet, IPv4, UDP, payload.
const DATAGRAM_BYTES: u64 = 14 + 20 + 8 + 100;

/// So many SYNs and datagrams of a known size are as many everywhere they are counted, and nothing
/// else rises.
pub(crate) fn exactly(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "counted", Health::QUICK)?;
    syns::forget(&fixture.fabric.backends)?;
    let client = fixture.balancer.client()?;
    let stats = || client.call(async |mut c| c.stats(StatsRequest {}).await);

    let before = stats()?;
    let to = Tunnel::Ipip.endpoint(ECHO);
    let SocketAddr::V4(to_v4) = to else { anyhow::bail!("{to} is of IPv6") };
    syns::send_all(&fixture.fabric.client, to_v4, 11, SYNS as usize)?;
    let from = Fabric::CLIENT_V4.into();
    let _sockets = datagrams(&fixture.fabric.client, from, to, DATAGRAMS as usize, 100)?;
    let of_service = |of: &StatsResponse, name: &str| -> Result<Traffic> {
        let found = of.services.iter().find(|service| service.service == name);
        found.and_then(|service| service.traffic).context("no traffic of it")
    };
    let sum = SYNS + DATAGRAMS;
    until("all came", PATIENCE, || {
        let now = stats()?;
        let (tcp, udp) = (of_service(&now, "ipip-tcp-7")?, of_service(&now, "ipip-udp-7")?);
        Ok((tcp.packets >= SYNS && udp.packets >= DATAGRAMS).then_some(()))
    })?;
    // The counters are read one after the other, and a packet moves its own one after the other too: its
    // verdict's last of all. What is read when that has moved is whole.
    until("all have a verdict", PATIENCE, || {
        let sent = |of: &StatsResponse| {
            let row = of.verdicts.iter().find(|row| row.verdict == "transmitted");
            row.map_or(0, |row| row.packets)
        };
        Ok((sent(&stats()?) - sent(&before) >= sum).then_some(()))
    })?;
    let after = stats()?;

    for service in &after.services {
        let (was, is) = (of_service(&before, &service.service)?, service.traffic.context("unset")?);
        let expected = match &*service.service {
            "ipip-tcp-7" => (SYNS, SYNS * SYN_BYTES, SYNS),
            "ipip-udp-7" => (DATAGRAMS, DATAGRAMS * DATAGRAM_BYTES, 0),
            _ => (0, 0, 0),
        };
        ensure!(risen(was, is) == expected, "{}: {:?}", service.service, risen(was, is));
    }
    backends(&fixture, &before, &after)?;
    groups(&before, &after)?;
    verdicts(&before, &after)?;
    // A SYN is remembered for a while; at home nothing else is.
    for (was, is) in before.flows.iter().zip(&after.flows) {
        let may_grow = is.state == "half_open_at_home";
        ensure!(was.state == is.state && (may_grow || is.held == was.held), "{was:?}, {is:?}");
    }
    ensure!(after.flows.len() == 6 && after.flow_room == 1 << 20, "{after:?}");
    ensure!(after.pools_with_displaced.is_empty(), "{:?}", after.pools_with_displaced);

    // Asking counts nothing, and a restart of the daemon forgets nothing.
    let mut fixture = fixture;
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    let client = fixture.balancer.client()?;
    let again = client.call(async |mut c| c.stats(StatsRequest {}).await)?;
    ensure!(again.services == after.services && again.backends == after.backends, "{again:?}");
    ensure!(again.groups == after.groups, "{:?}", again.groups);
    Ok(())
}

fn risen(was: Traffic, is: Traffic) -> (u64, u64, u64) {
    (is.packets - was.packets, is.bytes - was.bytes, is.connections - was.connections)
}

/// The near region has them all, each backend some.
fn backends(fixture: &Fixture, before: &StatsResponse, after: &StatsResponse) -> Result<()> {
    let mut sum = (0, 0, 0);
    for (was, is) in before.backends.iter().zip(&after.backends) {
        ensure!(was.backend == is.backend, "{before:?}");
        let risen = risen(was.traffic.context("unset")?, is.traffic.context("unset")?);
        let backend = fixture.at(is.backend.parse()?)?;
        let near = backend.region == "eu" && is.backend == backend.v4.to_string();
        ensure!(near == (risen.0 > 0), "{}: {risen:?}", is.backend);
        sum = (sum.0 + risen.0, sum.1 + risen.1, sum.2 + risen.2);
    }
    let bytes = SYNS * SYN_BYTES + DATAGRAMS * DATAGRAM_BYTES;
    ensure!(sum == (SYNS + DATAGRAMS, bytes, SYNS), "{sum:?}");
    Ok(())
}

/// New connections are those of TCP: flows of UDP that is not tracked have none.
fn groups(before: &StatsResponse, after: &StatsResponse) -> Result<()> {
    for (was, is) in before.groups.iter().zip(&after.groups) {
        let (was, counters) = (was.counters.context("unset")?, is.counters.context("unset")?);
        let mut expected = was;
        if (&*is.pool, &*is.region) == ("v4", "eu") {
            expected =
                GroupCounters { offered: was.offered + SYNS, admitted: was.admitted + SYNS, ..was };
        }
        ensure!(counters == expected, "{} in {}: {counters:?}", is.pool, is.region);
    }
    ensure!(after.groups.len() == 4, "{:?}", after.groups);
    Ok(())
}

/// What is passed to the host beside them is its own: health checks and neighbours.
fn verdicts(before: &StatsResponse, after: &StatsResponse) -> Result<()> {
    for (was, is) in before.verdicts.iter().zip(&after.verdicts) {
        let risen = (is.packets - was.packets, is.bytes - was.bytes);
        let bytes = SYNS * SYN_BYTES + DATAGRAMS * DATAGRAM_BYTES;
        let expected = match (&*is.verdict, &*is.action) {
            ("transmitted", _) => (SYNS + DATAGRAMS, bytes),
            (_, "pass") => risen,
            _ => (0, 0),
        };
        ensure!(risen == expected, "{}: {risen:?}, not {expected:?}", is.verdict);
    }
    Ok(())
}
