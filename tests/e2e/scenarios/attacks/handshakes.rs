//! Forged handshakes, SYN and ACK, from random sources at a region that is full: each opens a cell for twelve minutes.

use anyhow::{Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::daemon_memory::DaemonMemory;
use lb_e2e::fixture::{ECHO, LONG_CONNECTIONS};
use lb_e2e::harness;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::{Forged, Pair};

use crate::attacks::fixture::{AttackFixture, NEAR, Pool, REJECTING, ROUND_TRIP};

/// What the daemon may grow by, bytes.
const GROWTH: u64 = 2 << 20;

pub(crate) fn of_one_pool(sandbox: &Sandbox) -> Result<()> {
    let (mut attack, mut connections) = AttackFixture::start_full(sandbox, "handshakes")?;
    let connections = &mut connections;
    let cells = attack.cells;
    let clients = |attack: &mut AttackFixture| -> Result<_> {
        let rejecting = attack.honest_at(Pool::Attacked, REJECTING, Pair::Handshake, ROUND_TRIP)?;
        let [attacked, other] = attack.honest_of_both(Pair::Handshake, ROUND_TRIP)?;
        Ok([attacked, other, rejecting])
    };
    let honest = clients(&mut attack)?;
    let control = attack.alone(&honest)?;
    ensure!(control.iter().all(|paired| paired.parted == 0), "{control:?}");
    ensure!(!attack.is_short_of_room()?, "short of room without an attack");

    // All SYNs first: their cells do not count. Then what opens them, and then both in turn.
    let mut syns = attack.flood(ECHO, &[Forged::Syn], 31)?;
    let sent = attack.fill(&mut syns, Event::FlowTaken, cells)?;
    let mut acks = attack.flood(ECHO, &[Forged::Ack], 31)?;
    acks.send(sent, attack.fast(), PATIENCE)?;
    let opened_later = attack.held("open")?;
    let mut flood = attack.flood(ECHO, &[Forged::Syn, Forged::Ack], 33)?;
    attack.fill(&mut flood, Event::FlowNoRoom, 10_000)?;
    let open = attack.held("open")?;
    // Some open theirs while the daemon counts cells anew.
    let allowed = cells / 2 + cells / 64;
    ensure!(opened_later <= allowed && open <= allowed, "{opened_later}, then {open} are open");
    ensure!(opened_later >= cells / 4, "the flood opened {opened_later} cells");

    let memory = DaemonMemory::read(&mut attack.fixture.balancer)?;
    let dropped = attack.dropped()?;
    let honest = clients(&mut attack)?;
    let (paired, rate) = attack.beside(&mut flood, || {
        let paired = attack.alone(&honest)?;
        for pool in [Pool::Attacked, Pool::Other] {
            connections.open(pool.endpoint(LONG_CONNECTIONS), 30)?;
        }
        connections.all_go_on(&[])?;
        Ok(paired)
    })?;
    let dropped = attack.dropped()? - dropped;
    harness::note(format!(
        "all SYNs first: {opened_later} of {cells} cells open, then {open}; {rate:.0} forged handshakes a second"
    ));
    let names = ["attacked pool", "other pool", "attacked pool, rejecting"];
    for ((name, paired), control) in names.iter().zip(&paired).zip(&control) {
        harness::note(format!("{name}: {paired}; before the attack: {control}"));
        // Where half of the cells are open, some flows have a single one that may be theirs, and so has a forged one.
        ensure!(paired.parted * 100 <= paired.complete(), "{name}: {paired}");
    }
    let near = |n: usize| paired[n].complete_at(|backend| attack.is_near(backend));
    // Without room for a cell, a full home keeps its connections; a service that rejects refuses them.
    ensure!(near(0) * 10 >= control[0].complete() * 9, "{} near", near(0));
    ensure!(paired[2].complete() <= NEAR, "{} of a service that rejects", paired[2]);
    ensure!(dropped as usize * 10 >= control[2].complete() * 9, "{dropped} refused");
    // The other pool has room.
    ensure!(paired[1].complete() * 10 >= control[1].complete() * 9, "{}", paired[1]);
    ensure!(near(1) <= NEAR, "{} of the other pool are in its full region", near(1));
    until("the daemon shows it", PATIENCE, || Ok(attack.is_short_of_room()?.then_some(())))?;
    connections.all_go_on(&[])?;
    // On a busy machine the daemon may do in one of two floods what it does once after an apply.
    let first = DaemonMemory::read(&mut attack.fixture.balancer)?;
    flood.send(cells / 2, attack.fast(), PATIENCE)?;
    let second = DaemonMemory::read(&mut attack.fixture.balancer)?;
    let grown = first.growth_since(&memory)?.min(second.growth_since(&first)?);
    harness::note(format!("the daemon grew by {} KiB", grown / 1024));
    ensure!(grown < GROWTH, "the daemon grew by {grown} bytes in each of two floods");
    Ok(())
}
