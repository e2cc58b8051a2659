//! Bare ACKs from random sources during a remap: to the balancer each may be of an open connection, which it keeps where it
//! is.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::fixture::{ECHO, LONG_CONNECTIONS};
use lb_e2e::harness;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::Forged;
use lb_tests::traffic::LongConnections;

use crate::attacks::fixture::{AttackFixture, CELLS, Pool};

/// Connections of each kind.
const NUMBER: usize = 30;

/// A connection that is idle unless it is told to exchange bytes.
struct IdleConnection {
    stream: BufReader<TcpStream>,
}

impl IdleConnection {
    fn open(attack: &AttackFixture) -> Result<Self> {
        let to = Pool::Attacked.endpoint(ECHO);
        let stream = attack.fixture.fabric.client.enter(|| TcpStream::connect(to))??;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut stream, mut name) = (BufReader::new(stream), String::new());
        stream.read_line(&mut name).context("the name of the backend")?;
        Ok(Self { stream })
    }

    fn exchange(&mut self) -> Result<()> {
        let mut returned = [0; 4];
        self.stream.get_mut().write_all(b"here").context("send")?;
        self.stream.read_exact(&mut returned).context("receive")?;
        ensure!(&returned == b"here", "{returned:?}");
        Ok(())
    }
}

/// How many of them still work.
fn working(connections: &mut [IdleConnection]) -> usize {
    connections.iter_mut().filter_map(|connection| connection.exchange().ok()).count()
}

/// Long enough to send as many packets as the table needs.
fn settle_time(attack: &AttackFixture) -> Duration {
    Duration::from_secs((attack.cells / 8_192).clamp(20, 60))
}

fn is_settling(attack: &AttackFixture) -> Result<bool> {
    Ok(!attack.fixture.balancer.status()?.settling.is_empty())
}

/// Puts other regions first, so that every flow has another home.
fn prefer(attack: &AttackFixture, region: &str) -> Result<()> {
    let settle = settle_time(attack).as_secs();
    let pool = format!("settle_time = \"{settle}s\"\npreferred_regions = [\"{region}\"]\n");
    attack.apply([&pool, ""])
}

pub(crate) fn acks(sandbox: &Sandbox) -> Result<()> {
    let attack = AttackFixture::start(sandbox, "acks", CELLS / 2)?;
    let cells = attack.cells;
    prefer(&attack, "eu")?;
    until("the first configuration is settled", PATIENCE, || {
        Ok((!is_settling(&attack)?).then_some(()))
    })?;
    let idle =
        || -> Result<Vec<_>> { (0..NUMBER).map(|_| IdleConnection::open(&attack)).collect() };
    let connections = &mut LongConnections::new(&attack.fixture.fabric.client)?;
    connections.open(Pool::Attacked.endpoint(LONG_CONNECTIONS), NUMBER)?;
    let (mut late, mut silent) = (idle()?, idle()?);
    let mut twice = attack.flood(ECHO, &[Forged::Ack, Forged::Ack], 41)?;
    let mut once = attack.flood(ECHO, &[Forged::Ack], 43)?;

    // Before and after the connections send something: some that send twice, less than a third of the table in all, and so
    // many that send once that they evict each other.
    let begun = Instant::now();
    prefer(&attack, "us")?;
    connections.all_go_on(&[])?;
    let (mut sent_twice, mut sent_once) = (0, 0);
    for is_first in [true, false] {
        sent_twice += twice.send(cells / 12, attack.fast(), PATIENCE)?;
        sent_once += attack.fill(&mut once, Event::RemapTaken, cells)?;
        if is_first {
            let kept = working(&mut late);
            ensure!(kept == NUMBER && working(&mut late) == NUMBER, "{kept} work meanwhile");
        }
    }
    let took = begun.elapsed();
    let held = attack.held("open")? + attack.held("seen_once")?;
    ensure!(is_settling(&attack)?, "the remap ended before the floods");
    until("the remap is over", 2 * PATIENCE, || Ok((!is_settling(&attack)?).then_some(())))?;
    let (kept, idle_all_the_while) = (working(&mut late), working(&mut silent));
    harness::note(format!(
        "{sent_twice} flows sent two ACKs, {sent_once} one, in {took:.1?}; {held} of {cells} cells held: {kept} of {NUMBER} connections that \
         sent something work; of those that sent nothing, {idle_all_the_while}"
    ));
    ensure!(held > cells * 9 / 10, "{held} cells: the floods do not get through");
    ensure!(kept == NUMBER, "{kept} of {NUMBER} work");
    // What the remap means for a connection without a cell: this is documented.
    ensure!(idle_all_the_while < NUMBER, "the remap moved no connection");
    connections.all_go_on(&[])?;

    beyond(&attack, connections)
}

/// More forged flows that send twice than there is room for: only connections that had their cell before are safe.
fn beyond(attack: &AttackFixture, connections: &mut LongConnections) -> Result<()> {
    let mut late = (0..NUMBER).map(|_| IdleConnection::open(attack)).collect::<Result<Vec<_>>>()?;
    connections.open(Pool::Attacked.endpoint(LONG_CONNECTIONS), NUMBER)?;
    let mut twice = attack.flood(ECHO, &[Forged::Ack, Forged::Ack], 47)?;
    prefer(attack, "eu")?;
    connections.all_go_on(&[])?;
    attack.fill(&mut twice, Event::RemapNoRoom, 20_000)?;
    let kept = working(&mut late);
    ensure!(kept == NUMBER, "{kept} work during the remap");
    ensure!(is_settling(attack)?, "the remap ended before the table was full");
    let open = attack.held("open")?;
    until("the daemon shows it", PATIENCE, || Ok(attack.is_short_of_room()?.then_some(())))?;
    until("the remap is over", 2 * PATIENCE, || Ok((!is_settling(attack)?).then_some(())))?;
    connections.all_go_on(&[])?;
    harness::note(format!(
        "beyond: {open} cells of {} open; of {NUMBER} connections that sent nothing before the table was full, {} work",
        attack.cells,
        working(&mut late)
    ));
    Ok(())
}
