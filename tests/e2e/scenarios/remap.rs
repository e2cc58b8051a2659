//! A remap under traffic, made by the operator or by a region that fails and returns, moves no open connection.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::clock::Coarse;
use lb_common::abi::counter::Event;
use lb_common::abi::pool::GroupHead;
use lb_common::abi::slot::{SlotWord, TableRef};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_maps::{PinnedMaps, PoolView, clock};
use lb_publish::reconcile::FlowWalk;
use lb_tests::daemon::Document;
use lb_tests::process::{pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::Stream;
use spillway_proto::v1::{SettlingPool, Warning, WarningReason};

/// How long anything may take on a busy machine that takes a few seconds on an idle one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks that a busy machine does not fail.
const PATIENT: Health = Health { interval_ms: 1000, fall: 5 };

pub(crate) const CASES: &[Case] = &[
    Case::waits("no_stream_moves_through_changes_of_members_weights_and_order", changes),
    Case::waits("a_backend_that_is_removed_keeps_its_streams_until_it_settles", removed),
    Case::waits("a_region_that_is_long_down_is_marked_out_and_comes_back", region),
    Case::works("a_kill_in_the_middle_of_settling_loses_nothing", killed),
    Case::waits("a_change_says_what_the_end_of_an_overdue_remap_costs", overdue),
];

/// The fixture's configuration, with less patience with remaps in its first pool.
fn text(document: &Document, settle: &str, more: &str) -> Result<String> {
    let text = document.text();
    let pool = "health_checks = [\"page\"]\n";
    ensure!(text.contains(pool), "{text}");
    Ok(text.replacen(pool, &format!("{pool}settle_time = \"{settle}\"\n{more}\n"), 1))
}

/// The first pool without some backends, by name.
fn without(fixture: &Fixture, names: &[&str]) -> Document {
    let mut document = configuration(&fixture.fabric, PATIENT);
    let gone = |address: IpAddr| fixture.at(address).is_ok_and(|b| names.contains(&b.name()));
    document.pools[0].members.retain(|member| !gone(member.address));
    document
}

fn start(sandbox: &Sandbox, name: &str, but: &[&str], settle: &str) -> Result<Fixture> {
    let fixture = Fixture::idle(sandbox, name)?;
    let document = without(&fixture, but);
    fixture.balancer.apply(&text(&document, settle, "")?)?;
    let members = document.pools.iter().flat_map(|pool| &pool.members);
    let addresses: Vec<_> = members.map(|member| member.address).collect();
    fixture.balancer.wait_up(&addresses, PATIENCE)?;
    Ok(fixture)
}

fn open(fixture: &Fixture, streams: &mut Vec<Stream>, number: u64) -> Result<()> {
    for _ in 0..number {
        let seed = streams.len() as u64;
        streams.push(Stream::open(&fixture.fabric.client, Tunnel::Ipip.endpoint(ECHO), seed)?);
    }
    Ok(())
}

/// The maps, and the first pool in them.
fn first_pool(fixture: &Fixture) -> Result<(PinnedMaps, PoolView)> {
    let maps = PinnedMaps::open(&fixture.balancer.bpffs)?;
    let services = maps.services()?;
    let service = services.iter().find(|service| service.key.ip() == Tunnel::Ipip.vip());
    let view = maps.pool_view(service.context("no service")?.pool)?.context("no pool")?;
    Ok((maps, view))
}

/// What the maps say of the first pool: whether a previous version counts, and the order of regions by the
/// name of the first backend in each.
fn versions(fixture: &Fixture) -> Result<(bool, Vec<&'static str>)> {
    let (maps, view) = first_pool(fixture)?;
    let region = |members: u32| {
        let backend = maps.backend(maps.member(members).context("no member")?.backend());
        let backend = backend.context("no backend")?;
        let address = lb_common::abi::service::address_of(&backend.address, backend.version);
        Ok(fixture.at(address)?.region)
    };
    let regions = view.groups.iter().map(|(_, group)| region(group.head.members));
    Ok((view.previous.is_some(), regions.collect::<Result<_>>()?))
}

/// Waits until the first pool has settled.
fn settled(fixture: &Fixture) -> Result<()> {
    until("the remap is over", PATIENCE, || Ok((!versions(fixture)?.0).then_some(())))
}

fn settling(fixture: &Fixture) -> Result<Vec<SettlingPool>> {
    Ok(fixture.balancer.status()?.settling)
}

fn changes(sandbox: &Sandbox) -> Result<()> {
    let fixture = start(sandbox, "changes", &["eu3", "us3"], "12s")?;
    let mut streams = Vec::new();
    open(&fixture, &mut streams, 30)?;
    Stream::all_go_on(&streams)?;
    ensure!(settling(&fixture)?.is_empty());

    // Two backends more, other weights, another order of regions: each while the one before settles.
    let mut document = configuration(&fixture.fabric, PATIENT);
    fixture.balancer.apply(&text(&document, "12s", "")?)?;
    let said = settling(&fixture)?;
    ensure!(said.len() == 1 && said[0].pool == "v4", "{said:?}");
    fixture.wait_up(&[])?;
    open(&fixture, &mut streams, 30)?;
    ensure!(streams[30..].iter().any(|stream| stream.backend() == "eu3"), "eu3 takes none");
    for member in &mut document.pools[0].members {
        member.weight = if fixture.at(member.address)?.name() == "eu3" { 4 } else { 1 };
    }
    fixture.balancer.apply(&text(&document, "12s", "")?)?;
    open(&fixture, &mut streams, 30)?;
    fixture.balancer.apply(&text(&document, "12s", "preferred_regions = [\"us\"]")?)?;
    ensure!(versions(&fixture)? == (true, vec!["us", "eu"]));
    open(&fixture, &mut streams, 30)?;
    let new = &streams[90..];
    ensure!(
        new.iter().all(|stream| stream.backend().starts_with("us")),
        "the order is not in force"
    );
    Stream::all_go_on(&streams)?;

    settled(&fixture)?;
    // The status is told once all that the remap kept is free.
    until("the status says so", PATIENCE, || Ok(settling(&fixture)?.is_empty().then_some(())))?;
    // All the first ones have their home elsewhere now, and are remembered; streams never rest.
    let (taken, refused) = (fixture.count(Event::RemapTaken)?, fixture.count(Event::RemapNoRoom)?);
    ensure!(taken >= 30 && refused == 0, "{taken} have cells, {refused} not");
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}

/// Slots of the first pool whose owner differs between its two versions, and how many slots there are.
fn moved_slots(fixture: &Fixture) -> Result<(usize, u32)> {
    let (maps, view) = first_pool(fixture)?;
    let owners = |head: &GroupHead| -> Result<Vec<u32>> {
        let table = view.tables.get(&TableRef(head.table)).context("no table")?;
        let backend = |list: SlotWord| {
            let member = maps.member(head.members + u32::from(list.rank(0)));
            Ok(member.context("no member")?.backend())
        };
        table.slots().map(backend).collect()
    };
    let (now, next) = (view.previous.context("no remap")?.home, view.descriptor.home);
    let pairs = owners(&now)?.into_iter().zip(owners(&next)?);
    Ok((pairs.filter(|(now, next)| now != next).count(), now.slots))
}

/// Changes follow each other before any of them has settled, until the remap is overdue: the next one ends it.
fn overdue(sandbox: &Sandbox) -> Result<()> {
    const SETTLE: Duration = Duration::from_secs(12);
    let fixture = start(sandbox, "overdue", &["eu3", "us3"], "12s")?;
    let mut streams = Vec::new();
    open(&fixture, &mut streams, 20)?;
    let client = fixture.balancer.client()?;
    let (_, mut configuration) = client.export()?;
    let mut weight = 1;
    let mut change = |validate_only| -> Result<Vec<Warning>> {
        // Never that of the beginning, with which the remap would be over.
        weight = weight % 7 + 2;
        let pool = configuration.pools.iter_mut().find(|pool| pool.name == "v4");
        let backend = pool.context("no pool")?.backends.first_mut().context("no backend")?;
        backend.weight = Some(weight);
        let warnings = client.apply(&configuration, validate_only)?.warnings;
        let is_of_remap = |warning: &Warning| warning.reason() == WarningReason::RemapEnded;
        Ok(warnings.into_iter().filter(is_of_remap).collect())
    };
    // The last one a third of a settle time before the remap is overdue, so that two thirds are left for what follows.
    let begun = Instant::now();
    while begun.elapsed() < SETTLE * 8 / 3 {
        let warnings = change(false)?;
        ensure!(warnings.is_empty(), "{warnings:?}");
        pause(SETTLE / 12);
    }
    change(false)?;
    until("the remap is overdue", PATIENCE, || {
        Ok(settling(&fixture)?.iter().any(|pool| pool.overdue).then_some(()))
    })?;
    let (moved, slots) = moved_slots(&fixture)?;
    ensure!(moved > 0, "the remap moves no slot");
    for validate_only in [true, false] {
        let warnings = change(validate_only)?;
        let [warning] = &*warnings else { anyhow::bail!("{warnings:?}") };
        let said = format!(
            "pool v4: changes have kept a remap from its end for 3 settle times, and this one ends it: open connections of {moved} of {slots} slots"
        );
        ensure!(warning.text.starts_with(&said), "{warning:?}");
    }
    let said = settling(&fixture)?;
    ensure!(said.len() == 1 && !said[0].overdue, "{said:?}");
    // They were in use all the time.
    Stream::all_go_on(&streams)?;
    settled(&fixture)?;
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}

fn removed(sandbox: &Sandbox) -> Result<()> {
    let fixture = start(sandbox, "removed", &[], "20s")?;
    let mut streams = Vec::new();
    open(&fixture, &mut streams, 30)?;
    let on = |streams: &[Stream], name| streams.iter().filter(|s| s.backend() == name).count();
    ensure!(on(&streams, "eu2") > 0 && on(&streams, "eu2") < 30, "the streams are badly spread");
    fixture.balancer.apply(&text(&without(&fixture, &["eu2"]), "20s", "")?)?;
    Stream::all_go_on(&streams)?;
    let from = streams.len();
    open(&fixture, &mut streams, 20)?;
    ensure!(on(&streams[from..], "eu2") == 0, "who is removed takes new ones");
    ensure!(versions(&fixture)?.0, "it settled before the streams could be looked at");

    settled(&fixture)?;
    let (gone, stay): (Vec<_>, Vec<_>) =
        streams.into_iter().partition(|stream| stream.backend() == "eu2");
    // Somebody else has their packets now, and knows nothing of them.
    until("the streams of who was removed end", PATIENCE, || {
        Ok(gone.iter().all(Stream::is_lost).then_some(()))
    })?;
    gone.into_iter().for_each(|stream| drop(stream.finish()));
    Stream::all_go_on(&stay)?;
    Stream::finish_all(stay)
}

fn region(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "region", &[], "4s")?;
    let near = ["eu1", "eu2", "eu3"];
    (0..3).try_for_each(|number| fixture.servers[number].kill())?;
    fixture.wait_up(&near)?;
    let mut streams = Vec::new();
    open(&fixture, &mut streams, 20)?;
    ensure!(streams.iter().all(|stream| stream.backend().starts_with("us")));
    until("the region is marked out", PATIENCE, || {
        Ok((versions(&fixture)?.1 == ["us", "eu"]).then_some(()))
    })?;
    let groups = fixture.balancer.client()?.regions("v4")?.regions;
    ensure!(groups.iter().map(|it| it.marked_out).eq([false, true]), "{groups:?}");
    settled(&fixture)?;
    // New connections are at home now: nobody needs to be remembered.
    let taken = fixture.count(Event::FlowTaken)?;
    let from = streams.len();
    open(&fixture, &mut streams, 20)?;
    Stream::all_go_on(&streams)?;
    ensure!(streams[from..].iter().all(|stream| stream.backend().starts_with("us")));
    ensure!(fixture.count(Event::FlowTaken)? == taken, "home is where it was");

    // It comes back: new connections are there at once, and the others where they are.
    (0..3).try_for_each(|number| fixture.servers[number].restart())?;
    fixture.wait_up(&[])?;
    until("the region is home again", PATIENCE, || {
        Ok((versions(&fixture)?.1 == ["eu", "us"]).then_some(()))
    })?;
    let from = streams.len();
    open(&fixture, &mut streams, 20)?;
    ensure!(streams[from..].iter().all(|stream| stream.backend().starts_with("eu")));
    settled(&fixture)?;
    Stream::all_go_on(&streams)?;
    ensure!(fixture.count(Event::FlowNoRoom)? == 0);
    ensure!(fixture.count(Event::RemapNoRoom)? == 0);
    Stream::finish_all(streams)?;

    // When they have ended nothing is left of it, by a clock that is thirteen minutes ahead.
    fixture.balancer.kill()?;
    let mut walk = FlowWalk::open(&fixture.balancer.bpffs)?;
    let mut later = Coarse(Coarse::from_nanoseconds(clock::now()?).0 + Coarse::units(780));
    until("the displaced check is off", PATIENCE, || {
        walk.round(later);
        later.0 += Coarse::units(10);
        let maps = PinnedMaps::open(&fixture.balancer.bpffs)?;
        Ok(maps.pools_with_displaced().next().is_none().then_some(()))
    })
}

fn killed(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "kill9", &["eu3", "us3"], "25s")?;
    let mut streams = Vec::new();
    open(&fixture, &mut streams, 30)?;
    fixture.balancer.apply(&text(&configuration(&fixture.fabric, PATIENT), "25s", "")?)?;
    fixture.wait_up(&[])?;
    open(&fixture, &mut streams, 10)?;
    for _ in 0..3 {
        ensure!(versions(&fixture)?.0, "it settled before the daemon could be killed");
        fixture.balancer.kill()?;
        Stream::all_go_on(&streams)?;
        fixture.balancer.start()?;
        Stream::all_go_on(&streams)?;
        open(&fixture, &mut streams, 10)?;
    }
    fixture.balancer.kill()?;
    Stream::all_go_on(&streams)?;
    fixture.balancer.start()?;
    settled(&fixture)?;
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}
