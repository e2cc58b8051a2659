//! A watch reports generation, health and capacity as they change, and goes on over a restart of the daemon.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use lb_e2e::fixture::{Fixture, Health};
use lb_tests::daemon::Client;
use lb_tests::process::{Running, until};
use lb_tests::sandbox::Sandbox;
use spillway_proto::v1::watch_response::Event;
use spillway_proto::v1::{
    BackendState, FieldChange, Group, StatusRequest, WatchRequest, WatchResponse,
    snapshot_begin::Cause, state_reason,
};
use tonic::Streaming;

/// A command waits for a daemon that restarts for a quarter of it.
const LIMIT: Duration = Duration::from_secs(60);

/// The next event that `wanted` makes something of; those in between are of other things.
fn next<T>(
    client: &Client,
    stream: &mut Streaming<WatchResponse>,
    mut wanted: impl FnMut(Event) -> Option<T>,
) -> Result<T> {
    client.wait(async {
        loop {
            let event = stream.message().await?.context("the stream ended")?.event;
            if let Some(found) = wanted(event.context("an event without one")?) {
                return Ok(found);
            }
        }
    })?
}

pub(crate) fn events(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "watched", Health::QUICK)?;
    let client = fixture.balancer.client()?;
    let (generation, mut configuration) = client.export()?;
    let mut stream = client.call(async |mut c| c.watch(WatchRequest::default()).await)?;

    // A snapshot first: what Status says.
    let first = client.wait(stream.message())??.and_then(|message| message.event);
    let Some(Event::SnapshotBegin(begin)) = first else { bail!("first of all {first:?}") };
    ensure!(begin.cause() == Cause::First, "{begin:?}");
    let mut snapshot = begin.status.context("no status")?;
    let mut is_complete = false;
    while !is_complete {
        is_complete = next(&client, &mut stream, |event| match event {
            Event::Backends(part) => {
                snapshot.backends.extend(part.backends);
                Some(false)
            }
            Event::SnapshotEnd(_) => Some(true),
            _ => None,
        })?;
    }
    let status = client.call(async |mut c| c.status(StatusRequest::default()).await)?;
    ensure!(snapshot.generation == generation && snapshot.backends == status.backends);
    ensure!(snapshot.services == status.services, "{snapshot:?}");

    // A generation, with what it changed; then what its capacity is.
    let pool = configuration.pools.iter_mut().find(|pool| pool.name == "v4").context("no pool")?;
    pool.groups = vec![Group {
        region: "eu".into(),
        capacity_per_second: Some(600.0),
        scaler: Some(0.5),
        ..Group::default()
    }];
    let applied = client.apply(&configuration, false)?;
    ensure!(applied.generation == generation + 1, "{applied:?}");
    let told = next(&client, &mut stream, |event| match event {
        Event::Generation(change) => Some(change),
        _ => None,
    })?;
    ensure!((told.generation, &told.changes) == (applied.generation, &applied.changes), "{told:?}");
    let field = |field: &str, old: &str, new: &str| FieldChange {
        field: field.into(),
        old: old.into(),
        new: new.into(),
        region: "eu".into(),
        text: format!("{field} in eu: {old} -> {new}"),
    };
    let fields = [field("capacity", "unset", "600/s"), field("scaler", "1", "0.5")];
    ensure!(told.changes.len() == 1 && told.changes[0].fields == fields, "{told:?}");
    let mut of_eu = |what: &dyn Fn(&spillway_proto::v1::GroupStatus) -> bool| {
        next(&client, &mut stream, |event| match event {
            Event::Groups(change) => change
                .groups
                .into_iter()
                .find(|it| (&*it.pool, &*it.region) == ("v4", "eu") && what(it)),
            _ => None,
        })
    };
    let region = of_eu(&|region| region.limit_per_second.is_some())?;
    let capacity = (region.configured_per_second, region.capacity_per_second);
    ensure!(capacity == (Some(600.0), Some(300.0)), "{region:?}");
    // As the packet path keeps to it: in whole nanoseconds a connection.
    ensure!(region.limit_per_second.is_some_and(|limit| (limit - 300.0).abs() < 0.001));
    ensure!((region.scaler, region.backends_up, region.backends) == (0.5, 3, 3), "{region:?}");

    // A server goes: its region can take no less, as the capacity was set, but has one fewer.
    let number = fixture.number("eu2")?;
    fixture.servers[number].kill()?;
    let region = of_eu(&|region| region.backends_up != 3)?;
    ensure!((region.backends_up, region.capacity_per_second) == (2, Some(300.0)), "{region:?}");
    drop(stream);

    let mut stream = client.call(async |mut c| c.watch(WatchRequest::default()).await)?;
    fixture.servers[number].restart()?;
    let address = fixture.fabric.backends[number].v4.to_string();
    let back = next(&client, &mut stream, |event| match event {
        Event::Backends(change) => change
            .backends
            .into_iter()
            .find(|it| it.address == address && it.state() == BackendState::Up),
        _ => None,
    })?;
    let reason = back.reason.clone().unwrap_or_default();
    ensure!((&*back.pool, reason.cause()) == ("v4", state_reason::Cause::ChecksPass), "{back:?}");

    // The daemon stops: that is the end, and said.
    fixture.balancer.stop()?;
    let ended = client.wait(async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                end => return end,
            }
        }
    })?;
    let status = ended.err().context("an orderly end says nothing")?;
    ensure!(status.code() == tonic::Code::Unavailable, "{status}");
    Ok(())
}

/// A daemon that is killed and comes back is watched again, from how things stand then; one that does
/// not is given up.
pub(crate) fn over_a_restart(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "watching", Health::QUICK)?;
    let log = fixture.fabric.balancer.directory().join("watch");
    let mut command = fixture.balancer.command(&["watch"]);
    let mut watch = Running::start("spillway watch", &mut command, &log)?;
    let snapshots = |number: usize, watch: &Running| {
        let seen = |output: &str| output.lines().filter(|it| it.contains("backends up")).count();
        until(&format!("snapshot {number}"), LIMIT, || {
            Ok((seen(&watch.output()) >= number).then_some(()))
        })
        .with_context(|| watch.output())
    };
    snapshots(1, &watch)?;
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    snapshots(2, &watch)?;
    fixture.balancer.stop()?;
    let status = until("it gives up", LIMIT, || watch.ended())?;
    let output = watch.output();
    ensure!(status.code() == Some(3), "{status}: {output}");
    // Each time that it was there and went away, once: twice, but a daemon that is told to stop may be met
    // again on its way.
    let told = |words| output.lines().filter(|line| line.contains(words)).count();
    let (there, away) = (told("backends up"), told("; reconnecting"));
    ensure!(there == away && (2..=3).contains(&away), "{output}");
    ensure!(output.contains("\nerror: spillwayd at "), "{output}");
    Ok(())
}
