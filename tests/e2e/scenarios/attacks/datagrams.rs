//! One datagram each from random sources at a service that tracks flows.

use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::clock::Coarse;
use lb_common::abi::counter::Event;
use lb_common::abi::service::SERVICE_TRACKED;
use lb_e2e::fixture::ECHO;
use lb_e2e::harness;
use lb_tests::packets::objects;
use lb_tests::process::PATIENCE;
use lb_tests::sandbox::Sandbox;
use lb_tests::statistics::median;
use lb_tests::syns::{Forged, Pair};
use lb_tests::test_run::fill;
use lb_tests::test_run::frame::Packet;
use lb_tests::test_run::programs::{Programs, Settings, Target};
use lb_tests::test_run::throughput::{Exit, Veths};
use lb_tests::turns::by_turns;

use crate::attacks::fixture::{AttackFixture, CELLS, FULL, Pool};

/// Time from a flow's first datagram to the second.
const WAIT: Duration = Duration::from_millis(100);
/// Flows in use.
const IN_USE: usize = 60;

/// The backend that answers a flow.
fn ask(socket: &UdpSocket) -> Result<String> {
    let mut buffer = [0; 64];
    // Either may be lost on a link.
    for _ in 0..20 {
        socket.send(b"?").context("send")?;
        if let Ok(length) = socket.recv(&mut buffer) {
            return Ok(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
    }
    anyhow::bail!("no answer within {PATIENCE:?}")
}

pub(crate) fn at_a_tracked_service(sandbox: &Sandbox) -> Result<()> {
    let mut attack = AttackFixture::start(sandbox, "datagrams", CELLS)?;
    let cells = attack.cells;
    // All but a few are away from home.
    attack.apply([FULL, ""])?;
    let to = Pool::Attacked.endpoint(ECHO);
    let sockets: Vec<_> = attack.fixture.fabric.client.enter(|| -> Result<_> {
        let socket = |_| -> Result<_> {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(to)?;
            socket.set_read_timeout(Some(PATIENCE / 20))?;
            Ok(socket)
        };
        (0..IN_USE).map(socket).collect()
    })??;
    let asked = || sockets.iter().map(ask).collect::<Result<Vec<_>>>();
    let places = asked()?;
    ensure!(asked()? == places, "flows moved without an attack");

    // Of honest flows some go home and some do not: one that is forgotten may go elsewhere with the next datagram.
    attack.apply(["[[pool.group]]\nregion = \"eu\"\ncapacity = \"50/s\"\n", ""])?;
    let honest = attack.honest(Pool::Attacked, Pair::Datagrams, WAIT)?;
    let control = attack.alone(&[honest])?.swap_remove(0);
    let mut flood = attack.flood(ECHO, &[Forged::Datagram], 51)?;
    attack.fill(&mut flood, Event::FlowTaken, 2 * cells)?;
    let held = attack.held("datagrams")?;
    ensure!(held > cells * 99 / 100, "{held} cells");

    let honest = attack.honest(Pool::Attacked, Pair::Datagrams, WAIT)?;
    let dropped = attack.dropped()?;
    let (paired, rate) = attack.beside(&mut flood, || {
        let paired = attack.alone(&[honest])?;
        ensure!(asked()? == places, "flows in use moved");
        Ok(paired)
    })?;
    let paired = &paired[0];
    let near = paired.complete_at(|backend| attack.is_near(backend));
    harness::note(format!(
        "{rate:.0} datagrams a second at {cells} cells: {paired}, of which {near} at home; before the attack: {control}"
    ));
    ensure!(paired.parted == 0, "{paired}");
    ensure!((20..280).contains(&near), "{near} near: moves would not be seen");
    ensure!(paired.complete() * 10 >= control.complete() * 9, "{paired}");
    ensure!(attack.dropped()? == dropped, "the balancer dropped datagrams");
    ensure!(asked()? == places, "flows in use moved");
    Ok(())
}

/// Datagrams over a veth pair, each of another source, at services that track flows and at the same ones stateless, by turns.
/// The table is full of them.
pub(crate) fn throughput(_: &Sandbox) -> Result<()> {
    const FRAMES: u32 = 1_000_000;
    const ROUNDS: usize = 5;
    const ATTEMPTS: usize = 10;
    /// What is left of the throughput at least; 0.30 to 0.49 were measured.
    const SHARE: f64 = 0.15;
    let flags = [0, SERVICE_TRACKED | (Coarse::units(60) as u32) << 16];
    let mut programs = Programs::load(&objects::directory())?;
    let veths = Veths::new()?;
    veths.prepare(&mut programs, Exit::Transmit)?;
    let mut sequence = 0;
    let mut round = |kind: usize| {
        fill::set_service_flags(&mut programs.balancer, flags[kind])?;
        // Where others have the CPUs, the sender may outrun the link so far that the round does not count.
        let mut attempt = || {
            sequence += 1;
            let settings =
                Settings { grown: 20, version: 4, flows: 1 << 32, services: 0, sequence };
            veths.round(&mut programs, Target::Balancer, settings, (Packet::Udp, FRAMES))
        };
        (0..ATTEMPTS).find_map(|_| attempt().ok()).map_or_else(&mut attempt, Ok)
    };
    // Fills the table.
    round(1)?;
    round(1)?;
    let rates = by_turns(2, ROUNDS, round)?;
    let mut shares: Vec<_> =
        rates[0].iter().zip(&rates[1]).map(|(stateless, tracked)| tracked / stateless).collect();
    let share = median(&mut shares);
    harness::note(format!(
        "datagrams of random sources over a veth pair: tracked {share:.2} of stateless; millions a second, stateless and \
         tracked: {rates:.2?}"
    ));
    ensure!(share >= SHARE, "{share} of the throughput of stateless services");
    Ok(())
}
