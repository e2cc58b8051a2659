//! Ways to end a lab.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::shell::Shell;

const DOWN: &str = "cargo xtask lab down";
/// The least that there is of a lab: a balancer and two backends with their servers.
const SMALL: &str = "cargo xtask lab --regions 1";

pub(super) fn broken_or_half_built(sandbox: &Sandbox) -> Result<()> {
    let mut shell = Shell::new(sandbox, "lab")?;
    let folder = shell.folder.clone();
    ensure!(shell.run(DOWN)? == "no lab is there\n");
    half_built(&mut shell)?;

    // It outlives its terminal. The daemon is killed, and a folder of what is there is removed by hand.
    shell.run("script -qec \"$lab --bin-dir $programs --regions 1\" /dev/null")?;
    ensure!(shell.run("cargo xtask lab status")?.matches(" runs\n").count() == 1 + 2 * 2);
    let pinned = shell.pinned();
    shell.run("kill -9 $(cat /run/spillway-lab/balancer/balancer.pid)")?;
    until("the status says so", PATIENCE, || {
        let said = shell.attempt("cargo xtask lab status")?.1;
        Ok(said.contains("balancer   balancer   has ended").then_some(()))
    })?;
    fs::remove_dir_all(folder.join("eu1"))?;
    shell.run(DOWN)?;
    shell.nothing_is_left(&pinned)?;
    ensure!(shell.run(DOWN)? == "no lab is there\n");

    // After a boot: files, but nothing that runs. Then namespaces without files.
    fs::create_dir_all(folder.join("balancer/state"))?;
    fs::write(folder.join("lab.json"), "{")?;
    shell.run(DOWN)?;
    shell.run("ip netns add spillway-labour; ip netns add spillway-lab-eu1")?;
    shell.run("ip netns exec spillway-lab-eu1 sleep 1000 &")?;
    until("it sleeps", PATIENCE, || {
        Ok(shell.run("ip netns pids spillway-lab-eu1 | wc -l")?.starts_with('1').then_some(()))
    })?;
    // As `ip` leaves it that is killed, or at work still: the file cannot go at once.
    shell.run("touch /run/netns/spillway-lab-eu2")?;
    shell.run(
        "ip netns add spillway-lab-eu3; eu3=/run/netns/spillway-lab-eu3; mount --bind $eu3 $eu3",
    )?;
    // The next lab removes them too.
    ensure!(shell.run(SMALL)?.starts_with("a lab that is half built is removed first\n"));
    shell.run(DOWN)?;
    ensure!(Path::new("/run/netns/spillway-labour").exists(), "a stranger's namespace is gone");
    shell.run("ip netns delete spillway-labour")?;
    shell.nothing_is_left(&[])
}

/// At its beginning, and when programs are started: it is removed, or replaced by a whole one.
fn half_built(shell: &mut Shell) -> Result<()> {
    for (moment, next) in [("router", DOWN), ("eu2/webserver.pid", SMALL)] {
        let mut command = shell.command("exec \"$lab\" --bin-dir \"$programs\" --regions 1");
        let mut lab = command.stdout(Stdio::null()).spawn().context("start the lab")?;
        until(moment, PATIENCE, || {
            ensure!(lab.try_wait()?.is_none(), "it has ended before {moment}");
            Ok(shell.folder.join(moment).exists().then_some(()))
        })?;
        // It stands still meanwhile: it would be whole in a moment.
        let pid = Pid::from_raw(lab.id() as i32);
        kill(pid, Signal::SIGSTOP)?;
        let said = shell.attempt(DOWN)?;
        ensure!(said.1.contains("another `cargo xtask lab` is at work"), "{said:?}");
        kill(pid, Signal::SIGKILL)?;
        lab.wait()?;
        let (succeeded, said) = shell.attempt("cargo xtask lab status")?;
        ensure!(!succeeded && said.contains("but one is half built"), "{said}");
        shell.run(next)?;
    }
    shell.run(DOWN)?;
    shell.nothing_is_left(&[])
}
