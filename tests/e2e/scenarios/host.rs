//! A balancer's host: a daemon with its settings in files, and a service manager that listens to it.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Command, Output},
    sync::mpsc::{self, Receiver},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{Binaries, Client},
    process::{PATIENCE, Running, until},
    sandbox::Sandbox,
    topology::Fabric,
};
use nix::sys::signal::Signal;
use spillway_proto::v1::StatusResponse;

/// The host with its files.
pub(crate) struct Host {
    pub(crate) fabric: Fabric,
    pub(crate) binaries: Binaries,
    pub(crate) bpffs: PathBuf,
    /// What the service manager was told. It is read at once: a socket has room for ten datagrams, and those that find
    /// none are lost.
    manager: Receiver<String>,
}

impl Host {
    pub(crate) fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let fabric = Fabric::new(sandbox, name, 1)?;
        let bpffs = sandbox.bpffs(fabric.balancer.namespace())?;
        let socket = UnixDatagram::bind(fabric.balancer.directory().join("notify"))?;
        let (sender, manager) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = socket.recv(&mut buffer) {
                if sender
                    .send(String::from_utf8_lossy(&buffer[..length]).trim_end().to_owned())
                    .is_err()
                {
                    break;
                }
            }
        });
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

    /// Stops a daemon in good order; all that it told the service manager and nobody asked for is forgotten.
    pub(crate) fn stop(&self, running: &mut Running) -> Result<()> {
        running.signal(Signal::SIGTERM)?;
        ensure!(running.wait()?.success(), "{}", running.output());
        while self.told()? != "STOPPING=1" {}
        Ok(())
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
        self.manager.recv_timeout(PATIENCE).context("the service manager was not told")
    }

    /// Runs `spillway` to its end, however it ends.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.fabric.balancer.command(&self.binaries.spillway);
        command.arg("--socket").arg(self.path("s.sock")).args(arguments);
        command.output().context("spillway")
    }

    /// How everything is, as the balancer's daemon answers.
    pub(crate) fn status(&self) -> Result<StatusResponse> {
        Ok(Client::connect(&self.path("s.sock"))?.status()?)
    }
}
