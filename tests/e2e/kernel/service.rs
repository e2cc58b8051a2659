//! Daemon and command line run in the guest, on the loopback interface.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{Running, until};
use nix::sys::signal::Signal;

/// How long anything may take in a guest that is emulated on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Where all of a service is that a test runs.
#[derive(Clone, Copy)]
pub(crate) struct Service(&'static str);

impl Service {
    /// A place for one.
    pub(crate) fn new(directory: &'static str) -> Result<Self> {
        fs::create_dir_all(directory).context(directory)?;
        Ok(Self(directory))
    }

    /// Starts the daemon, and waits until it answers.
    pub(crate) fn start(self) -> Result<Running> {
        let path = |name: &str| Path::new(self.0).join(name);
        let mut command = Command::new("/bin/spillwayd");
        command.args(["balancer", "--interface", "lo", "--xdp-mode", "generic", "--region", "eu"]);
        command.args(["--source", "10.0.0.2", "--flows", "4096"]);
        command.arg("--state-dir").arg(path("state")).arg("--socket").arg(path("socket"));
        let daemon = Running::start("spillwayd", &mut command, &path("log"))?;
        until("the daemon answers", LIMIT, || {
            Ok(self.ask(&["status"])?.status.success().then_some(()))
        })
        .with_context(|| daemon.output())?;
        Ok(daemon)
    }

    /// Stops the daemon.
    pub(crate) fn stop(self, mut daemon: Running) -> Result<()> {
        daemon.signal(Signal::SIGTERM)?;
        let status = daemon.wait()?;
        ensure!(status.success(), "{status}\n{}", daemon.output());
        Ok(())
    }

    /// Takes the packet program away.
    pub(crate) fn detach(self) -> Result<()> {
        self.must(&["detach", "--yes"]).map(drop)
    }

    /// Brings a configuration into force.
    pub(crate) fn apply(self, text: &str) -> Result<()> {
        let file = format!("{}/configuration.toml", self.0);
        fs::write(&file, text)?;
        self.must(&["apply", "--yes", "--force", "-f", &file]).map(drop)
    }

    /// What `spillway` prints; it has to succeed.
    pub(crate) fn must(self, arguments: &[&str]) -> Result<String> {
        let output = self.ask(arguments)?;
        ensure!(output.status.success(), "{arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn ask(self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new("/bin/spillway");
        command.arg("--socket").arg(format!("{}/socket", self.0));
        command.arg("--state-dir").arg(format!("{}/state", self.0));
        command.args(arguments).output().context("start spillway")
    }
}
