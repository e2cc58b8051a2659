//! A disk that does not answer holds up the apply that waits for it, and nothing else: no failover and no answer. Metrics
//! show both.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{Fixture, HTTP, Tunnel},
    harness::{self, Case},
};
use lb_tests::{
    daemon::scrape,
    openmetrics::Exposition,
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::{Requests, ensure_answered},
};

use crate::on_disk::{OnDisk, with_input};

pub(crate) const CASES: &[Case] = &[
    Case::works("a_frozen_store_holds_up_no_failover_and_no_answer", |sandbox| {
        apply_and_fail_over(sandbox, true)
    }),
    Case::works("a_store_that_is_not_frozen_is_written_meanwhile", |sandbox| {
        apply_and_fail_over(sandbox, false)
    }),
    Case::waits("a_store_without_room_refuses_applies_and_counts_them", without_room),
];

/// Seconds for which a write waits at least while the disk is frozen, and for which none waits otherwise.
const LONG: f64 = 2.0;
/// Health checks of about a kilobyte in a configuration that does not fit what the store's file has free.
const LARGE: usize = 4_000;

/// What the metrics say of the store and of the state loop.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Writes of the store that ended, and those of them that failed.
    writes: f64,
    failures: f64,
    /// Seconds of all writes, and of the one under way.
    written: f64,
    writing: f64,
    /// Applies that wait for the state loop.
    waiting: f64,
    /// Seconds since the last turn of the state loop, and of the member loop.
    state_age: f64,
    member_age: f64,
}

impl Measured {
    fn read(fixture: &Fixture) -> Result<Self> {
        let now: Exposition = scrape(&fixture.fabric.balancer)?;
        let value = |name: &str, labels: &[(&str, &str)]| {
            let name = format!("spillway_{name}");
            now.value(&name, labels).with_context(|| format!("{name}: not served"))
        };
        let (state, member) = ([("loop", "state")], [("loop", "member")]);
        Ok(Self {
            writes: value("store_write_duration_seconds_count", &[])?,
            failures: value("store_write_failures_total", &[])?,
            written: value("store_write_duration_seconds_sum", &[])?,
            writing: value("store_write_age_seconds", &[])?,
            waiting: value("loop_queue_entries", &state)?,
            state_age: value("loop_turn_age_seconds", &state)?,
            member_age: value("loop_turn_age_seconds", &member)?,
        })
    }
}

/// Applies a configuration while the disk is frozen or not, and kills a server under load meanwhile. No request fails
/// after the detection: so the maps have it.
fn apply_and_fail_over(sandbox: &Sandbox, is_frozen: bool) -> Result<()> {
    let service = OnDisk::start(sandbox, "frozen")?;
    let text = service.configuration();
    let OnDisk { mut disk, mut fixture, .. } = service;
    counted(&fixture, "the first write", (1.0, 0.0))?;
    let before = Measured::read(&fixture)?;
    let more = format!("{text}\n[[region]]\nname = \"later\"\n");
    if is_frozen {
        disk.freeze()?;
    }
    thread::scope(|scope| -> Result<()> {
        let fixture = &mut fixture;
        let shell = fixture.balancer.command(&["apply", "-f", "-"]);
        let apply = scope.spawn(move || with_input(shell, &more));
        if !is_frozen {
            until("generation 2", PATIENCE, || Ok((generation(fixture)? == 2).then_some(())))?;
        }
        let client = &fixture.fabric.client;
        let to = Tunnel::Ipip.endpoint(HTTP);
        let requests = Requests::start(client, to, 2, Duration::from_millis(5));
        requests.wait_for(50)?;
        let victim = fixture.number("eu2")?;
        fixture.servers[victim].kill()?;
        let killed = Instant::now();
        fixture.wait_up(&["eu2"])?;
        let detected = Instant::now();
        requests.wait_for(100)?;
        ensure_answered(&requests.finish()?, detected, Instant::now(), &["eu2"])?;
        harness::note(format!("a failed server: {:.2?}", detected.duration_since(killed)));

        // An answer that waited for the disk would not come: it thaws later.
        let generation_meanwhile = generation(fixture)?;
        ensure!(generation_meanwhile == if is_frozen { 1 } else { 2 }, "{generation_meanwhile}");
        ensure!(apply.is_finished() != is_frozen, "the apply does not wait for the disk");
        if is_frozen {
            measure_frozen(scope, fixture, &text)?;
        } else {
            counted(fixture, "a second write", (2.0, 0.0))?;
        }
        disk.thaw()?;
        let output = apply.join().map_err(|_| anyhow::anyhow!("the apply panicked"))??;
        let said = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        ensure!(said.contains("generation 2"), "{said}");
        fixture.wait_up(&["eu2"])
    })?;
    // The apply that waited for the other one takes the region away again.
    let (last, writes) = if is_frozen { (3, 3.0) } else { (2, 2.0) };
    until("the last generation", PATIENCE, || Ok((generation(&fixture)? == last).then_some(())))?;
    let after = until("the state loop turns again", PATIENCE, || {
        let now = Measured::read(&fixture)?;
        Ok((now.writing == 0.0 && now.waiting == 0.0 && now.state_age < LONG).then_some(now))
    })?;
    ensure!((after.writes, after.failures) == (writes, 0.0), "{after:?}");
    ensure!(!is_frozen || after.written - before.written >= LONG, "{before:?} {after:?}");
    fixture.balancer.stop()
}

