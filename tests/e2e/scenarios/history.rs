//! The way back: a change that takes traffic from backends is undone under load, by the number of the generation before.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lb_e2e::{
    fixture::{ECHO, Fixture, HTTP, Health, Tunnel},
    harness::Case,
};
use lb_tests::{
    daemon::printed::{self, Changed, Difference, History},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::{ClientCounters, Requests, Stream, ensure_answered},
};

pub(crate) const CASES: &[Case] =
    &[Case::waits("a_bad_change_is_rolled_back_under_load", rolled_back)];

/// The balancer's counters of connections, by backend.
fn counters(fixture: &Fixture) -> Result<BTreeMap<String, u64>> {
    let backends = fixture.balancer.stats()?.backends.into_iter();
    Ok(backends.map(|it| (it.backend, it.connections)).collect())
}

/// How many of so many new connections each backend gets, by the balancer's counters and by who answers. All are answered.
fn spread(
    fixture: &Fixture,
    is_quiet: bool,
) -> Result<(BTreeMap<String, u64>, BTreeMap<String, u64>)> {
    let client = &fixture.fabric.client;
    let (began, sent, before) = (Instant::now(), ClientCounters::read(client)?, counters(fixture)?);
    let requests =
        Requests::start(client, Tunnel::Ipip.endpoint(HTTP), 2, Duration::from_millis(1));
    requests.wait_for(600)?;
    let attempts = requests.finish()?;
    ensure_answered(&attempts, began, Instant::now(), &[])?;
    let client = ClientCounters::read(client)?.since(&sent);
    let mut counted = counters(fixture)?;
    for (backend, connections) in &mut counted {
        *connections -= before.get(backend).copied().unwrap_or_default();
    }
    counted.retain(|_, connections| *connections > 0);
    let all: u64 = counted.values().sum();
    // With other requests under way, the two are not counted at the same moment.
    ensure!(all >= attempts.len() as u64, "{all} counted of {}", attempts.len());
    ensure!(!is_quiet || (client.opened..=client.syns()).contains(&all), "{all} of {client:?}");
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    for name in attempts.into_iter().filter_map(|attempt| attempt.answer.ok()) {
        *answers.entry(name).or_default() += 1;
    }
    Ok((counted, answers))
}

/// Digest over what packets are balanced by.
fn checksum(fixture: &Fixture) -> Result<String> {
    Ok(fixture.balancer.status()?.checksum)
}

fn history(fixture: &Fixture) -> Result<History> {
    fixture.balancer.printed(&["history"])
}

fn rolled_back(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "history", Health::QUICK)?;
    let client = fixture.fabric.client.clone();
    let (good, good_configuration) = fixture.balancer.client()?.export()?;
    let good = good.to_string();
    let (good_checksum, (good_counters, good_answers)) =
        (checksum(&fixture)?, spread(&fixture, true)?);
    ensure!(good_answers.len() == 3 && good_counters.len() == 3, "{good_answers:?}");
    let address = |name: &str| -> Result<String> {
        Ok(fixture.fabric.backends[fixture.number(name)?].v4.to_string())
    };
    let (light, gone) = (address("eu1")?, address("eu2")?);
    let open = |seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..24).map(open).collect::<Result<Vec<_>>>()?;
    let of_gone: Vec<_> = streams.iter().filter(|stream| stream.backend() == "eu2").collect();
    ensure!(!of_gone.is_empty(), "no connection at eu2");

    // The bad change: a weight and a backend, both with a reason.
    let (begun, requests) = (
        Instant::now(),
        Requests::start(&client, Tunnel::Ipip.endpoint(HTTP), 2, Duration::from_millis(5)),
    );
    fixture.balancer.cli(&[
        "backend",
        "update",
        &light,
        "--weight",
        "0",
        "-m",
        "eu1 is \"slow\"",
    ])?;
    fixture.balancer.cli(&["backend", "delete", &gone, "--reason", "eu2 ist müde"])?;
    requests.wait_for(100)?;
    let (counted, answers) = spread(&fixture, false)?;
    ensure!(answers.keys().eq(["eu3"]), "{answers:?}");
    ensure!(counted.len() == 1, "{counted:?}");
    ensure!(checksum(&fixture)? != good_checksum);

    // What the way back would change, and that it is no change yet, across a restart.
    fixture.balancer.stop()?;
    requests.wait_for(50)?;
    fixture.balancer.start()?;
    let bad_generation = fixture.balancer.status()?.generation;
    let bad = bad_generation.to_string();
    let difference = fixture.balancer.try_cli(&["--output", "json", "diff", &good], None)?;
    let printed: Difference = printed::read(&difference.stdout)?;
    ensure!(difference.status.code() == Some(8) && printed.different, "{printed:?}");
    ensure!(printed.to == bad_generation, "{printed:?}");
    let dry: Changed = fixture.balancer.printed(&["rollback", &good, "--dry-run"])?;
    ensure!(dry.generation == bad_generation && dry.dry_run, "{dry:?}");
    let without_yes = fixture.balancer.try_cli(&["rollback", &good], None)?;
    ensure!(without_yes.status.code() == Some(2), "{without_yes:?}");
    let other = fixture
        .balancer
        .try_cli(&["rollback", &good, "--yes", "--expect-generation", &good], None)?;
    ensure!(other.status.code() == Some(7), "{other:?}");
    ensure!(fixture.balancer.status()?.generation == bad_generation);

    let back = ["rollback", &good, "--yes", "--expect-generation", &bad, "-m", "eu3 is alone"];
    let done: Changed = fixture.balancer.printed(&back)?;
    ensure!(done.changes == dry.changes, "{done:?}\nbut {dry:?}");
    fixture.wait_up(&[])?;
    requests.wait_for(100)?;
    let attempts = requests.finish()?;
    ensure_answered(&attempts, begun, Instant::now(), &[])?;
    until("packets are balanced as before", PATIENCE, || {
        Ok((checksum(&fixture)? == good_checksum).then_some(()))
    })?;
    let (counted, answers) = spread(&fixture, true)?;
    ensure!(counted.keys().eq(good_counters.keys()), "{counted:?} instead of {good_counters:?}");
    ensure!(answers.keys().eq(good_answers.keys()), "{answers:?} instead of {good_answers:?}");
    let (_, exported) = fixture.balancer.client()?.export()?;
    ensure!(exported == good_configuration, "{exported:?}");
    Stream::all_go_on(&streams)?;

    let new = done.generation.to_string();
    let equal = fixture.balancer.cli(&["diff", &good, &new])?;
    let expected = format!("generation {good} and generation {new} are equal\n");
    ensure!(equal == expected, "{equal}");
    let listed = history(&fixture)?;
    let [newest, before, first, ..] = &*listed.generations else { anyhow::bail!("{listed:?}") };
    ensure!(newest.number == done.generation && newest.who == "uid 0 (root)", "{listed:?}");
    ensure!(newest.current, "{listed:?}");
    ensure!(newest.why == format!("rollback to generation {good}: eu3 is alone"), "{listed:?}");
    ensure!((&*before.why, &*first.why) == ("eu2 ist müde", "eu1 is \"slow\""), "{listed:?}");
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    ensure!(history(&fixture)? == listed, "{:?} was {listed:?}", history(&fixture)?);
    let again: Changed = fixture.balancer.printed(&["rollback", &new, "--yes"])?;
    ensure!(again.changes.is_empty() && again.generation == done.generation, "{again:?}");
    Stream::finish_all(streams)?;
    fixture.balancer.stop()
}
