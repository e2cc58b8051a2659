//! Displaced connections are remembered for as long as they need it, and then nothing is.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::clock::Coarse;
use lb_common::abi::connection::DisplacedWord;
use lb_common::abi::connection::Placement;
use lb_common::abi::connection::{FlowKeyV4, flow_key_v4};
use lb_common::abi::counter::Event;
use lb_common::abi::limiter::DISPLACED_V4;
use lb_common::abi::service::{IPV4, address_of, address_words};
use lb_common::flow_hash::FlowTuple;
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::{self, Case};
use lb_maps::{FlowTables, PinnedMaps, clock};
use lb_publish::reconcile::{DisplacedSweeper, Round};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::Stream;

pub(crate) const CASES: &[Case] = &[
    Case::waits("the_displaced_check_turns_off_when_none_is_displaced", displaced_check_turns_off),
    Case::waits("only_displaced_entries_that_nobody_needs_go", who_goes),
    Case::works("many_displaced_entries_are_looked_at_bit_by_bit", many),
];

/// What the keeper would call now, so many seconds from now.
fn in_seconds(seconds: u64) -> Result<Coarse> {
    Ok(Coarse(Coarse::from_nanoseconds(clock::now()?).0 + Coarse::units(seconds)))
}

/// Rounds until the pass is over.
fn pass(keeper: &mut DisplacedSweeper, now: Coarse) -> Result<Round> {
    loop {
        match keeper.round(now)? {
            Round::UnderWay => {}
            ended => return Ok(ended),
        }
    }
}

fn count(fixture: &Fixture, event: Event) -> Result<u64> {
    let events = PinnedMaps::open(&fixture.balancer.bpffs)?.events()?;
    let found = events.iter().find(|(each, _)| *each == event);
    found.map(|(_, count)| *count).context("no such event")
}

/// What `spillway stats` says: displaced entries over IPv4, and pools with displaced connections.
fn remembered(fixture: &Fixture) -> Result<(u64, Vec<String>)> {
    let all = fixture.balancer.stats()?.remembered;
    Ok((all.displaced_v4()?, all.pools_with_displaced))
}

fn open(fixture: &Fixture, number: u64) -> Result<Vec<Stream>> {
    let to = Tunnel::Ipip.endpoint(ECHO);
    (0..number).map(|seed| Stream::open(&fixture.fabric.client, to, seed)).collect()
}

/// Streams opened while a backend was drained, which takes new connections again now; some of them are
/// not at home.
fn away(fixture: &Fixture, number: u64) -> Result<Vec<Stream>> {
    let drained = fixture.fabric.backends[fixture.number("eu1")?].v4;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let address = format!("address = \"{drained}\"\n");
    ensure!(text.contains(&address), "{text}");
    fixture.balancer.apply(&text.replacen(
        &address,
        &format!("{address}admin_state = \"drain\"\n"),
        1,
    ))?;
    let streams = open(fixture, number)?;
    ensure!(streams.iter().all(|stream| stream.backend() != "eu1"), "a stream went to eu1");
    fixture.balancer.apply(&text)?;
    fixture.wait_up(&[])?;
    Ok(streams)
}

