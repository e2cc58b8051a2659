//! A user's shell: `cargo xtask lab` is the program `lab` of this build, and `sudo` does nothing, as we are root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::leftovers::{BpfObject, Mount, mounts, pinned_below};
use lb_tests::daemon::Binaries;
use lb_tests::sandbox::Sandbox;

use crate::demo::run::nothing_left;

/// `$0` is the lab, `$1` where the programs are: a build has the daemon and the server in two places.
const PRELUDE: &str = "lab=$0; programs=$1; set --; set -o pipefail\n\
    sudo() { \"$@\"; }\n\
    cargo() { shift 2; \"$lab\" --bin-dir \"$programs\" \"$@\"; }\n";

/// A shell in which one command is run after the other.
pub(super) struct Shell {
    lab: PathBuf,
    /// The three programs that a lab runs.
    programs: PathBuf,
    /// Where commands are run.
    directory: PathBuf,
    /// Where the lab has its files.
    pub(super) folder: PathBuf,
    /// Commands that change the shell itself, for all that come after them.
    settings: String,
    mounts: BTreeSet<Mount>,
}

impl Shell {
    /// With the name of its lab; the usual one is `lab`.
    pub(super) fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let own = std::env::current_exe().context("find our own program")?;
        let built = own.parent().and_then(Path::parent).context("our own program")?;
        let directory = sandbox.directory("shell")?;
        let programs = sandbox.directory("programs")?;
        let Binaries { spillwayd, spillway } = Binaries::find()?;
        for program in [spillwayd, spillway, built.join("webserver")] {
            let name = program.file_name().context("a program has a name")?;
            std::os::unix::fs::symlink(&program, programs.join(name))?;
        }
        // iproute2 mounts its folder of namespaces when it makes the first one, for good.
        for verb in ["add", "delete"] {
            ensure!(Command::new("ip").args(["netns", verb, "first"]).status()?.success());
        }
        let lab = built.join("lab");
        ensure!(lab.is_file(), "{}: not built; `cargo xtask test` does", lab.display());
        let folder = Path::new("/run").join(format!("spillway-{name}"));
        let settings = format!("export SPILLWAY_LAB={name}\n");
        Ok(Self { lab, programs, directory, folder, settings, mounts: mounts()? })
    }

    /// A command that is to be started.
    pub(super) fn command(&self, command: &str) -> Command {
        let mut shell = Command::new("bash");
        let script = format!("{PRELUDE}{}{command}", self.settings);
        shell.arg("-c").arg(script).args([&self.lab, &self.programs]);
        shell.current_dir(&self.directory).stdin(Stdio::null());
        shell
    }

    /// Runs a command to its end. Returns whether it succeeded, and what it said.
    pub(super) fn attempt(&self, command: &str) -> Result<(bool, String)> {
        let Output { status, stdout, stderr } = self.command(command).output()?;
        let said = [stdout, stderr].concat();
        Ok((status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Runs a command and returns what it said.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn run(&mut self, command: &str) -> Result<String> {
        if command.ends_with('&') {
            // What goes on in the background would keep our end of its output open.
            let mut shell = self.command(command);
            shell.stdout(Stdio::null()).stderr(Stdio::null());
            ensure!(shell.status()?.success(), "{command}");
            return Ok(String::new());
        }
        let (succeeded, said) = self.attempt(command)?;
        ensure!(succeeded, "{command}\n{said}");
        if command.starts_with(". ") {
            self.settings += &format!("{command}\n");
        }
        Ok(said)
    }

    /// What is pinned in the lab.
    pub(super) fn pinned(&self) -> Vec<BpfObject> {
        pinned_below(&self.folder.join("bpf"))
    }

    /// No process, namespace, mount or folder, and none of these objects.
    pub(super) fn nothing_is_left(&self, objects: &[BpfObject]) -> Result<()> {
        ensure!(!self.folder.exists(), "{} is left", self.folder.display());
        let namespaces = std::fs::read_dir("/run/netns").into_iter().flatten().count();
        ensure!(namespaces == 0, "{namespaces} namespaces are left");
        let left: Vec<_> = mounts()?.difference(&self.mounts).cloned().collect();
        ensure!(left.is_empty(), "mounts are left: {left:?}");
        nothing_left(objects)
    }
}
