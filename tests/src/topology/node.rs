//! One node: a network namespace.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use nix::sched::{CloneFlags, setns};

use crate::process::Running;

/// A handle to a network namespace. Clones name the same one.
#[derive(Clone, Debug)]
pub struct Node {
    inner: Arc<Inner>,
}

/// Local ports that the kernel chooses from for who does not ask for one. Those that scenarios name are below: a health
/// check from one of them would pass for the scenario's own connection.
const CHOSEN_PORTS: &str = "45000 65535";

#[derive(Debug)]
struct Inner {
    namespace: String,
    name: String,
    directory: PathBuf,
}

impl Node {
    pub(super) fn create(namespace: &str, name: &str, directory: PathBuf) -> Result<Self> {
        checked(Command::new("ip").args(["netns", "add", namespace]))?;
        let node = Self {
            inner: Arc::new(Inner { namespace: namespace.into(), name: name.into(), directory }),
        };
        node.sysctls(&[
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.default.rp_filter", "0"),
            ("net.ipv6.conf.all.accept_dad", "0"),
            ("net.ipv6.conf.default.accept_dad", "0"),
            ("net.ipv6.conf.default.accept_ra", "0"),
            ("net.ipv6.conf.default.router_solicitations", "0"),
            ("net.ipv4.ip_local_port_range", CHOSEN_PORTS),
        ])?;
        node.ip("link set lo up")?;
        Ok(node)
    }

    /// One that another process made and [kept](super::Topology::keep).
    pub fn existing(namespace: &str, name: &str, directory: &Path) -> Self {
        let (namespace, name, directory) = (namespace.into(), name.into(), directory.into());
        Self { inner: Arc::new(Inner { namespace, name, directory }) }
    }

    /// Its name in the topology.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name of its namespace, for `ip -n`.
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// A directory for the files of its programs, gone with the sandbox.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.inner.namespace)
    }

    /// A command that will run in the node, without standard input. The process that is started is
    /// the program itself, so its id can be signalled.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let mut net = std::ffi::OsString::from("--net=");
        net.push(self.path());
        command.arg(net).arg("--").arg(program).stdin(Stdio::null());
        command.current_dir(&self.inner.directory).env("HOME", &self.inner.directory);
        command
    }

    /// Runs a program to its end and returns what it printed.
    ///
    /// # Errors
    /// When it cannot be started or fails; the error carries both its outputs.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        checked(self.command(program).args(arguments))
    }

    /// Starts a program that runs until its handle goes; its output is kept in a log in
    /// [`Self::directory`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Running> {
        self.spawn_with(program, arguments, &[])
    }

    /// The same with more variables in its environment.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_with<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = S>,
        variables: &[(String, String)],
    ) -> Result<Running> {
        let stem = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        let log = self.inner.directory.join(format!("{stem}.log"));
        let name = format!("{stem} in {}", self.inner.name);
        let mut command = self.command(&program);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        Running::start(&name, &mut command, &log)
    }

    /// Runs commands of `ip`, one a line.
    ///
    /// # Errors
    /// When one of them fails; the error carries what `ip` said and its line.
    pub fn ip(&self, batch: &str) -> Result<()> {
        self.ip_batch(&["-batch", "-"], batch)
    }

    /// The same for IPv6, where `ip` does not tell the version by an address, as in rules.
    ///
    /// # Errors
    /// As [`Self::ip`].
    pub fn ip_v6(&self, batch: &str) -> Result<()> {
        self.ip_batch(&["-6", "-batch", "-"], batch)
    }

    fn ip_batch(&self, arguments: &[&str], batch: &str) -> Result<()> {
        let mut child = self
            .command("ip")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("start ip")?;
        let mut input = child.stdin.take().context("stdin of ip")?;
        input.write_all(batch.as_bytes()).context("write to ip")?;
        input.write_all(b"\n").context("write to ip")?;
        drop(input);
        let output = child.wait_with_output().context("wait for ip")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("ip in {}: {}\n{batch}", self.inner.name, said.trim());
        }
        Ok(())
    }

    /// Runs `ip` with JSON output.
    ///
    /// # Errors
    /// When it fails or prints no JSON.
    pub fn ip_json(&self, arguments: &str) -> Result<serde_json::Value> {
        let words = ["-details", "-json"].into_iter().chain(arguments.split_whitespace());
        let text = self.run("ip", words)?;
        serde_json::from_str(&text).with_context(|| format!("ip {arguments}: {text}"))
    }

    /// Sets kernel parameters of this namespace, by their dotted names.
    ///
    /// # Errors
    /// When one cannot be set.
    pub fn sysctls(&self, settings: &[(&str, &str)]) -> Result<()> {
        self.enter(|| {
            for (name, value) in settings {
                let path = Path::new("/proc/sys").join(name.replace('.', "/"));
                std::fs::write(&path, value).with_context(|| format!("set {name} = {value}"))?;
            }
            Ok(())
        })?
    }

    /// Runs a function on a thread that is in the node: sockets it opens belong there for good.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn enter<T: Send>(&self, function: impl FnOnce() -> T + Send) -> Result<T> {
        let path = self.path();
        let namespace = File::open(&path).with_context(|| format!("open {}", path.display()))?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(namespace, CloneFlags::CLONE_NEWNET)
                    .with_context(|| format!("enter {}", self.inner.namespace))?;
                Ok(function())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Whether all links that are set up are up and no address is tentative.
    pub(super) fn is_ready(&self) -> Result<bool> {
        let links = self.ip_json("address show")?;
        let links = links.as_array().context("ip address: no list")?;
        Ok(links.iter().all(|link| {
            // A kernel with tunnels has a device of each kind in every namespace, down.
            let flags = link["flags"].as_array();
            let is_set_up = flags.is_some_and(|flags| flags.iter().any(|flag| flag == "UP"));
            // The kernel does not know whether these are up.
            let is_virtual = link["ifname"] == "lo" || link["linkinfo"]["info_kind"] == "vxlan";
            let up = !is_set_up || is_virtual || link["operstate"] == "UP";
            let addresses = link["addr_info"].as_array();
            let tentative = |address: &serde_json::Value| address["tentative"] == true;
            up && !addresses.is_some_and(|all| all.iter().any(tentative))
        }))
    }

    /// Ends every process in the namespace and removes it. Best effort: the sandbox's end does the
    /// rest.
    pub(super) fn remove(&self) {
        if let Ok(output) = Command::new("ip").args(["netns", "pids", self.namespace()]).output() {
            for pid in String::from_utf8_lossy(&output.stdout).split_whitespace() {
                if let Ok(pid) = pid.parse() {
                    let pid = nix::unistd::Pid::from_raw(pid);
                    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
                }
            }
        }
        let _ = Command::new("ip").args(["netns", "delete", self.namespace()]).output();
    }
}

/// Runs a command to its end and returns its standard output.
fn checked(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {command:?}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}\n{out}{said}", output.status);
    }
    Ok(out)
}
