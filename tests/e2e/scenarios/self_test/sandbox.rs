//! Nothing survives a sandbox, whatever ends it and whenever.
//!
//! The test program is in a sandbox itself and starts itself again as a *victim* in a sandbox within.
//! From outside it sees the victim's processes in `/proc`, its BPF objects by their ids, and its
//! network namespaces by a veth pair of which one end was given away: the end that was kept
//! goes when the namespace with the other goes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::Case;
use lb_e2e::leftovers::{BpfObject, mounts, others};
use lb_tests::process::{PATIENCE, eventually, pause, until};
use lb_tests::sandbox::{self, Sandbox};
use lb_tests::topology::Fabric;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

const VICTIM: &str = "SPILLWAY_VICTIM";

pub(crate) const CASES: &[Case] = &[
    Case::waits("what_is_outside_is_not_seen_inside", what_is_outside_is_not_seen_inside),
    Case::waits("the_exit_code_comes_through", the_exit_code_comes_through),
    Case::waits("kill_9_of_the_supervisor_leaves_nothing", |_| {
        ends(|victim| signal(victim, Signal::SIGKILL), Some(Signal::SIGKILL), None)
    }),
    Case::waits("kill_9_of_the_inside_leaves_nothing", |_| {
        ends(kill_inside, None, Some(128 + Signal::SIGKILL as i32))
    }),
    Case::waits("control_c_leaves_nothing", |_| ends_by(Signal::SIGINT)),
    Case::waits("sigterm_leaves_nothing", |_| ends_by(Signal::SIGTERM)),
    Case::waits("a_closed_terminal_leaves_nothing", |_| ends_by(Signal::SIGHUP)),
    Case::waits("control_c_at_any_moment_leaves_nothing", |_| control_c_at_any_moment()),
];

/// The process to be ended, if this is it.
pub(crate) fn victim() -> Option<ExitCode> {
    let how = std::env::var(VICTIM).ok()?;
    let ended = serve(&sandbox::enter(), &how);
    #[expect(clippy::print_stderr, reason = "the test shows it")]
    if let Err(error) = &ended {
        eprintln!("{error:#}");
    }
    Some(if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes one of everything, reports the ids of its BPF objects, and waits to be ended.
fn serve(sandbox: &Sandbox, how: &str) -> Result<()> {
    match how {
        "exit" => std::process::exit(42),
        "look" => std::process::exit(i32::from(has_bpf_file_system()?)),
        _ => {}
    }
    let fabric = Fabric::new(sandbox, "victim", 1)?;
    let mut programs = Vec::new();
    for node in fabric.net.nodes() {
        programs.push(node.spawn("sleep", ["1000"])?);
        // One that leaves its parent and ignores every signal it can.
        let stubborn = "trap '' HUP INT TERM; setsid sleep 1000 & wait";
        programs.push(node.spawn("sh", ["-c", stubborn])?);
    }
    let pin = sandbox.bpffs("victim")?.join("map");
    let map = ["map", "create"].map(String::from).into_iter();
    let kind = "type array key 4 value 4 entries 1 name victim".split(' ').map(String::from);
    let arguments: Vec<_> = map.chain([pin.display().to_string()]).chain(kind).collect();
    fabric.client.run("bpftool", &arguments)?;
    let shown = fabric
        .client
        .run("bpftool", ["-j", "map", "show", "pinned", &pin.display().to_string()])?;
    let shown: serde_json::Value = serde_json::from_str(&shown)?;
    println!("ready {}", shown["id"]);
    std::io::stdout().flush()?;
    programs[0].wait()?;
    Ok(())
}

/// A victim in a process group of its own, as a shell gives a program in the foreground.
fn start(how: &str) -> Result<Child> {
    Command::new(std::env::current_exe()?)
        .env(VICTIM, how)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("start the victim")
}

fn pid(victim: &Child) -> Pid {
    Pid::from_raw(victim.id() as i32)
}

fn signal(victim: &Child, signal: Signal) -> Result<()> {
    kill(pid(victim), signal).context("signal")
}

fn kill_inside(victim: &Child) -> Result<()> {
    let inside = others()?.into_iter().find(|other| other.parent == victim.id());
    let inside = inside.context("no process 1")?;
    kill(Pid::from_raw(inside.pid as i32), Signal::SIGKILL).context("signal")
}

fn ends_by(signal: Signal) -> Result<()> {
    ends(|victim| killpg(pid(victim), signal).context("signal"), None, Some(128 + signal as i32))
}

/// Ends a victim that has made everything, and looks for what is left.
fn ends(
    end: impl FnOnce(&Child) -> Result<()>,
    by: Option<Signal>,
    code: Option<i32>,
) -> Result<()> {
    ensure!(others()?.is_empty(), "another test left {:?}", others()?);
    let mut victim = start("stay")?;
    let mut out = BufReader::new(victim.stdout.take().context("stdout")?);
    let mut line = String::new();
    out.read_line(&mut line)?;
    let map = line.strip_prefix("ready ").with_context(|| format!("victim: {line:?}"))?;
    let map = BpfObject::new("map", map.trim().parse()?);
    ensure!(map.exists()?, "{map:?} is not seen from outside");

    // The supervisor is in ours; what was started last may have to find its way yet.
    let (mut inside, ours) = (Vec::new(), fs::read_link("/proc/self/ns/net")?);
    let namespaces = until("the victim's own namespace and those of five nodes", PATIENCE, || {
        inside = others()?;
        let all = inside.iter().filter_map(|other| other.network.clone());
        let namespaces: BTreeSet<_> = all.filter(|namespace| *namespace != ours).collect();
        Ok((namespaces.len() == 6).then_some(namespaces))
    })
    .with_context(|| format!("{inside:?}"))?;
    for (number, namespace) in namespaces.iter().enumerate() {
        let holder = inside.iter().find(|other| other.network.as_ref() == Some(namespace));
        let holder = holder.context("no process there")?.pid;
        give_witness(number, holder)?;
    }
    ensure!(witnesses()? == namespaces.len());

    end(&victim)?;
    let status = victim.wait()?;
    ensure!(status.signal() == by.map(|signal| signal as i32), "{status}");
    ensure!(status.code() == code, "{status}");
    nothing_left()?;
    until("its map is gone", PATIENCE, || Ok((!map.exists()?).then_some(())))
}

/// No process of the victim's and no namespace of it.
fn nothing_left() -> Result<()> {
    eventually("its processes are gone", PATIENCE, || {
        others().is_ok_and(|others| others.is_empty())
    })
    .with_context(|| format!("{:?}", others()))?;
    eventually("its namespaces are gone", PATIENCE, || witnesses().is_ok_and(|count| count == 0))
}

fn control_c_at_any_moment() -> Result<()> {
    let before = mounts()?;
    for milliseconds in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610] {
        let mut victim = start("stay")?;
        pause(Duration::from_millis(milliseconds));
        killpg(pid(&victim), Signal::SIGINT)?;
        let status = victim.wait()?;
        // Before it has asked for signals, one ends it as any program; after, it says so itself.
        let ended_by = status.signal().or(status.code().map(|code| code - 128));
        ensure!(ended_by == Some(Signal::SIGINT as i32), "{milliseconds} ms: {status}");
        nothing_left().with_context(|| format!("after {milliseconds} ms"))?;
    }
    let left: Vec<_> = mounts()?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "mounts are left: {left:?}");
    Ok(())
}

