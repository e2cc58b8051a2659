//! The inside: fresh namespaces and mounts for the process that runs the tests.

use std::{io::stdin, os::fd::AsFd as _, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};

/// Makes the namespaces and mounts; this process must be the first of its PID namespace.
pub(super) fn set_up(root: &Path) -> Result<()> {
    die_with_supervisor()?;
    // What the supervisor waits for it blocks, and what it blocks we inherit; so would our programs.
    SigSet::all().thread_unblock().context("unblock signals")?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC)
        .context("make mount, network and IPC namespaces")?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&Path>, Path::new("/"), None::<&str>, private, None::<&str>)
        .context("make the mounts private")?;
    // What iproute2 finds there it writes into, and it would stay.
    while umount2("/sys/fs/bpf", MntFlags::MNT_DETACH).is_ok() {}
    fresh("proc", Path::new("/proc"))?;
    fresh("tmpfs", Path::new("/run"))?;
    // Programs that are killed leave what they share in memory. A guest with a kernel of its own has no such folder.
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        fresh("tmpfs", shared)?;
    }
    mount_bpf(root)?;
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("run ip")?;
    if !up.success() {
        bail!("ip link set lo up: {up}");
    }
    Ok(())
}

/// Gives a sandbox its BPF file system.
pub(super) fn mount_bpf(root: &Path) -> Result<()> {
    mount_bpf_on(&root.join("bpf"))
}

/// Mounts one on a directory, which is made.
pub(super) fn mount_bpf_on(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
    fresh("bpf", directory)
}

/// The kernel kills us when the supervisor dies; if it died before we asked, its pipe is closed.
fn die_with_supervisor() -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).context("ask to die with the supervisor")?;
    let input = stdin();
    let mut lifeline = [PollFd::new(input.as_fd(), PollFlags::empty())];
    poll(&mut lifeline, PollTimeout::ZERO).context("look for the supervisor")?;
    if lifeline[0].any() == Some(true) {
        bail!("the supervisor is gone");
    }
    Ok(())
}

fn fresh(kind: &str, target: &Path) -> Result<()> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
        .with_context(|| format!("mount {kind} on {}", target.display()))
}
