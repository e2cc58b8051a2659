//! A backend that was up goes after `fall` failures in a row, whatever was edited or started meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_tests::process::pause;
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::{Health, Scene, configuration};

use super::wait_for;

const VICTIM: &str = "eu3";

/// So rare that no check is due while a case lasts.
const RARE: Health = Health { interval_ms: 600_000, fall: 3 };

/// Slow enough to tell one failure from three on a busy machine.
const SLOW: Health = Health { interval_ms: 2000, fall: 3 };

/// The server has died and no check has seen it; then the interval is edited.
pub(crate) fn edited(sandbox: &Sandbox) -> Result<()> {
    let mut scene = Scene::start(sandbox, "edited", RARE)?;
    let victim = scene.number(VICTIM)?;
    scene.servers[victim].kill()?;
    // An edit that keeps the interval makes no check.
    let twice = Health { fall: 2 * RARE.fall, ..RARE };
    scene.balancer.apply(&configuration(&scene.fabric, twice).text())?;
    pause(Duration::from_secs(2));
    scene.wait_up(&[])?;
    let edit = Instant::now();
    scene.balancer.apply(&configuration(&scene.fabric, SLOW).text())?;
    wait_for(&scene, VICTIM, "unfit", "check page: connection refused")?;
    // Three checks are two intervals, of which jitter takes a tenth.
    let least = Duration::from_millis(u64::from(SLOW.interval_ms)) * 2 * 9 / 10;
    let took = edit.elapsed();
    ensure!(took >= least, "out {took:?} after the edit, on less than three failures");
    scene.wait_up(&[VICTIM])
}

/// The server dies while no daemon runs: what is pinned stands until the row is whole.
pub(crate) fn started(sandbox: &Sandbox) -> Result<()> {
    let mut scene = Scene::start(sandbox, "started", SLOW)?;
    let victim = scene.number(VICTIM)?;
    scene.balancer.kill()?;
    scene.servers[victim].kill()?;
    scene.balancer.start()?;
    wait_for(&scene, VICTIM, "up", "check page: connection refused (failure ")?;
    wait_for(&scene, VICTIM, "unfit", "check page: connection refused")?;
    scene.wait_up(&[VICTIM])
}