fn the_exit_code_comes_through(_: &Sandbox) -> Result<()> {
    let status = start("exit")?.wait()?;
    ensure!(status.code() == Some(42), "{status}");
    Ok(())
}

fn what_is_outside_is_not_seen_inside(sandbox: &Sandbox) -> Result<()> {
    ensure!(std::process::id() == 1 && others()?.is_empty());
    let links = fs::read_to_string("/proc/self/net/dev")?;
    let links: Vec<_> = links.lines().skip(2).filter_map(|line| line.split(':').next()).collect();
    ensure!(links.iter().map(|link| link.trim()).eq(["lo"]), "links: {links:?}");
    let private = sandbox.directory("private")?;
    ensure!(private.starts_with("/run") && sandbox.bpffs("x")?.read_dir()?.next().is_none());
    // iproute2 writes into it.
    mount(Some("bpf"), USUAL_BPFFS, Some("bpf"), MsFlags::empty(), None::<&str>)?;
    ensure!(has_bpf_file_system()?);
    ensure!(start("look")?.wait()?.code() == Some(0), "the outside's BPF file system is seen");
    Ok(())
}

const USUAL_BPFFS: &str = "/sys/fs/bpf";

/// Whether there is one where one usually is.
fn has_bpf_file_system() -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(USUAL_BPFFS)))
}

fn give_witness(number: usize, holder: u32) -> Result<()> {
    let holder = holder.to_string();
    let (kept, given) = (format!("witness{number}"), format!("given{number}"));
    let arguments =
        ["link", "add", &kept, "type", "veth", "peer", "name", &given, "netns", &holder];
    let status = Command::new("ip").args(arguments).status()?;
    ensure!(status.success(), "give a veth to process {holder}: {status}");
    Ok(())
}

fn witnesses() -> Result<usize> {
    Ok(fs::read_to_string(Path::new("/proc/self/net/dev"))?.matches("witness").count())
}
