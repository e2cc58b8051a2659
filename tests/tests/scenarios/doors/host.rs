//! A balancer's host whose daemon is told everything by files, and a service manager that listens.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::Binaries,
    process::{PATIENCE, Running, until},
    sandbox::Sandbox,
    topology::Fabric,
};
use serde_json::Value;

/// The host with its files.
pub(crate) struct Host {
    pub(crate) fabric: Fabric,
    pub(crate) binaries: Binaries,
    pub(crate) bpffs: PathBuf,
    manager: UnixDatagram,
}

impl Host {
    pub(crate) fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let fabric = Fabric::new(sandbox, name, 1)?;
        let bpffs = sandbox.bpffs(fabric.balancer.namespace())?;
        let manager = UnixDatagram::bind(fabric.balancer.directory().join("notify"))?;
        manager.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { fabric, binaries: Binaries::find()?, bpffs, manager })
    }

    /// The path of one of its files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.fabric.balancer.directory().join(name)
    }

    /// Writes one of its files.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.path(name), text).with_context(|| format!("write {name}"))
    }

    /// Settings of a balancer with its files here, and more of them.
    pub(crate) fn settings(&self, more: &str) -> String {
        format!(
            "interface = \"eth0\"\nbpffs = {:?}\nstate-dir = {:?}\nsocket = {:?}\n{more}",
            self.bpffs,
            self.path("state"),
            self.path("s.sock")
        )
    }

    /// `spillwayd` with these arguments, to be run.
    pub(crate) fn daemon(&self, arguments: &[&str]) -> Command {
        let mut command = self.fabric.balancer.command(&self.binaries.spillwayd);
        command.args(arguments).env("NOTIFY_SOCKET", self.path("notify"));
        command
    }

    /// Starts a command whose log is `spillwayd.log`.
    pub(crate) fn start(&self, command: &mut Command) -> Result<Running> {
        Running::start("spillwayd", command, &self.path("spillwayd.log"))
    }

    /// The next thing the service manager is told that is no status line.
    pub(crate) fn told(&self) -> Result<String> {
        loop {
            let told = self.datagram()?;
            if !told.starts_with("STATUS=") {
                return Ok(told);
            }
        }
    }

    /// Throws away what the service manager was told so far: the next daemon has room to say something.
    pub(crate) fn forget(&self) -> Result<()> {
        self.manager.set_nonblocking(true)?;
        while self.datagram().is_ok() {}
        Ok(self.manager.set_nonblocking(false)?)
    }

    /// Waits for a status line with these words in it.
    pub(crate) fn status_line(&self, words: &str) -> Result<String> {
        until(words, PATIENCE, || Ok(Some(self.datagram()?).filter(|told| told.contains(words))))
    }

    /// Waits for READY=1 and for a status line with these words, whichever comes first.
    pub(crate) fn ready_with(&self, words: &str) -> Result<String> {
        let (mut is_ready, mut line) = (false, None);
        until(words, PATIENCE, || {
            let told = self.datagram()?;
            is_ready |= told == "READY=1";
            if told.starts_with("STATUS=") && told.contains(words) {
                line = Some(told);
            }
            Ok(line.clone().filter(|_| is_ready))
        })
    }

    fn datagram(&self) -> Result<String> {
        let mut buffer = [0; 4096];
        let length = self.manager.recv(&mut buffer).context("the service manager was not told")?;
        Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// Runs `spillway` to its end, however it ends.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.fabric.balancer.command(&self.binaries.spillway);
        command.arg("--socket").arg(self.path("s.sock")).args(arguments);
        command.output().context("spillway")
    }

    /// What `spillway --output json` answers.
    pub(crate) fn ask(&self, verb: &str) -> Result<Value> {
        let output = self.cli(&["--output", "json", verb])?;
        ensure!(output.status.success(), "{verb}: {output:?}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
