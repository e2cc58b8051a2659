//! Connections away from home are remembered for as long as they need it, and then nothing is.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::clock::Coarse;
use lb_common::abi::event::Event;
use lb_common::abi::exception::ExceptionWord;
use lb_common::abi::flow_key::{FlowKeyV4, flow_key_v4};
use lb_common::abi::meter::EXCEPTIONS_V4;
use lb_common::abi::record::Placed;
use lb_common::abi::service::{IPV4, address_of, address_words};
use lb_common::flow_hash::FlowTuple;
use lb_daemon::dataplane::{FlowTables, PinnedMaps, clock};
use lb_daemon::reconcile::{GateKeeper, Round};
use lb_tests::harness::{self, Case};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::{ECHO, Health, Scene, Tunnel, configuration};
use lb_tests::traffic::Stream;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_gate_closes_when_nobody_is_away_any_more", gate_closes),
    Case::waits("only_exceptions_that_nobody_needs_go", who_goes),
    Case::works("many_exceptions_are_looked_at_bit_by_bit", many),
];

/// What the keeper would call now, so many seconds from now.
fn in_seconds(seconds: u64) -> Result<Coarse> {
    Ok(Coarse(Coarse::of(clock::now()?).0 + Coarse::units(seconds)))
}

/// Rounds until the pass is over.
fn pass(keeper: &mut GateKeeper, now: Coarse) -> Result<Round> {
    loop {
        match keeper.round(now)? {
            Round::UnderWay => {}
            ended => return Ok(ended),
        }
    }
}

fn count(scene: &Scene, event: Event) -> Result<u64> {
    let events = PinnedMaps::open(&scene.balancer.bpffs)?.events()?;
    let found = events.iter().find(|(each, _)| *each == event);
    found.map(|(_, count)| *count).context("no such event")
}

/// What `spillway stats` says: exceptions over IPv4, and pools with an open gate.
fn remembered(scene: &Scene) -> Result<(u64, Vec<String>)> {
    let stats = scene.balancer.ask(&["stats"])?;
    let all = &stats["remembered"];
    ensure!(all["tables"][0]["table"] == "exceptions" && all["tables"][0]["ip"] == "ipv4", "{all}");
    let held = all["tables"][0]["held"].as_u64().context("no number")?;
    let gates = all["open_gates"].as_array().context("no gates")?;
    Ok((held, gates.iter().filter_map(|gate| gate.as_str().map(str::to_owned)).collect()))
}

fn open(scene: &Scene, number: u64) -> Result<Vec<Stream>> {
    let to = Tunnel::Ipip.endpoint(ECHO);
    (0..number).map(|seed| Stream::open(&scene.fabric.client, to, seed)).collect()
}

/// Streams opened while a backend was drained, which takes new connections again now; some of them are
/// not at home.
fn away(scene: &Scene, number: u64) -> Result<Vec<Stream>> {
    let drained = scene.fabric.backends[scene.number("eu1")?].v4;
    let text = configuration(&scene.fabric, Health::QUICK).text();
    let address = format!("address = \"{drained}\"\n");
    ensure!(text.contains(&address), "{text}");
    scene.balancer.apply(&text.replacen(&address, &format!("{address}wanted = \"drain\"\n"), 1))?;
    let streams = open(scene, number)?;
    ensure!(streams.iter().all(|stream| stream.backend() != "eu1"), "a stream went to eu1");
    scene.balancer.apply(&text)?;
    scene.wait_up(&[])?;
    Ok(streams)
}

