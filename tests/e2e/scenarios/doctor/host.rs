//! A host on which the doctor is asked, and the commands that it prints are run.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::printed::{self, Diagnosis, Finding};
use lb_tests::daemon::{Balancer, Binaries};
use lb_tests::process::{PATIENCE, until};
use lb_tests::topology::Node;

/// A host that a doctor is asked on.
pub(crate) struct DoctorHost {
    pub(crate) node: Node,
    pub(crate) spillway: PathBuf,
    pub(crate) options: Vec<String>,
    /// Options of the doctor.
    flags: Vec<String>,
}

/// A fault: the check, its level and what it is about.
pub(crate) type Fault<'a> = (&'a str, &'a str, &'a str);

impl DoctorHost {
    pub(crate) fn of(node: &Node, binaries: &Binaries, bpffs: PathBuf) -> Self {
        let options = vec!["--bpffs".into(), bpffs.display().to_string()];
        Self { node: node.clone(), spillway: binaries.spillway.clone(), options, flags: Vec::new() }
    }

    /// A balancer's host, where the socket and the state are in places of their own.
    pub(crate) fn balancing(node: &Node, binaries: &Binaries, balancer: &Balancer) -> Self {
        let mut host = Self::of(node, binaries, balancer.bpffs.clone());
        for (option, path) in [("--socket", &balancer.socket), ("--state-dir", &balancer.state)] {
            host.options.extend([option.to_owned(), path.display().to_string()]);
        }
        host
    }

    /// The same, where backends have no receivers and are not to be asked.
    pub(crate) fn unprobing(node: &Node, binaries: &Binaries, balancer: &Balancer) -> Self {
        let host = Self::balancing(node, binaries, balancer);
        Self { flags: vec!["--no-probes".into()], ..host }
    }

    /// What the doctor says, and with what exit status.
    pub(crate) fn ask(&self) -> Result<(Diagnosis, i32)> {
        let mut command = self.node.command(&self.spillway);
        command.args(["--output", "json"]).args(&self.options).arg("doctor").args(&self.flags);
        let output = command.output().context("run spillway doctor")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let answer = printed::read(&output.stdout)
            .with_context(|| format!("doctor: {}\n{said}", output.status))?;
        Ok((answer, output.status.code().context("doctor: killed")?))
    }

    /// Waits until exactly these are wrong, in this order; returns them.
    pub(crate) fn until_wrong(&self, faults: &[Fault]) -> Result<Vec<Finding>> {
        let mut last = String::new();
        let found = until("the findings", PATIENCE, || {
            let (answer, status) = self.ask()?;
            last = format!("{answer:#?}");
            let mut wrong = answer.findings;
            wrong.retain(|it| it.level != "ok");
            let same = wrong.iter().map(Finding::head).eq(faults.iter().copied());
            let problems = faults.iter().any(|(_, level, _)| *level == "problem");
            ensure!(!same || status == if problems { 9 } else { 0 }, "exit status {status}");
            Ok(same.then_some(wrong))
        });
        found.with_context(|| format!("expected {faults:?}, found {last}"))
    }

    /// Pastes a command into a shell of this host.
    pub(crate) fn paste(&self, command: &str) -> Result<()> {
        let log = self.node.directory().join("pasted.log");
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let mut shell = self.node.command("sh");
        let programs = self.spillway.parent().map(|path| path.display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", programs.unwrap_or_default()));
        // A daemon that it leaves behind keeps what it is given to print to.
        shell.args(["-c", command]).stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        let status = shell.status().context("run sh")?;
        ensure!(status.success(), "{command}: {status}");
        Ok(())
    }

    /// Breaks something, sees exactly these faults, pastes what is printed for the first, but for what it comes to
    /// for services, and sees all of them gone.
    pub(crate) fn mends(&self, breaking: &str, faults: &[Fault]) -> Result<()> {
        self.paste(breaking)?;
        let wrong = self.until_wrong(faults).with_context(|| breaking.to_owned())?;
        let cause = wrong.iter().find(|it| it.check != "services").context("no cause")?;
        self.mend(cause).with_context(|| breaking.to_owned())
    }

    pub(crate) fn mend(&self, finding: &Finding) -> Result<()> {
        let commands = &finding.mend;
        ensure!(!commands.is_empty(), "nothing mends it: {finding:?}");
        commands.iter().try_for_each(|command| self.paste(command))?;
        self.until_wrong(&[]).map(drop).with_context(|| format!("after {commands:?}"))
    }
}