fn displaced_check_turns_off(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "gate", Health::QUICK)?;
    let at_home = open(&fixture, 20)?;
    Stream::all_go_on(&at_home)?;
    ensure!(remembered(&fixture)? == (0, vec![]), "{:?}", remembered(&fixture)?);
    ensure!(count(&fixture, Event::DisplacedLookup)? == 0, "looked up with the check off");

    let streams = away(&fixture, 40)?;
    Stream::all_go_on(&streams)?;
    let (held, gates) = remembered(&fixture)?;
    // One in three has its home at eu1: of 40 at least one, at most 39, whatever the hash.
    ensure!((1..40).contains(&held) && gates == ["v4"], "{held} displaced entries, {gates:?}");
    ensure!(count(&fixture, Event::DisplacedInserted)? == held, "not one each");

    // Without daemon they stay, and with the next one.
    fixture.balancer.kill()?;
    Stream::all_go_on(&streams)?;
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    Stream::all_go_on(&streams)?;
    Stream::all_go_on(&at_home)?;
    ensure!(remembered(&fixture)? == (held, vec!["v4".into()]), "{:?}", remembered(&fixture)?);

    // The keeper by itself, with a clock of ours. Connections in use are kept, and after their end too
    // for as long as packets of theirs may come.
    fixture.balancer.kill()?;
    let mut keeper = DisplacedSweeper::open(&fixture.balancer.bpffs)?;
    let nothing = Round::Done { purged: 0, closed: 0 };
    ensure!(pass(&mut keeper, in_seconds(0)?)? == nothing);
    ensure!(pass(&mut keeper, in_seconds(70)?)? == nothing);
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)?;
    ensure!(pass(&mut keeper, in_seconds(590)?)? == nothing);
    ensure!(remembered(&fixture)? == (held, vec!["v4".into()]), "{:?}", remembered(&fixture)?);
    let closed = pass(&mut keeper, in_seconds(610)?)?;
    ensure!(closed == Round::Done { purged: held, closed: 1 }, "{closed:?}, expected {held}");
    ensure!(pass(&mut keeper, in_seconds(10_000)?)? == Round::Idle);

    // Nobody is asked any more, and those at home never were elsewhere.
    ensure!(remembered(&fixture)? == (0, vec![]), "{:?}", remembered(&fixture)?);
    let asked = count(&fixture, Event::DisplacedLookup)?;
    let later = open(&fixture, 20)?;
    Stream::all_go_on(&later)?;
    Stream::all_go_on(&at_home)?;
    ensure!(
        count(&fixture, Event::DisplacedLookup)? == asked,
        "asked with the displaced check off"
    );

    // It opens again.
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    let streams = away(&fixture, 40)?;
    Stream::all_go_on(&streams)?;
    let (held, gates) = remembered(&fixture)?;
    ensure!((1..40).contains(&held) && gates == ["v4"], "{held} displaced entries, {gates:?}");
    Stream::finish_all(streams)?;
    Stream::finish_all(later)?;
    Stream::finish_all(at_home)
}

/// A flow to the service of echoes from a client's address.
fn flow(from: SocketAddr, vip: IpAddr) -> Result<FlowTuple> {
    let IpAddr::V4(_) = vip else { anyhow::bail!("{vip}: not IPv4") };
    Ok(FlowTuple {
        client: address_words(from.ip()),
        vip: address_words(vip),
        client_port: from.port().to_be(),
        service_port: ECHO.to_be(),
        protocol: 6,
        version: IPV4,
    })
}

/// Index and incarnation of the backend that `spillway explain` names for a flow.
fn home(fixture: &Fixture, from: SocketAddr) -> Result<Placement> {
    let to = Tunnel::Ipip.endpoint(ECHO);
    let address = fixture.balancer.explain(from, to, "tcp")?.backend()?;
    let maps = PinnedMaps::open(&fixture.balancer.bpffs)?;
    for index in 1..100 {
        let Some(backend) = maps.backend(index) else { break };
        if address_of(&backend.address, backend.version) == address {
            return Ok(Placement { backend: index, incarnation: backend.incarnation });
        }
    }
    anyhow::bail!("no backend {address} in the maps")
}

