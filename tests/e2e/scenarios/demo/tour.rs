//! The tour reports what its servers logged, and leaves nothing behind.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::leftovers::mounts;
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::sandbox::Sandbox;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::demo::run::{nothing_left, out, pinned_by, start};

pub(crate) fn the_report_adds_up(_: &Sandbox) -> Result<()> {
    let out = out("whole")?;
    let status = start(&out, &[])?.wait()?;
    let said = fs::read_to_string(out.join("stdout"))? + &fs::read_to_string(out.join("stderr"))?;
    ensure!(status.success(), "{status}\n{said}");
    ensure!(
        said.contains(" ms: check page of 203.0.113.1: "),
        "it says not why a backend is unhealthy:\n{said}"
    );

    let report: Value = serde_json::from_str(&fs::read_to_string(out.join("report.json"))?)?;
    let number = |value: &Value| value.as_u64().with_context(|| format!("{value} is no number"));
    let client = &report["client"];
    let (answered, failed) = (number(&client["answered"])?, number(&client["failed"])?);
    let (opened, repeated) =
        (number(&client["connections_opened"])?, number(&client["syns_repeated"])?);
    let backends = report["backends"].as_array().context("no backends")?;
    let sum = |field: &str| backends.iter().map(|b| number(&b[field])).sum::<Result<u64>>();
    ensure!(backends.len() == 6 && sum("logged")? == answered && answered > 1000);
    ensure!(sum("balancer_connections")? == opened + repeated && opened == answered + failed);
    // Every backend had its turn, and the picture shows each.
    let picture = fs::read_to_string(out.join("shares.svg"))?;
    for backend in backends {
        let name = backend["name"].as_str().context("no name")?;
        ensure!(number(&backend["logged"])? > 0, "{name} had nothing");
        ensure!(picture.contains(&format!(">{name}</text>")), "{name} is not in the picture");
    }
    fs::remove_dir_all(out)?;
    nothing_left(&[])
}

/// At moments all over the demo: while it builds, while programs attach, while it runs.
pub(crate) fn control_c_leaves_nothing(_: &Sandbox) -> Result<()> {
    let out = out("broken")?;
    let before = mounts()?;
    for milliseconds in [10, 300, 1000, 1700, 2400, 3100, 3800] {
        let moment = format!("after {milliseconds} ms");
        let after = |_: &Child| {
            pause(Duration::from_millis(milliseconds));
            Ok(())
        };
        broken_off(&out, after).context(moment)?;
    }
    // However long it takes to come so far: with programs attached.
    broken_off(&out, |demo| {
        until("a program for each of seven nodes, and its maps", PATIENCE, || {
            Ok((pinned_by(demo)?.len() >= 7 * 3).then_some(()))
        })
    })?;
    let left: Vec<_> = mounts()?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "mounts are left: {left:?}");
    fs::remove_dir_all(out)?;
    Ok(())
}

/// Breaks it off at a moment.
fn broken_off(out: &Path, moment: impl FnOnce(&Child) -> Result<()>) -> Result<()> {
    let mut demo = start(out, &[])?;
    let waited = moment(&demo);
    let objects = pinned_by(&demo);
    killpg(Pid::from_raw(demo.id() as i32), Signal::SIGINT)?;
    let status = demo.wait()?;
    waited?;
    let ended_by = status.signal().or(status.code().map(|code| code - 128));
    ensure!(ended_by == Some(Signal::SIGINT as i32), "{status}");
    nothing_left(&objects?)
}