/// While the disk is frozen, another apply waits behind the one that waits for it, and both can be seen.
fn measure_frozen<'s>(
    scope: &'s thread::Scope<'s, '_>,
    fixture: &Fixture,
    text: &str,
) -> Result<()> {
    let (shell, text) = (fixture.balancer.command(&["apply", "-f", "-"]), text.to_owned());
    scope.spawn(move || with_input(shell, &text));
    // The age of the state loop grows as long as the disk is frozen, that of a loop that turns does not.
    let shown = until("a write under way, an apply behind it, and members", PATIENCE, || {
        let now = Measured::read(fixture)?;
        let member_turns = now.member_age < now.state_age / 2.0;
        Ok((now.writing >= LONG && now.waiting >= 1.0 && member_turns).then_some(now))
    })?;
    ensure!((shown.writes, shown.failures) == (1.0, 0.0), "{shown:?}");
    ensure!(shown.state_age >= shown.writing, "{shown:?}");
    Ok(())
}

/// Without room on the disk a large configuration is refused and counted, and accepted once there is room.
fn without_room(sandbox: &Sandbox) -> Result<()> {
    let service = OnDisk::start(sandbox, "room")?;
    let fixture = &service.fixture;
    counted(fixture, "the first write", (1.0, 0.0))?;
    service.disk.fill()?;
    let path = "x".repeat(1_000);
    let check = |number| {
        format!(
            "[[health_check]]\nname = \"c{number}\"\nport = 80\nhttp = {{ path = \"/{path}\" }}\n"
        )
    };
    let large = service.configuration() + &(0..LARGE).map(check).collect::<String>();
    let refused = fixture.balancer.apply(&large);
    let said = format!("{:#}", refused.err().context("a full disk takes a configuration")?);
    ensure!(said.contains("No space left on device"), "{said}");
    counted(fixture, "a write that failed", (2.0, 1.0))?;
    ensure!(generation(fixture)? == 1);
    service.disk.free()?;
    fixture.balancer.apply(&large)?;
    counted(fixture, "a write without a failure", (3.0, 1.0))?;
    let OnDisk { mut fixture, .. } = service;
    fixture.balancer.stop()
}

/// Waits until so many writes, and so many failures among them, are shown. A scrape soon after another may show the same.
fn counted(fixture: &Fixture, what: &str, expected: (f64, f64)) -> Result<()> {
    until(what, PATIENCE, || {
        let now = Measured::read(fixture)?;
        Ok(((now.writes, now.failures) == expected && now.writing == 0.0).then_some(()))
    })
}

fn generation(fixture: &Fixture) -> Result<u64> {
    Ok(fixture.balancer.status()?.generation)
}
