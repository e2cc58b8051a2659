//! Containers: a Debian with systemd as process 1, in the network namespace of a node.
//!
//! What a container is made of goes with the sandbox as everything else in it, but for its cgroups: the
//! kernel keeps those when their last process is gone. [`sweeper`] takes them away from outside.

mod cgroup;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use lb_tests::process::{Running, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Node;

pub use cgroup::sweeper;

/// Turns a process into the container's first.
const BOOT: &str = include_str!("boot.sh");

/// How long a container may take to boot.
const LIMIT: Duration = Duration::from_secs(180);

/// A Debian that containers are made from; each has changes of its own.
#[derive(Clone, Debug)]
pub struct Debian {
    root: PathBuf,
}

/// A running container; it goes when this value goes.
#[derive(Debug)]
pub struct Container {
    name: String,
    /// Process 1, as the sandbox sees it.
    init: u32,
    _running: Running,
}

impl Debian {
    /// Unpacks the one whose tar file `SPILLWAY_DEBIAN` names.
    ///
    /// # Errors
    /// When there is none, or it cannot be unpacked.
    pub fn unpack(sandbox: &Sandbox) -> Result<Self> {
        let tar = std::env::var_os("SPILLWAY_DEBIAN");
        let tar = tar.context("SPILLWAY_DEBIAN: not set; `cargo xtask test package` sets it")?;
        let root = sandbox.directory("debian")?;
        let mut unpack = Command::new("tar");
        unpack.arg("--extract").arg("--file").arg(&tar).arg("--directory").arg(&root);
        let status = unpack.arg("--numeric-owner").status().context("run tar")?;
        ensure!(status.success(), "unpack {}: {status}", Path::new(&tar).display());
        Ok(Self { root })
    }
}

impl Container {
    /// Boots one in a node and waits until systemd has started what it starts.
    ///
    /// # Errors
    /// When that takes more than three minutes, or a unit of Debian's own fails.
    pub fn boot(sandbox: &Sandbox, debian: &Debian, node: &Node) -> Result<Self> {
        let own = node.directory().join("container");
        fs::create_dir_all(&own).with_context(|| own.display().to_string())?;
        let script = own.join("boot.sh");
        fs::write(&script, BOOT).with_context(|| script.display().to_string())?;
        let group = cgroup::join(sandbox, node.namespace())?;
        let mut command = node.command("sh");
        // In the cgroup first, so that it is the root of the container's cgroup namespace.
        command.args(["-c", "echo 0 >\"$1\"/cgroup.procs && shift && exec unshare \"$@\"", "sh"]);
        command.arg(&group).args(["--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc"]);
        command.args(["--cgroup", "--propagation", "private", "sh"]).arg(&script);
        command.arg(&debian.root).arg(&own);
        let mut running =
            Running::start(&format!("container {}", node.name()), &mut command, &own.join("log"))?;
        let pid = own.join("pid");
        let init = until("container begins", LIMIT, || {
            running.check()?;
            Ok(fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse().ok()))
        })?;
        let mut container = Self { name: node.name().into(), init, _running: running };
        container.wait_booted()?;
        Ok(container)
    }

    fn wait_booted(&mut self) -> Result<()> {
        let state = until("container boots", LIMIT, || {
            self._running.check()?;
            let output = self.output(["systemctl", "is-system-running"])?;
            let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Ok(["running", "degraded"].contains(&&*state).then_some(state))
        })
        .with_context(|| self._running.output())?;
        ensure!(state == "running", "{}", self.run(["systemctl", "--failed", "--no-legend"])?);
        Ok(())
    }

    /// A file of the container, as the sandbox sees it.
    pub fn path(&self, path: &str) -> PathBuf {
        Path::new("/proc")
            .join(self.init.to_string())
            .join("root")
            .join(path.trim_start_matches('/'))
    }

    /// Writes a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        fs::write(self.path(path), content).with_context(|| format!("{}: {path}", self.name))
    }

    /// A command that will run in the container as root, without standard input.
    pub fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.init.to_string());
        command
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd=/"]);
        command.args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"]);
        command.arg("DEBIAN_FRONTEND=noninteractive").args(words).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end, however it ends.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn output<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<Output> {
        let mut command = self.command(words);
        command.output().with_context(|| format!("{}: {command:?}", self.name))
    }

    /// Runs a program to its end and returns what it printed.
    ///
    /// # Errors
    /// When it fails; the error carries both its outputs, and the end of the journal.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String> {
        let mut command = self.command(words);
        let output = command.output().with_context(|| format!("{}: {command:?}", self.name))?;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let journal = self.output(["journalctl", "--no-pager", "--lines=40"])?.stdout;
            let journal = String::from_utf8_lossy(&journal);
            bail!("{}: {command:?}: {}\n{out}{said}\n{journal}", self.name, output.status);
        }
        Ok(out)
    }
}
