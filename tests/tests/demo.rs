//! The demo tells the truth, and nothing is left of it.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::Binaries;
use lb_tests::harness;
use lb_tests::process::{eventually, pause, until};
use lb_tests::remains::{BpfObject, others, pinned_below};
use lb_tests::sandbox::{self, Sandbox};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

/// A demo is over by then.
const LIMIT: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("the_report_adds_up", the_report_adds_up),
            ("control_c_leaves_nothing_of_the_demo", control_c_leaves_nothing),
        ],
    )
}

fn start(out: &Path) -> Result<Child> {
    let daemon = Binaries::find()?.spillwayd;
    let directory = daemon.parent().context("spillwayd is in a directory")?;
    Command::new(env!("CARGO_BIN_EXE_demo"))
        .arg("--bin-dir")
        .arg(directory)
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null())
        .stdout(fs::File::create(out.join("stdout"))?)
        .stderr(fs::File::create(out.join("stderr"))?)
        .process_group(0)
        .spawn()
        .context("start the demo")
}

fn out(sandbox: &Sandbox, name: &str) -> Result<PathBuf> {
    // Not below /run: the demo has one of its own.
    let _ = sandbox;
    let out = std::env::temp_dir().join(format!("spillway-demo-{name}"));
    fs::create_dir_all(&out)?;
    Ok(out)
}

fn the_report_adds_up(sandbox: &Sandbox) -> Result<()> {
    let out = out(sandbox, "whole")?;
    let begun = Instant::now();
    let status = start(&out)?.wait()?;
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
fn control_c_leaves_nothing(sandbox: &Sandbox) -> Result<()> {
    let out = out(sandbox, "broken")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut most = 0;
    for milliseconds in [10, 300, 1000, 1700, 2400, 3100, 3800, 6000] {
        let mut demo = start(&out)?;
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

/// BPF objects that are pinned in the demo's own sandbox.
fn pinned_by(demo: &Child) -> Result<Vec<BpfObject>> {
    let inside = others()?.into_iter().find(|other| other.parent == demo.id());
    let root = inside.map(|inside| format!("/proc/{}/root/run/sandbox/bpf", inside.pid));
    Ok(root.map_or_else(Vec::new, |root| pinned_below(Path::new(&root))))
}

/// No process, and none of these objects. Network namespaces and mounts go with the processes.
fn nothing_left(objects: &[BpfObject]) -> Result<()> {
    let limit = Duration::from_secs(10);
    eventually("its processes are gone", limit, || others().is_ok_and(|others| others.is_empty()))?;
    for object in objects {
        until(&format!("{object:?} is gone"), limit, || Ok((!object.exists()?).then_some(())))?;
    }
    Ok(())
}
