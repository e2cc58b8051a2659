//! A program that runs until it is told otherwise.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context as _, Result, bail};
use nix::{sys::signal::Signal, unistd::Pid};

/// A started program; it is killed when this value goes.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program with both its outputs appended to `log`.
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be started.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let out = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("{name}: open {}", log.display()))?;
        let err = out.try_clone().with_context(|| format!("{name}: log"))?;
        let child =
            command.stdout(out).stderr(err).spawn().with_context(|| format!("{name}: start"))?;
        Ok(Self { name: name.into(), child, log: log.into() })
    }

    /// Its process id, as the sandbox sees it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Fails, with what the program printed, if it has ended.
    ///
    /// # Errors
    /// When it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.ended()? {
            Some(status) => bail!("{}: ended early ({status}):\n{}", self.name, self.output()),
            None => Ok(()),
        }
    }

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// When looking fails.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("{}: look", self.name))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it has been waited for already.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).context("pid")?;
        nix::sys::signal::kill(Pid::from_raw(pid), signal)
            .with_context(|| format!("{}: send {signal}", self.name))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().with_context(|| format!("{}: wait", self.name))
    }

    /// `kill -9`, and waits until it is gone.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().with_context(|| format!("{}: kill", self.name))?;
        self.wait().map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
