//! Displaced connections are remembered for as long as they need it, and then nothing is.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use lb_common::abi::clock::Coarse;
use lb_common::abi::connection::Placement;
use lb_common::abi::flow_map::HEAD_LINES;
use lb_common::abi::names::FLOWS;
use lb_common::flow_table::{FlowKey, Owner, Place, State};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::{self, Case};
use lb_maps::{Component, PinnedMaps, Pins, clock};
use lb_publish::reconcile::{FlowWalk, Round};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::Stream;

pub(crate) const CASES: &[Case] = &[
    Case::waits("the_displaced_check_turns_off_when_none_is_displaced", displaced_check_turns_off),
    Case::waits("only_cells_that_nobody_needs_go", who_goes),
    Case::works("many_cells_are_looked_at_bit_by_bit", many),
];

/// What the keeper would call now, so many seconds from now.
fn in_seconds(seconds: u64) -> Result<Coarse> {
    Ok(Coarse(Coarse::from_nanoseconds(clock::now()?).0 + Coarse::units(seconds)))
}

/// Rounds until the pass is over.
fn pass(walk: &mut FlowWalk, now: Coarse) -> Round {
    loop {
        match walk.round(now) {
            Round::UnderWay => {}
            ended => return ended,
        }
    }
}

/// What `spillway stats` says: cells of open connections, and pools with displaced connections.
fn remembered(fixture: &Fixture) -> Result<(u64, Vec<String>)> {
    let all = fixture.balancer.stats()?.remembered;
    Ok((all.open(), all.pools_with_displaced))
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

    let streams = away(&fixture, 40)?;
    Stream::all_go_on(&streams)?;
    let (held, gates) = remembered(&fixture)?;
    // One in three has its home at eu1: of 40 at least one, at most 39, whatever the hash.
    ensure!((1..40).contains(&held) && gates == ["v4"], "{held} cells, {gates:?}");

    // Without daemon they stay, and with the next one.
    fixture.balancer.kill()?;
    Stream::all_go_on(&streams)?;
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    Stream::all_go_on(&streams)?;
    Stream::all_go_on(&at_home)?;
    ensure!(remembered(&fixture)? == (held, vec!["v4".into()]), "{:?}", remembered(&fixture)?);

    // The walk by itself, with a clock of ours. Connections in use are kept, and after their end too
    // for as long as packets of theirs may come.
    fixture.balancer.kill()?;
    let mut walk = FlowWalk::open(&fixture.balancer.bpffs)?;
    let nothing = Round::Done { erased: 0, zones: 0, pools: 0 };
    ensure!(pass(&mut walk, in_seconds(0)?) == nothing);
    ensure!(pass(&mut walk, in_seconds(70)?) == nothing);
    Stream::all_go_on(&streams)?;
    ensure!(pass(&mut walk, in_seconds(710)?) == nothing);
    Stream::finish_all(streams)?;
    let closed = pass(&mut walk, in_seconds(800)?);
    ensure!(
        matches!(closed, Round::Done { erased, zones, pools: 1 } if erased == held && zones > 0),
        "{closed:?}, expected {held}"
    );

    // Nobody is asked any more, and those at home never were elsewhere.
    ensure!(remembered(&fixture)? == (0, vec![]), "{:?}", remembered(&fixture)?);
    let later = open(&fixture, 20)?;
    Stream::all_go_on(&later)?;
    Stream::all_go_on(&at_home)?;
    ensure!(remembered(&fixture)? == (0, vec![]), "{:?}", remembered(&fixture)?);

    // It opens again.
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    let streams = away(&fixture, 40)?;
    Stream::all_go_on(&streams)?;
    let (held, gates) = remembered(&fixture)?;
    ensure!((1..40).contains(&held) && gates == ["v4"], "{held} cells, {gates:?}");
    Stream::finish_all(streams)?;
    Stream::finish_all(later)?;
    Stream::finish_all(at_home)
}

/// A cell that lasts some units more, of a placement.
fn cell(number: u64, until: Coarse, at: Placement) -> [u64; 2] {
    let owner = Owner::new(FlowKey(number << 36), false, 0, State::Open, until);
    [owner.0, Place::new(at, 7).0]
}

