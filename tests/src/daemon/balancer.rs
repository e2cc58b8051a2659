//! `spillwayd balancer` and the command line that speaks to it.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use lb_maps::{Component, Pins};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use spillway_proto::v1::{BackendState, BackendStatus, ListOverridesResponse, StatusResponse};

use super::printed::{self, Explained, Stats};
use super::{Binaries, Client};
use crate::process::{PATIENCE, Running, until};
use crate::sandbox::Sandbox;
use crate::topology::Node;

/// A balancer's daemon with its files, whether it runs or not.
#[derive(Debug)]
pub struct Balancer {
    node: Node,
    binaries: Binaries,
    region: String,
    /// The interface that its program goes on, for the next start.
    pub interface: String,
    /// Its directory on the sandbox's BPF file system.
    pub bpffs: PathBuf,
    /// Where its store is.
    pub state: PathBuf,
    /// Its socket.
    pub socket: PathBuf,
    /// More arguments, for the next start.
    pub more: Vec<String>,
    /// More of its environment, for the next start.
    pub variables: Vec<(String, String)>,
    /// Its settings file, once it has one.
    settings: Option<PathBuf>,
    running: Option<Running>,
    /// Times that it was started.
    starts: usize,
}

impl Balancer {
    /// Gives it its files; it does not run yet.
    ///
    /// # Errors
    /// When its directories cannot be made.
    pub fn new(sandbox: &Sandbox, binaries: &Binaries, node: &Node, region: &str) -> Result<Self> {
        let state = node.directory().join("state");
        fs::create_dir_all(&state).context("balancer: make its state directory")?;
        Ok(Self {
            node: node.clone(),
            binaries: binaries.clone(),
            region: region.into(),
            interface: "eth0".into(),
            bpffs: sandbox.bpffs(node.namespace()).context("balancer: make a directory")?,
            socket: node.directory().join("spillwayd.sock"),
            state,
            more: Vec::new(),
            variables: Vec::new(),
            settings: None,
            running: None,
            starts: 0,
        })
    }

    /// [`Self::new`], [`Self::start`].
    ///
    /// # Errors
    /// As those.
    pub fn started(
        sandbox: &Sandbox,
        binaries: &Binaries,
        node: &Node,
        region: &str,
    ) -> Result<Self> {
        let mut balancer = Self::new(sandbox, binaries, node, region)?;
        balancer.start()?;
        Ok(balancer)
    }

    /// Its pins.
    pub fn pins(&self) -> Pins {
        Pins::new(&self.bpffs, Component::Balancer)
    }

