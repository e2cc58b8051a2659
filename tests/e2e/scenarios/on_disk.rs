//! A service whose balancer has all its files on a disk that can fail.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result};
use lb_e2e::fixture::{Fixture, Health, configuration};
use lb_tests::{
    daemon::{Balancer, Binaries, HTTP_ADDRESS, answers},
    disk::Disk,
    sandbox::Sandbox,
    topology::REGIONS,
};

/// The standard service; store, names and audit log are on the disk.
pub(crate) struct OnDisk {
    /// Before the fixture: thawed before the daemon is waited for.
    pub(crate) disk: Disk,
    pub(crate) fixture: Fixture,
    /// The audit log.
    pub(crate) audit: PathBuf,
}

impl OnDisk {
    /// Starts it, and waits until all backends are up.
    pub(crate) fn start(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let disk = Disk::mount(sandbox)?;
        let mut fixture = Fixture::idle(sandbox, name)?;
        fixture.balancer.stop()?;
        let mut balancer =
            Balancer::new(sandbox, &Binaries::find()?, &fixture.fabric.balancer, REGIONS[0])?;
        let audit = disk.directory().join("audit.log");
        balancer.state = disk.directory().join("state");
        balancer.more = ["--audit-file", &audit.display().to_string(), "--http"]
            .into_iter()
            .map(str::to_owned)
            .chain([HTTP_ADDRESS.to_string()])
            .collect();
        balancer.start()?;
        let service = Self { disk, fixture: Fixture { balancer, ..fixture }, audit };
        service.fixture.balancer.apply(&service.configuration())?;
        service.fixture.wait_up(&[])?;
        Ok(service)
    }

    /// What it begins with.
    pub(crate) fn configuration(&self) -> String {
        configuration(&self.fixture.fabric, Health::QUICK).text()
    }

    pub(crate) fn generation(&self) -> Result<u64> {
        Ok(self.fixture.balancer.status()?.generation)
    }

    /// The cause of the condition about a subject.
    pub(crate) fn condition(&self, subject: &str) -> Result<Option<String>> {
        let status = self.fixture.balancer.status()?;
        Ok(answers::condition(&status, subject).map(str::to_owned))
    }
}

/// Runs a program to its end with this input.
pub(crate) fn with_input(mut command: Command, input: &str) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("no input")?.write_all(input.as_bytes())?;
    Ok(child.wait_with_output()?)
}
