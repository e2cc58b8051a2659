//! Runs the program `demo` as a user would, and checks that it leaves nothing behind.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::leftovers::{BpfObject, others, pinned_below};
use lb_tests::daemon::Binaries;
use lb_tests::process::{PATIENCE, eventually, until};
use lb_tests::sandbox::outside;
use serde_json::Value;

/// The demo, which stands where cargo put the programs of this build; our own is in `deps` there.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find our own program")?;
    let program = own.parent().and_then(Path::parent).context("our own program")?.join("demo");
    ensure!(program.is_file(), "{}: not built; `cargo xtask test` does", program.display());
    Ok(program)
}

/// Starts it with these words behind its own.
pub(crate) fn start(out: &Path, words: &[&str]) -> Result<Child> {
    let daemon = Binaries::find()?.spillwayd;
    let directory = daemon.parent().context("spillwayd is in a directory")?;
    Command::new(program()?)
        .arg("--bin-dir")
        .arg(directory)
        .arg("--out")
        .arg(out)
        .args(words)
        .stdin(Stdio::null())
        .stdout(fs::File::create(out.join("stdout"))?)
        .stderr(fs::File::create(out.join("stderr"))?)
        .process_group(0)
        .spawn()
        .context("start the demo")
}

/// Plays an experiment to its good end and returns its report, and its results' place.
pub(crate) fn play(name: &str, words: &[&str]) -> Result<(Value, PathBuf)> {
    let out = out(name)?;
    let status = start(&out, words)?.wait()?;
    let said = fs::read_to_string(out.join("stdout"))? + &fs::read_to_string(out.join("stderr"))?;
    ensure!(status.success(), "{status}\n{said}");
    nothing_left(&[])?;
    let results = out.join(name);
    Ok((serde_json::from_str(&fs::read_to_string(results.join("report.json"))?)?, results))
}

/// Removes what [`play`] left of an experiment, once it has been looked at.
pub(crate) fn tidy(results: &Path) -> Result<()> {
    let out = results.parent().context("results are in a place of their own")?;
    Ok(fs::remove_dir_all(out)?)
}

/// A place for results, which no other run on this machine has. Not below /run: the demo has one of its own.
pub(crate) fn out(name: &str) -> Result<PathBuf> {
    let run = outside().context("not in a sandbox")?;
    let out = std::env::temp_dir().join(format!("spillway-demo-{name}-{run}"));
    fs::create_dir_all(&out)?;
    Ok(out)
}

/// BPF objects that are pinned in the demo's own sandbox.
pub(crate) fn pinned_by(demo: &Child) -> Result<Vec<BpfObject>> {
    let inside = others()?.into_iter().find(|other| other.parent == demo.id());
    let root = inside.map(|inside| format!("/proc/{}/root/run/sandbox/bpf", inside.pid));
    Ok(root.map_or_else(Vec::new, |root| pinned_below(Path::new(&root))))
}

/// No process, and none of these objects. Network namespaces and mounts go with the processes.
pub(crate) fn nothing_left(objects: &[BpfObject]) -> Result<()> {
    eventually("its processes are gone", PATIENCE, || {
        others().is_ok_and(|others| others.is_empty())
    })?;
    for object in objects {
        until(&format!("{object:?} is gone"), PATIENCE, || Ok((!object.exists()?).then_some(())))?;
    }
    Ok(())
}
