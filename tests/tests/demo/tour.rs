//! The tour tells the truth, and nothing is left of it.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::pause;
use lb_tests::sandbox::Sandbox;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::run::{nothing_left, out, pinned_by, start};

/// It is over by then.
const LIMIT: Duration = Duration::from_secs(180);

pub(crate) fn the_report_adds_up(_: &Sandbox) -> Result<()> {
    let out = out("whole")?;
    let begun = Instant::now();
    let status = start(&out, &[])?.wait()?;
    let said = fs::read_to_string(out.join("stdout"))? + &fs::read_to_string(out.join("stderr"))?;
    ensure!(status.success(), "{status}\n{said}");
    ensure!(begun.elapsed() < LIMIT, "it took {:?}", begun.elapsed());

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

/// At moments all over the demo: while it builds, while it runs, while programs attach.
pub(crate) fn control_c_leaves_nothing(_: &Sandbox) -> Result<()> {
    let out = out("broken")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut most = 0;
    for milliseconds in [10, 300, 1000, 1700, 2400, 3100, 3800, 6000] {
        let mut demo = start(&out, &[])?;
        pause(Duration::from_millis(milliseconds));
        let objects = pinned_by(&demo)?;
        most = most.max(objects.len());
        killpg(Pid::from_raw(demo.id() as i32), Signal::SIGINT)?;
        let status = demo.wait()?;
        let ended_by = status.signal().or(status.code().map(|code| code - 128));
        ensure!(ended_by == Some(Signal::SIGINT as i32), "{milliseconds} ms: {status}");
        nothing_left(&objects).with_context(|| format!("after {milliseconds} ms"))?;
    }
    ensure!(fs::read_to_string("/proc/self/mounts")? == mounts, "a mount is left");
    // Otherwise it was never broken off while programs were attached.
    ensure!(most >= 7 * 3, "{most} BPF objects at most");
    fs::remove_dir_all(out)?;
    Ok(())
}
