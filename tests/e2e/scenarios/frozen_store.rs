//! A disk that does not answer holds up the apply that waits for it, and nothing else: no failover and no answer.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{Balancer, Binaries},
    disk::Disk,
    fixture::{Fixture, HTTP, Health, Tunnel, configuration},
    harness::{self, Case},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::REGIONS,
    traffic::{Requests, ensure_answered},
};

use crate::on_disk::with_input;

pub(crate) const CASES: &[Case] = &[
    Case::works("a_frozen_store_holds_up_no_failover_and_no_answer", |sandbox| {
        apply_and_fail_over(sandbox, true)
    }),
    Case::works("a_store_that_is_not_frozen_is_written_meanwhile", |sandbox| {
        apply_and_fail_over(sandbox, false)
    }),
];

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// Applies a configuration while the disk is frozen or not, and kills a server under load meanwhile. No request fails
/// after the detection: so the maps have it.
fn apply_and_fail_over(sandbox: &Sandbox, is_frozen: bool) -> Result<()> {
    let mut disk = Disk::mount(sandbox)?;
    let mut fixture = Fixture::idle(sandbox, "frozen")?;
    fixture.balancer.stop()?;
    let mut balancer =
        Balancer::new(sandbox, &Binaries::find()?, &fixture.fabric.balancer, REGIONS[0])?;
    balancer.state = disk.directory().join("state");
    balancer.start()?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    balancer.apply(&text)?;
    fixture.balancer = balancer;
    fixture.wait_up(&[])?;
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

        let asked = Instant::now();
        let generation_meanwhile = generation(fixture)?;
        ensure!(asked.elapsed() < ANSWER, "an answer took {:?}", asked.elapsed());
        ensure!(generation_meanwhile == if is_frozen { 1 } else { 2 }, "{generation_meanwhile}");
        ensure!(apply.is_finished() != is_frozen, "the apply does not wait for the disk");
        disk.thaw()?;
        let output = apply.join().map_err(|_| anyhow::anyhow!("the apply panicked"))??;
        let said = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        ensure!(said.contains("generation 2"), "{said}");
        ensure!(generation(fixture)? == 2);
        fixture.wait_up(&["eu2"])
    })?;
    fixture.balancer.stop()
}

fn generation(fixture: &Fixture) -> Result<u64> {
    let status = fixture.balancer.ask(&["status"])?;
    status["generation"].as_u64().context("status: no generation")
}
