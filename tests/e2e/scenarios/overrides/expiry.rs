//! Overrides that end by themselves, and those of what goes and comes back.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HTTP, Health, Tunnel};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::{Requests, ensure_answered},
};
use spillway_proto::v1::BackendState;

use super::{address, answers, names, status_of};

/// Seconds for which the drain is set.
const TIME: u64 = 8;

pub(super) fn ends(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "expiring", Health::QUICK)?;
    let (victim, gone) = (address(&fixture, "eu2")?, address(&fixture, "eu1")?);
    fixture.balancer.cli(&["backend", "drain", &victim, "--for", &format!("{TIME}s")])?;
    let began = Instant::now();
    let drained = fixture.balancer.overrides()?.overrides;
    ensure!(drained.first().is_some_and(|it| it.until.is_some()), "{drained:?}");
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 2, Duration::from_millis(2));
    requests.wait_for(100)?;
    // The time goes on while the daemon is away.
    fixture.balancer.kill()?;
    requests.wait_for(50)?;
    fixture.balancer.start()?;
    let (state, names_then) = (status_of(&fixture, &victim)?.state(), names(&fixture)?);
    let early = began.elapsed() < Duration::from_secs(TIME - 1);
    let is_drained = state == BackendState::Draining && !names_then.is_empty();
    ensure!(!early || is_drained, "it ended early: {state:?}");
    let attempts = requests.finish()?;
    if began.elapsed() < Duration::from_secs(TIME) {
        ensure_answered(&attempts, began, Instant::now(), &["eu2"])?;
    }
    until("the drain ends", PATIENCE, || Ok(names(&fixture)?.is_empty().then_some(())))?;
    let took = began.elapsed();
    ensure!(took >= Duration::from_secs(TIME - 1), "it ended after {took:?}");
    until("it is up", PATIENCE, || {
        Ok((status_of(&fixture, &victim)?.state() == BackendState::Up).then_some(()))
    })?;
    ensure!(answers(&fixture, 300)?.contains_key("eu2"), "it gets nothing");

    // What goes is shown as gone, and comes back with its override.
    let region = status_of(&fixture, &gone)?.region;
    fixture.balancer.cli(&["backend", "drain", &gone, "--pool", "v4"])?;
    fixture.balancer.cli(&["backend", "delete", &gone, "--pool", "v4"])?;
    let is_absent = |fixture: &Fixture| -> Result<bool> {
        let overrides = fixture.balancer.overrides()?.overrides;
        Ok(overrides.first().context("no override")?.absent_since.is_some())
    };
    ensure!(is_absent(&fixture)?);
    let create = ["backend", "create", &gone, "--pool", "v4", "--region", &region];
    fixture.balancer.cli(&create)?;
    ensure!(!is_absent(&fixture)?);
    until("it drains again", PATIENCE, || {
        Ok((status_of(&fixture, &gone)?.state() == BackendState::Draining).then_some(()))
    })?;
    ensure!(!answers(&fixture, 200)?.contains_key("eu1"));
    fixture.balancer.stop()
}