fn gate_closes(sandbox: &Sandbox) -> Result<()> {
    let mut scene = Scene::start(sandbox, "gate", Health::QUICK)?;
    let at_home = open(&scene, 20)?;
    Stream::all_go_on(&at_home)?;
    ensure!(remembered(&scene)? == (0, vec![]), "{:?}", remembered(&scene)?);
    ensure!(count(&scene, Event::ExceptionLookup)? == 0, "a closed gate was asked");

    let streams = away(&scene, 40)?;
    Stream::all_go_on(&streams)?;
    let (held, gates) = remembered(&scene)?;
    // One in three has its home at eu1: of 40 at least one, at most 39, whatever the hash.
    ensure!((1..40).contains(&held) && gates == ["v4"], "{held} exceptions, {gates:?}");
    ensure!(count(&scene, Event::ExceptionInserted)? == held, "not one each");

    // Without daemon they stay, and with the next one.
    scene.balancer.kill()?;
    Stream::all_go_on(&streams)?;
    scene.balancer.start()?;
    scene.wait_up(&[])?;
    Stream::all_go_on(&streams)?;
    Stream::all_go_on(&at_home)?;
    ensure!(remembered(&scene)? == (held, vec!["v4".into()]), "{:?}", remembered(&scene)?);

    // The keeper by itself, with a clock of ours. Connections in use are kept, and after their end too
    // for as long as packets of theirs may come.
    scene.balancer.kill()?;
    let mut keeper = GateKeeper::open(&scene.balancer.bpffs)?;
    let nothing = Round::Done { purged: 0, closed: 0 };
    ensure!(pass(&mut keeper, in_seconds(0)?)? == nothing);
    ensure!(pass(&mut keeper, in_seconds(70)?)? == nothing);
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)?;
    ensure!(pass(&mut keeper, in_seconds(590)?)? == nothing);
    ensure!(remembered(&scene)? == (held, vec!["v4".into()]), "{:?}", remembered(&scene)?);
    let closed = pass(&mut keeper, in_seconds(610)?)?;
    ensure!(closed == Round::Done { purged: held, closed: 1 }, "{closed:?}, expected {held}");
    ensure!(pass(&mut keeper, in_seconds(10_000)?)? == Round::Idle);

    // Nobody is asked any more, and those at home never were elsewhere.
    ensure!(remembered(&scene)? == (0, vec![]), "{:?}", remembered(&scene)?);
    let asked = count(&scene, Event::ExceptionLookup)?;
    let later = open(&scene, 20)?;
    Stream::all_go_on(&later)?;
    Stream::all_go_on(&at_home)?;
    ensure!(count(&scene, Event::ExceptionLookup)? == asked, "asked with the gate closed");

    // It opens again.
    scene.balancer.start()?;
    scene.wait_up(&[])?;
    let streams = away(&scene, 40)?;
    Stream::all_go_on(&streams)?;
    let (held, gates) = remembered(&scene)?;
    ensure!((1..40).contains(&held) && gates == ["v4"], "{held} exceptions, {gates:?}");
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
fn home(scene: &Scene, from: SocketAddr) -> Result<Placed> {
    let to = Tunnel::Ipip.endpoint(ECHO).to_string();
    let said = scene.balancer.ask(&["explain", &from.to_string(), &to])?;
    let address = said["choice"]["backend"].as_str().with_context(|| said.to_string())?.to_owned();
    let maps = PinnedMaps::open(&scene.balancer.bpffs)?;
    for index in 1..100 {
        let Some(backend) = maps.backend(index) else { break };
        if address_of(&backend.address, backend.version).to_string() == address {
            return Ok(Placed { backend: index, incarnation: backend.incarnation });
        }
    }
    anyhow::bail!("no backend {address} in the maps")
}