/// A backend that is there.
fn placement(fixture: &Fixture) -> Result<Placement> {
    let maps = PinnedMaps::open(&fixture.balancer.bpffs)?;
    let (backend, state) = maps.backend_states().next().context("no backend")?;
    Ok(Placement { backend, incarnation: state.incarnation() })
}

/// The pinned flow table, by lines.
fn table(fixture: &Fixture) -> Result<Array<MapData, [u64; 8]>> {
    let pin = Pins::new(&fixture.balancer.bpffs, Component::Balancer).map(FLOWS);
    Ok(Map::from_map_data(MapData::from_pin(pin)?)?.try_into()?)
}

fn who_goes(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "goes", Health::QUICK)?;
    let at = placement(&fixture)?;
    fixture.balancer.kill()?;
    let (now, mut table) = (in_seconds(300)?, table(&fixture)?);
    let until = |left: i64| Coarse(now.0.wrapping_add_signed(left));
    let other = Placement { incarnation: at.incarnation.wrapping_add(1), ..at };
    let nobody = Placement { backend: 10_000, incarnation: 0 };
    // Each row: a cell, and whether it stays.
    let rows = [
        (cell(1, until(600), at), true),
        (cell(2, until(1), at), true),
        // By the clock of another CPU it may have a moment left.
        (cell(3, until(-1), at), true),
        (cell(4, until(-2), at), false),
        (cell(5, until(-9_000), at), false),
        (cell(6, until(600), other), false),
        (cell(7, until(600), nobody), false),
        // Somebody is about to store it.
        ([Owner::BUSY.0, 0], true),
    ];
    for (line, cells) in (HEAD_LINES + 50..).zip(rows.chunks(4)) {
        let words: Vec<u64> = cells.iter().flat_map(|(words, _)| *words).collect();
        table.set(line, <[u64; 8]>::try_from(words).ok().context("four cells")?, 0)?;
    }
    let mut walk = FlowWalk::open(&fixture.balancer.bpffs)?;
    let done = pass(&mut walk, now);
    ensure!(done == Round::Done { erased: 4, zones: 0, pools: 0 }, "{done:?}");
    for (line, cells) in (HEAD_LINES + 50..).zip(rows.chunks(4)) {
        let left = table.get(&line, 0)?;
        for ((words, stays), left) in cells.iter().zip(left.chunks(2)) {
            ensure!(
                (left[0] == words[0]) == *stays && (left[0] == 0) != *stays,
                "{words:x?}: {left:x?}"
            );
        }
    }
    Ok(())
}

fn many(sandbox: &Sandbox) -> Result<()> {
    const LINES: u32 = 50_000;
    let mut fixture = Fixture::start(sandbox, "many", Health::QUICK)?;
    let at = placement(&fixture)?;
    fixture.balancer.kill()?;
    let mut table = table(&fixture)?;
    let now = in_seconds(300)?;
    for line in HEAD_LINES..HEAD_LINES + LINES {
        let cells = (0..4).flat_map(|n| cell(u64::from(4 * line + n), Coarse(now.0 + 600), at));
        let words: Vec<u64> = cells.collect();
        table.set(line, <[u64; 8]>::try_from(words).ok().context("four cells")?, 0)?;
    }
    let mut walk = FlowWalk::open(&fixture.balancer.bpffs)?;
    let (mut rounds, mut longest, begun) = (0, Duration::ZERO, Instant::now());
    loop {
        let start = Instant::now();
        let round = walk.round(now);
        longest = longest.max(start.elapsed());
        rounds += 1;
        match round {
            Round::UnderWay => {}
            done => {
                ensure!(done == Round::Done { erased: 0, zones: 0, pools: 0 }, "{done:?}");
                break;
            }
        }
    }
    // A million cells, 65,536 a round.
    ensure!(rounds == 16, "{rounds} rounds");
    harness::note(format!(
        "a million cells, {} in use: {rounds} rounds, {:?} in all, the longest {longest:?}",
        4 * LINES,
        begun.elapsed()
    ));
    let begun = Instant::now();
    let done = pass(&mut walk, Coarse(now.0 + 602));
    ensure!(done == Round::Done { erased: u64::from(4 * LINES), zones: 0, pools: 0 }, "{done:?}");
    harness::note(format!("erasing {}: {:?}", 4 * LINES, begun.elapsed()));
    Ok(())
}
