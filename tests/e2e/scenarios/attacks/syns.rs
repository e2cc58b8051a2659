//! SYNs from random sources at a region that is full: each takes a half-open cell, and evicts another one.

use anyhow::{Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::fixture::{ECHO, LONG_CONNECTIONS};
use lb_e2e::harness;
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::{Forged, Pair};

use crate::attacks::fixture::{AttackFixture, NEAR, Pool, ROUND_TRIP};

pub(crate) fn at_a_full_region(sandbox: &Sandbox) -> Result<()> {
    let (mut attack, mut connections) = AttackFixture::start_full(sandbox, "syns")?;
    let connections = &mut connections;
    let cells = attack.cells;
    let open = attack.held("open")?;
    ensure!(open >= 80, "{open} connections overflowed");

    let honest = attack.honest_of_both(Pair::Handshake, ROUND_TRIP)?;
    let control = attack.alone(&honest)?;
    // Fills the table, and evicts every half-open cell.
    let mut flood = attack.flood(ECHO, &[Forged::Syn], 21)?;
    attack.fill(&mut flood, Event::FlowTaken, 2 * cells)?;
    let half_open = attack.held("half_open")?;
    ensure!(half_open + open > cells * 99 / 100, "{half_open} half-open cells");

    let dropped = attack.dropped()?;
    let taken = attack.fixture.count(Event::FlowTaken)?;
    let honest = attack.honest_of_both(Pair::Handshake, ROUND_TRIP)?;
    let (paired, rate) = attack.beside(&mut flood, || {
        let paired = attack.alone(&honest)?;
        // Clients with a kernel, which repeats what is lost.
        for pool in [Pool::Attacked, Pool::Other] {
            connections.open(pool.endpoint(LONG_CONNECTIONS), 60)?;
        }
        connections.all_go_on(&[])?;
        Ok(paired)
    })?;
    let taken = attack.fixture.count(Event::FlowTaken)? - taken;
    for (pool, (paired, control)) in ["attacked", "other"].iter().zip(paired.iter().zip(&control)) {
        harness::note(format!("{pool} pool: {paired}; before the attack: {control}"));
        ensure!(paired.parted == 0, "{pool}: {paired}");
        ensure!(paired.complete() * 10 >= control.complete() * 9, "{pool}: {paired}");
        // Where the limit is spent, clients connect elsewhere.
        let near = paired.complete_at(|backend| attack.is_near(backend));
        ensure!(near <= NEAR, "{pool}: {near} in the full region");
    }
    harness::note(format!("{rate:.0} SYNs a second at {cells} cells; {taken} cells taken"));
    ensure!(attack.dropped()? == dropped, "the balancer dropped packets");
    connections.all_go_on(&[])?;
    let still = attack.held("open")?;
    ensure!(still >= open, "{still} open cells, {open} before");
    Ok(())
}