fn who_goes(sandbox: &Sandbox) -> Result<()> {
    let mut scene = Scene::start(sandbox, "goes", Health::QUICK)?;
    let streams = away(&scene, 20)?;
    Stream::finish_all(streams)?;
    scene.balancer.kill()?;
    let vip = Tunnel::Ipip.vip();
    let mut random = Random::new(7);
    let mut client = || random.client(vip);
    let (now, mut tables) = (in_seconds(300)?, FlowTables::open(&scene.balancer.bpffs)?);
    let held = tables.exceptions_v4.held()?;
    let mut add = |flow: FlowTuple, word: ExceptionWord| -> Result<FlowKeyV4> {
        let key = flow_key_v4(&flow);
        tables.exceptions_v4.set(&key, word.0)?;
        Ok(key)
    };
    let at = |placed| ExceptionWord::new(placed, now);
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let from = client();
        let home = home(&scene, from)?;
        go.push(add(flow(from, vip)?, at(home))?);
        // Another number of a backend that is there is not home.
        let from = client();
        let mut other = self::home(&scene, from)?;
        other.incarnation = other.incarnation.wrapping_add(1);
        go.push(add(flow(from, vip)?, at(other))?);
        let from = client();
        stay.push(add(flow(from, vip)?, at(self::home(&scene, from)?).marked(now))?);
        let from = client();
        let own = self::home(&scene, from)?;
        let mut elsewhere = own;
        while elsewhere == own {
            elsewhere = self::home(&scene, client())?;
        }
        stay.push(add(flow(from, vip)?, at(elsewhere))?);
        let nobody = Placed { backend: 60_000, incarnation: 0 };
        go.push(add(flow(client(), vip)?, at(nobody))?);
        let nowhere = Tunnel::Ipip.vip();
        let mut gone = flow(client(), nowhere)?;
        gone.service_port = 9_u16.to_be();
        go.push(add(gone, at(own))?);
    }
    let mut keeper = GateKeeper::open(&scene.balancer.bpffs)?;
    let done = pass(&mut keeper, now)?;
    ensure!(done == Round::Done { purged: 40, closed: 0 }, "{done:?}");
    for key in &go {
        ensure!(tables.exceptions_v4.get(key)?.is_none(), "{key:x?} is still there");
    }
    for key in &stay {
        ensure!(tables.exceptions_v4.get(key)?.is_some(), "{key:x?} is gone");
    }
    ensure!(tables.exceptions_v4.held()? == held + 20, "others went");
    // The marks have no meaning after 64 s, the others are idle after ten minutes.
    let done = pass(&mut keeper, Coarse(now.0 + 61))?;
    ensure!(done == Round::Done { purged: 10, closed: 0 }, "{done:?}");
    let done = pass(&mut keeper, Coarse(now.0 + 560))?;
    ensure!(done == Round::Done { purged: held + 10, closed: 1 }, "{done:?}");
    Ok(())
}

/// Exceptions of IPv4 connections that may be added at once.
fn at_once(scene: &Scene) -> Result<u64> {
    Ok(PinnedMaps::open(&scene.balancer.bpffs)?.limit(EXCEPTIONS_V4).burst())
}

fn many(sandbox: &Sandbox) -> Result<()> {
    const MANY: u64 = 400_000;
    let mut scene = Scene::start(sandbox, "many", Health::QUICK)?;
    let streams = away(&scene, 20)?;
    Stream::finish_all(streams)?;
    scene.balancer.kill()?;
    let mut tables = FlowTables::open(&scene.balancer.bpffs)?;
    let vip = Tunnel::Ipip.vip();
    let elsewhere = home(&scene, Random::new(1).client(vip))?;
    let now = in_seconds(300)?;
    let word = ExceptionWord::new(elsewhere, now).marked(now);
    for number in 0..MANY {
        let from = SocketAddr::from((
            std::net::Ipv4Addr::from_bits(0x0a00_0000 + (number / 50_000) as u32),
            1 + (number % 50_000) as u16,
        ));
        tables.exceptions_v4.set(&flow_key_v4(&flow(from, vip)?), word.0)?;
    }
    let held = tables.exceptions_v4.held()?;
    ensure!(held > MANY, "{held} of {MANY}: a table that is not full lost some");
    let mut keeper = GateKeeper::open(&scene.balancer.bpffs)?;
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
    let places = 524_288 - 128 * u64::try_from(aya::util::nr_cpus().map_err(|(_, error)| error)?)?;
    ensure!(at_once(&scene)?.abs_diff((places - held) * 3 / 8) < 2, "{}", at_once(&scene)?);
    harness::note(format!(
        "{held} exceptions: {rounds} rounds, {:?} in all, the longest {longest:?}",
        begun.elapsed()
    ));
    let begun = Instant::now();
    let done = pass(&mut keeper, Coarse(now.0 + 600))?;
    ensure!(done == Round::Done { purged: held, closed: 1 }, "{done:?}");
    ensure!(at_once(&scene)?.abs_diff(places * 3 / 8) < 2, "{}", at_once(&scene)?);
    harness::note(format!("taking {held} out: {:?}", begun.elapsed()));
    Ok(())
}