fn who_goes(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "goes", Health::QUICK)?;
    let streams = away(&fixture, 20)?;
    Stream::finish_all(streams)?;
    fixture.balancer.kill()?;
    let vip = Tunnel::Ipip.vip();
    let mut random = Random::new(7);
    let mut client = || random.client(vip);
    let (now, mut tables) = (in_seconds(300)?, FlowTables::open(&fixture.balancer.bpffs)?);
    let held = tables.displaced_v4.held()?;
    let mut add = |flow: FlowTuple, word: DisplacedWord| -> Result<FlowKeyV4> {
        let key = flow_key_v4(&flow);
        tables.displaced_v4.set(&key, word.0)?;
        Ok(key)
    };
    let at = |placed| DisplacedWord::new(placed, now);
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let from = client();
        let home = home(&fixture, from)?;
        go.push(add(flow(from, vip)?, at(home))?);
        // Another number of a backend that is there is not home.
        let from = client();
        let mut other = self::home(&fixture, from)?;
        other.incarnation = other.incarnation.wrapping_add(1);
        go.push(add(flow(from, vip)?, at(other))?);
        let from = client();
        stay.push(add(flow(from, vip)?, at(self::home(&fixture, from)?).contested(now))?);
        let from = client();
        let own = self::home(&fixture, from)?;
        let mut elsewhere = own;
        while elsewhere == own {
            elsewhere = self::home(&fixture, client())?;
        }
        stay.push(add(flow(from, vip)?, at(elsewhere))?);
        let nobody = Placement { backend: 60_000, incarnation: 0 };
        go.push(add(flow(client(), vip)?, at(nobody))?);
        let nowhere = Tunnel::Ipip.vip();
        let mut gone = flow(client(), nowhere)?;
        gone.service_port = 9_u16.to_be();
        go.push(add(gone, at(own))?);
    }
    let mut keeper = DisplacedSweeper::open(&fixture.balancer.bpffs)?;
    let done = pass(&mut keeper, now)?;
    ensure!(done == Round::Done { purged: 40, closed: 0 }, "{done:?}");
    for key in &go {
        ensure!(tables.displaced_v4.get(key)?.is_none(), "{key:x?} is still there");
    }
    for key in &stay {
        ensure!(tables.displaced_v4.get(key)?.is_some(), "{key:x?} is gone");
    }
    ensure!(tables.displaced_v4.held()? == held + 20, "others went");
    // The marks have no meaning after 64 s, the others are idle after ten minutes.
    let done = pass(&mut keeper, Coarse(now.0 + 61))?;
    ensure!(done == Round::Done { purged: 10, closed: 0 }, "{done:?}");
    let done = pass(&mut keeper, Coarse(now.0 + 560))?;
    ensure!(done == Round::Done { purged: held + 10, closed: 1 }, "{done:?}");
    Ok(())
}

/// Displaced entries of IPv4 connections that may be added at once.
fn at_once(fixture: &Fixture) -> Result<u64> {
    Ok(PinnedMaps::open(&fixture.balancer.bpffs)?.limit(DISPLACED_V4).burst())
}

fn many(sandbox: &Sandbox) -> Result<()> {
    const MANY: u64 = 200_000;
    let mut fixture = Fixture::start(sandbox, "many", Health::QUICK)?;
    let streams = away(&fixture, 20)?;
    Stream::finish_all(streams)?;
    fixture.balancer.kill()?;
    let mut tables = FlowTables::open(&fixture.balancer.bpffs)?;
    let vip = Tunnel::Ipip.vip();
    let elsewhere = home(&fixture, Random::new(1).client(vip))?;
    let now = in_seconds(300)?;
    let word = DisplacedWord::new(elsewhere, now).contested(now);
    for number in 0..MANY {
        let from = SocketAddr::from((
            std::net::Ipv4Addr::from_bits(0x0a00_0000 + (number / 50_000) as u32),
            1 + (number % 50_000) as u16,
        ));
        tables.displaced_v4.set(&flow_key_v4(&flow(from, vip)?), word.0)?;
    }
    let held = tables.displaced_v4.held()?;
    ensure!(held > MANY, "{held} of {MANY}: a table that is not full lost some");
    let mut keeper = DisplacedSweeper::open(&fixture.balancer.bpffs)?;
    let (mut rounds, mut longest, begun) = (0, Duration::ZERO, Instant::now());
    loop {
        let start = Instant::now();
        let round = keeper.round(now)?;
        longest = longest.max(start.elapsed());
        rounds += 1;
        match round {
            Round::UnderWay => {}
            done => {
                ensure!(done == Round::Done { purged: 0, closed: 0 }, "{done:?}");
                break;
            }
        }
    }
    // 65,536 a round at the most, and one round for the few of IPv6.
    ensure!(rounds > MANY.div_ceil(65_536), "{rounds} rounds");
    // Half of three quarters of what is left beside 128 free places of each CPU may come at once.
    let places = 262_144 - 128 * u64::try_from(aya::util::nr_cpus().map_err(|(_, error)| error)?)?;
    ensure!(at_once(&fixture)?.abs_diff((places - held) * 3 / 8) < 2, "{}", at_once(&fixture)?);
    harness::note(format!(
        "{held} displaced entries: {rounds} rounds, {:?} in all, the longest {longest:?}",
        begun.elapsed()
    ));
    let begun = Instant::now();
    let done = pass(&mut keeper, Coarse(now.0 + 600))?;
    ensure!(done == Round::Done { purged: held, closed: 1 }, "{done:?}");
    ensure!(at_once(&fixture)?.abs_diff(places * 3 / 8) < 2, "{}", at_once(&fixture)?);
    harness::note(format!("taking {held} out: {:?}", begun.elapsed()));
    Ok(())
}
