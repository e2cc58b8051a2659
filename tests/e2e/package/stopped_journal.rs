//! systemd's own journal stops reading: failover, applies and the audit log go on, and what was logged meanwhile arrives
//! when it reads again.

use std::{
    fs,
    net::IpAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{container::Container, harness};
use lb_tests::{
    process::until,
    topology::Fabric,
    traffic::{Nginx, Requests},
};

use crate::{
    fixture::{BALANCER, LIMIT, PackageFixture},
    host::show,
};

const JOURNAL: &str = "systemd-journald.service";
const SETTINGS: &str = "/etc/spillway/balancer.toml";
const AUDIT: &str = "/var/log/spillway/audit.log";

/// A container's journald that is stopped, until this is dropped.
struct Stopped<'a> {
    host: &'a Container,
    pid: String,
}

impl<'a> Stopped<'a> {
    fn new(host: &'a Container) -> Result<Self> {
        let pid = show(host, JOURNAL, "MainPID")?;
        let stopped = Self { host, pid };
        stopped.signal("STOP")?;
        until("journald is stopped", LIMIT, || Ok(stopped.is_stopped()?.then_some(())))?;
        Ok(stopped)
    }

    fn signal(&self, signal: &str) -> Result<()> {
        self.host.run(["sh", "-c", &format!("kill -s {signal} {}", self.pid)]).map(drop)
    }

    fn is_stopped(&self) -> Result<bool> {
        let status = self.host.run(["cat", &format!("/proc/{}/status", self.pid)])?;
        Ok(status.lines().any(|line| line.starts_with("State:\tT")))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let _gone_with_the_container_otherwise = self.signal("CONT");
    }
}

impl PackageFixture {
    pub(crate) fn stopped_journal(&self, nginx: &Nginx) -> Result<()> {
        let host = &self.balancer;
        let settings = fs::read_to_string(host.path(SETTINGS))?;
        host.write(SETTINGS, format!("{settings}audit-file = \"{AUDIT}\"\n"))?;
        host.run(["systemctl", "restart", BALANCER])?;
        self.wait_up()?;
        let daemon = show(host, BALANCER, "MainPID")?;

        // The control: the same with a journal that reads.
        let before = self.unhealthy_entries()?;
        self.fail_and_recover(nginx, "first")?;
        until("the entry of the failure", LIMIT, || {
            Ok((self.unhealthy_entries()? == before + 1).then_some(()))
        })?;

        let stopped = Stopped::new(host)?;
        self.fail_and_recover(nginx, "second")?;
        ensure!(stopped.is_stopped()?, "journald runs");
        ensure!(self.unhealthy_entries()? == before + 1, "it has the entry");
        drop(stopped);
        until("the entry of the failure arrives", LIMIT, || {
            Ok((self.unhealthy_entries()? == before + 2).then_some(()))
        })?;
        let generation = format!("SPILLWAY_GENERATION={}", self.generation()?);
        until("the entry of the apply arrives", LIMIT, || {
            let entries = host.run(["journalctl", "--output=cat", "--no-pager", &generation])?;
            Ok((!entries.trim().is_empty()).then_some(()))
        })?;
        ensure!(show(host, BALANCER, "MainPID")? == daemon, "another process");
        ensure!(show(host, BALANCER, "NRestarts")? == "0", "it was restarted");

        // The file has no such regions.
        host.write(SETTINGS, settings)?;
        host.run(["systemctl", "restart", BALANCER])?;
        self.wait_up()
    }

    /// The backend fails and recovers, for packets too, and an apply is carried out and audited.
    fn fail_and_recover(&self, nginx: &Nginx, name: &str) -> Result<()> {
        let begun = Instant::now();
        ensure!(self.answers()?, "no answer before");
        nginx.be_sick(true)?;
        until("packets see the failure", LIMIT, || Ok((!self.answers()?).then_some(())))?;
        nginx.be_sick(false)?;
        until("packets see the recovery", LIMIT, || Ok(self.answers()?.then_some(())))?;
        self.wait_up()?;
        harness::note(format!("failure and recovery: {:.2?}", begun.elapsed()));

        // Where the journal is stopped, it is so until after the answer.
        let (before, asked) = (self.generation()?, Instant::now());
        self.balancer.run(["spillway", "region", "create", name])?;
        harness::note(format!("the answer to an apply: {:.2?}", asked.elapsed()));
        ensure!(self.generation()? == before + 1);
        let audit = fs::read_to_string(self.balancer.path(AUDIT))?;
        let after = format!("\"after\":{}", before + 1);
        ensure!(audit.lines().any(|line| line.contains(&after)), "no {after}: {audit:?}");
        Ok(())
    }

    /// Whether a new connection to the VIP is answered.
    fn answers(&self) -> Result<bool> {
        let to = (IpAddr::from(Fabric::VIP_V4), 80).into();
        let requests = Requests::start(&self.fabric.client, to, 1, Duration::from_millis(1));
        requests.wait_for(1)?;
        let attempts = requests.finish()?;
        Ok(attempts.first().context("no request")?.answer.is_ok())
    }

    /// Entries of the journal about the backend that became unhealthy.
    fn unhealthy_entries(&self) -> Result<usize> {
        let backend = format!("SPILLWAY_BACKEND={}", IpAddr::from(self.backend.v4));
        let words = ["journalctl", "--output=json", "--no-pager", &backend];
        let entries = self.balancer.output(words.into_iter().chain(["SPILLWAY_TO=unhealthy"]))?;
        Ok(String::from_utf8_lossy(&entries.stdout).lines().count())
    }
}