    /// Gives it a settings file with this text, beside its arguments: for the next start, or for [`Self::hang_up`] if it
    /// has been started with one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_settings(&mut self, text: &str) -> Result<()> {
        let file = self.node.directory().join("settings.toml");
        fs::write(&file, text).context("balancer: write its settings")?;
        self.settings = Some(file);
        Ok(())
    }

    /// Has the daemon read its settings again, and does not wait for it.
    ///
    /// # Errors
    /// When it does not run.
    pub fn hang_up(&self) -> Result<()> {
        let running = self.running.as_ref().context("the daemon does not run")?;
        running.signal(Signal::SIGHUP)
    }

    /// The node that it runs on.
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Starts the daemon and waits until it answers.
    ///
    /// # Errors
    /// When it ends or does not answer within a minute.
    pub fn start(&mut self) -> Result<()> {
        self.spawn()?;
        self.wait_until_it_answers()
    }

    /// Waits until the daemon answers that was [started](Self::spawn).
    ///
    /// # Errors
    /// When it ends or does not answer within a minute.
    pub fn wait_until_it_answers(&mut self) -> Result<()> {
        until("balancer answers", PATIENCE, || {
            if let Some(running) = &mut self.running {
                running.check()?;
            }
            Ok(self.try_cli(&["status"], None)?.status.success().then_some(()))
        })
    }

    /// Starts the daemon and does not wait for anything.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&mut self) -> Result<()> {
        let arguments = [
            "balancer".into(),
            "--interface".into(),
            self.interface.clone(),
            "--region".into(),
            self.region.clone(),
            "--bpffs".into(),
            self.bpffs.display().to_string(),
            "--state-dir".into(),
            self.state.display().to_string(),
            "--socket".into(),
            self.socket.display().to_string(),
        ];
        let settings = self.settings.iter();
        let settings = settings.flat_map(|file| ["--config".into(), file.display().to_string()]);
        let settings: Vec<String> = settings.collect();
        let arguments = arguments.iter().chain(&settings).chain(&self.more);
        let program = &self.binaries.spillwayd;
        self.running = Some(self.node.spawn_with(program, arguments, &self.variables)?);
        self.starts += 1;
        Ok(())
    }

    /// Waits until the daemon has tried to attach to the kernel's tracepoints, which not all kernels have, and answers
    /// whether it could.
    ///
    /// # Errors
    /// When it does not run, or says nothing within a minute.
    pub fn traces_drops(&self) -> Result<bool> {
        let running = self.running.as_ref().context("the daemon does not run")?;
        let said = |output: &str| {
            let [can, cannot] = ["tracepoints count what is dropped", "program are not traced"]
                .map(|words| output.matches(words).count());
            (can + cannot == self.starts).then_some(can > 0)
        };
        // Each life of the daemon appends to one log.
        until("the daemon has tried the tracepoints", PATIENCE, || Ok(said(&running.output())))
            .with_context(|| running.output())
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.running.take().context("the daemon does not run")?.kill()
    }

    /// Ends it as if its host lost power: the daemon at once, and all that it had in the kernel. Its state stays.
    ///
    /// # Errors
    /// When its pins cannot be removed.
    pub fn lose_power(&mut self) -> Result<()> {
        if let Some(mut running) = self.running.take() {
            running.kill()?;
        }
        // Packet programs are attached as long as they are pinned.
        for entry in fs::read_dir(&self.bpffs).context("balancer: look for pins")? {
            let path = entry?.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("balancer: remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Asks it to stop and waits until it has.
    ///
    /// # Errors
    /// When it does not run, or ends with another code than 0.
    pub fn stop(&mut self) -> Result<()> {
        let (status, output) = self.terminate()?;
        if !status.success() {
            bail!("spillwayd: {status}\n{output}");
        }
        Ok(())
    }

    /// The same of one that may have begun a moment ago: before it listens to signals, this one ends it.
    ///
    /// # Errors
    /// When it does not run, or fails.
    pub fn stop_at_any_time(&mut self) -> Result<()> {
        let (status, output) = self.terminate()?;
        if !status.success() && status.signal() != Some(Signal::SIGTERM as i32) {
            bail!("spillwayd: {status}\n{output}");
        }
        Ok(())
    }

    fn terminate(&mut self) -> Result<(ExitStatus, String)> {
        let mut running = self.running.take().context("the daemon does not run")?;
        running.signal(Signal::SIGTERM)?;
        let status = running.wait()?;
        Ok((status, running.output()))
    }

    /// The running daemon.
    pub fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// Runs `spillway` with these arguments and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn cli(&self, arguments: &[&str]) -> Result<String> {
        self.succeed(arguments, None)
    }

    /// Runs `spillway --output json` and returns what it prints: for answers that are made by the command itself. For
    /// others there are messages.
    ///
    /// # Errors
    /// When it fails, or prints something else.
    pub fn printed<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<T> {
        let all: Vec<_> = ["--output", "json"].iter().chain(arguments).copied().collect();
        printed::read(self.cli(&all)?.as_bytes()).with_context(|| format!("spillway {arguments:?}"))
    }

    /// A connection to its daemon.
    ///
    /// # Errors
    /// When the daemon does not run.
    pub fn client(&self) -> Result<Client> {
        Client::connect(&self.socket)
    }

    /// How everything is.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn status(&self) -> Result<StatusResponse> {
        Ok(self.client()?.status()?)
    }

    /// What its packet path counted, as the command reads it from the maps, whether the daemon runs or not.
    ///
    /// # Errors
    /// When the maps cannot be read.
    pub fn stats(&self) -> Result<Stats> {
        self.printed(&["stats"])
    }

    /// What becomes of the first packet of a connection or flow, as the command reads it from the maps.
    ///
    /// # Errors
    /// When the maps cannot be read.
    pub fn explain(&self, from: SocketAddr, to: SocketAddr, protocol: &str) -> Result<Explained> {
        self.printed(&["explain", &from.to_string(), &to.to_string(), "--protocol", protocol])
    }

    /// The overrides in force.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn overrides(&self) -> Result<ListOverridesResponse> {
        Ok(self.client()?.overrides()?)
    }

    /// Packets that had a verdict since the program was attached.
    ///
    /// # Errors
    /// When the daemon does not say.
    pub fn packets(&self, verdict: &str) -> Result<u64> {
        self.stats()?.packets(verdict)
    }

    /// Puts a configuration file's text in force, whatever that stops and removes.
    ///
    /// # Errors
    /// When it is refused.
    pub fn apply(&self, document: &str) -> Result<String> {
        self.succeed(&["apply", "--yes", "--force", "-f", "-"], Some(document))
    }

    /// Waits until exactly these backend addresses are up with a resolved next hop.
    ///
    /// # Errors
    /// When that takes longer than `limit`; says how they are.
    pub fn wait_up(&self, addresses: &[std::net::IpAddr], limit: Duration) -> Result<()> {
        let mut wanted: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        wanted.sort();
        let result = until("backends are up", limit, || {
            let status = self.status()?;
            let is_up = |b: &&BackendStatus| b.state() == BackendState::Up && b.next_hop_resolved;
            let up = status.backends.iter().filter(is_up);
            let mut up: Vec<_> = up.map(|backend| backend.address.clone()).collect();
            up.sort();
            up.dedup();
            Ok((up == wanted).then_some(()))
        });
        result.with_context(|| self.cli(&["status"]).unwrap_or_else(|error| error.to_string()))
    }

    /// Runs `spillway` to its end, however it ends.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn try_cli(&self, arguments: &[&str], input: Option<&str>) -> Result<Output> {
        let mut command = self.command(arguments);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("start spillway")?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            use std::io::{ErrorKind, Write as _};
            match stdin.write_all(input.as_bytes()) {
                // A command that reads nothing may have ended.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                written => written.context("write to spillway")?,
            }
        }
        child.wait_with_output().context("wait for spillway")
    }

    fn succeed(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        let output = self.try_cli(arguments, input)?;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("spillway {arguments:?}: {}\n{out}{said}", output.status);
        }
        Ok(out)
    }

    /// A shell that runs a script, in which `spillway` is ours and asks this daemon.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = self.node.command("sh");
        let programs = self.binaries.spillway.parent().map(|path| path.display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", programs.unwrap_or_default()));
        command.env("SPILLWAY_SOCKET", &self.socket).env("SPILLWAY_BPFFS", &self.bpffs);
        command.env("SPILLWAY_STATE_DIR", &self.state).env("TMPDIR", self.node.directory());
        command.env_remove("VISUAL").args(["-c", script]);
        command
    }

    /// `spillway` with these arguments, to be run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.node.command(&self.binaries.spillway);
        command.arg("--socket").arg(&self.socket).arg("--bpffs").arg(&self.bpffs);
        command.arg("--state-dir").arg(&self.state).args(arguments);
        command
    }
}
