//! A backend goes after `fall` failures in a row, whatever is edited or restarted meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_e2e::fixture::{Fixture, Health, configuration};
use lb_tests::process::pause;
use lb_tests::sandbox::Sandbox;
use spillway_proto::v1::BackendState;

use super::wait_for;

const VICTIM: &str = "eu3";

/// So rare that no check is due while a case lasts.
const RARE: Health = Health { interval_ms: 600_000, fall: 3 };

/// Slow enough to tell one failure from three on a busy machine.
const SLOW: Health = Health { interval_ms: 2000, fall: 3 };

/// The server has died and no check has seen it; then the interval is edited.
pub(crate) fn edited(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "edited", RARE)?;
    let victim = fixture.number(VICTIM)?;
    fixture.servers[victim].kill()?;
    // An edit that keeps the interval makes no check.
    let twice = Health { fall: 2 * RARE.fall, ..RARE };
    fixture.balancer.apply(&configuration(&fixture.fabric, twice).text())?;
    pause(Duration::from_secs(2));
    fixture.wait_up(&[])?;
    let edit = Instant::now();
    fixture.balancer.apply(&configuration(&fixture.fabric, SLOW).text())?;
    wait_for(&fixture, VICTIM, BackendState::Unhealthy, "check page: connection refused")?;
    // Three checks are two intervals, of which jitter takes a tenth.
    let least = Duration::from_millis(u64::from(SLOW.interval_ms)) * 2 * 9 / 10;
    let took = edit.elapsed();
    ensure!(took >= least, "out {took:?} after the edit, on less than three failures");
    fixture.wait_up(&[VICTIM])
}

/// The server dies while no daemon runs: what is pinned stands until the row is whole.
pub(crate) fn started(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "started", SLOW)?;
    let victim = fixture.number(VICTIM)?;
    fixture.balancer.kill()?;
    fixture.servers[victim].kill()?;
    fixture.balancer.start()?;
    wait_for(&fixture, VICTIM, BackendState::Up, "check page: connection refused (failure ")?;
    wait_for(&fixture, VICTIM, BackendState::Unhealthy, "check page: connection refused")?;
    fixture.wait_up(&[VICTIM])
}
