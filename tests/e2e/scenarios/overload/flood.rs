//! A flood of SYNs on a service over its capacity breaks no connection that overflowed before.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::daemon_memory::DaemonMemory;
use lb_e2e::harness;
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::Flood;
use lb_tests::traffic::LongConnections;

use crate::overload::fixture::{OverloadFixture, PATIENT};

/// Spilled connections that are open.
const SPILLED: usize = 500;
/// SYNs of the flood, and how many a second.
const SYNS: u64 = 2_000_000;
const PER_SECOND: u64 = 250_000;
/// Time for half of them on a machine that is not as fast: fewer are sent then.
const MOST: Duration = Duration::from_secs(60);
/// Of so many at least one is decided: the others found the balancer's queue full.
const PART: u64 = 20;
/// What the daemon may grow by in the second half, bytes: less than three for each SYN.
const GROWTH: u64 = 2 << 20;

/// The connections go on with the backends they have; no SYN leaves anything but a half-open cell, of which there is a fixed
/// number.
pub(crate) fn overflowed_connections(sandbox: &Sandbox) -> Result<()> {
    let mut overload = OverloadFixture::start(sandbox, "flood", PATIENT)?;
    // A connection now and then: all but the first ten and one every ten seconds are spilled.
    overload.apply("capacity = \"0.1/s\"")?;
    let connections = &mut LongConnections::new(&overload.fixture.fabric.client)?;
    connections.open(OverloadFixture::connections(), SPILLED + 20)?;
    connections.all_go_on(&[])?;
    let away =
        connections.connections().iter().filter(|each| each.backend().starts_with("us")).count();
    ensure!(away >= SPILLED, "{away} spilled");
    let open = |overload: &OverloadFixture| -> Result<u64> {
        Ok(overload.fixture.balancer.stats()?.remembered.open())
    };
    let held = open(&overload)?;
    ensure!(held == away as u64, "{held} cells for {away} connections");

    let events = overload.events()?;
    let [near, far] = overload.counters()?;
    let exchanges = exchanged(connections);
    let SocketAddr::V4(to) = OverloadFixture::connections() else { anyhow::bail!("not IPv4") };
    let mut flood = Flood::new(&overload.fixture.fabric, to)?;
    let begun = Instant::now();
    let half = flood.send(SYNS / 2, PER_SECOND, MOST)?;
    // Not before the flood: on a busy machine the daemon has still to do what it does once after an apply.
    let memory = DaemonMemory::read(&mut overload.fixture.balancer)?;
    let sent = half + flood.send(SYNS / 2, PER_SECOND, MOST)?;
    let took = begun.elapsed().as_secs_f64();
    let [near_after, far_after] = overload.counters()?;
    let meanwhile = exchanged(connections) - exchanges;
    let decided = near_after.offered - near.offered;
    let admitted = near_after.admitted - near.admitted;
    let grown = DaemonMemory::read(&mut overload.fixture.balancer)?.growth_since(&memory)?;
    harness::note(format!(
        "{sent} SYNs in {took:.1} s; the balancer decided {:.0} a second, {admitted} near; {meanwhile} \
         exchanges of {} connections meanwhile; the daemon grew by {} KiB in the second half",
        decided as f64 / took,
        connections.connections().len(),
        grown / 1024,
    ));
    ensure!((sent / PART..=sent).contains(&decided), "{decided} of {sent} in {took} s");
    ensure!(admitted as f64 <= 10.0 + 0.1 * took, "{admitted} admitted in {took} s");
    ensure!(far_after.overflow_in - far.overflow_in == decided - admitted, "{far_after:?}");
    ensure!(grown < GROWTH, "the daemon grew by {grown} bytes");

    // Nobody has lost anything, nor got what another one should have.
    connections.all_go_on(&[])?;
    let held = open(&overload)?;
    ensure!(held == away as u64, "{held} cells of open connections, {away} before the flood");
    let after = overload.events()?;
    let news = |event| after.get(&event).unwrap_or(&0) - events.get(&event).unwrap_or(&0);
    // Each SYN took a cell, of a SYN before it once there was no other, or found none.
    let remembered = news(Event::FlowTaken) + news(Event::FlowNoRoom) + news(Event::SynRepeated);
    ensure!(remembered >= decided, "{decided} decided, {after:?}, before {events:?}");
    Ok(())
}

fn exchanged(connections: &LongConnections) -> u64 {
    connections.connections().iter().map(|each| each.exchanges()).sum()
}
