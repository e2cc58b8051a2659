//! The doctor tells the state of the units: fresh, failed, stopped, and beside a daemon that was started by hand.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::container::Container;
use lb_tests::process::until;
use serde_json::{Value, json};

use crate::fixture::{BALANCER, LIMIT, PackageFixture, SOCKET};

/// What a host's doctor says.
fn findings(host: &Container) -> Result<Vec<Value>> {
    let output = host.output(["spillway", "--output", "json", "doctor"])?;
    let answer: Value = serde_json::from_slice(&output.stdout).context(format!("{output:?}"))?;
    Ok(answer["findings"].as_array().context("no findings")?.clone())
}

/// What is wrong by one of its checks.
fn wrong(host: &Container, check: &str) -> Result<Value> {
    let all = findings(host)?;
    let found = all.iter().find(|it| it["check"] == check && it["level"] != "ok");
    found.cloned().with_context(|| format!("{check}: {all:#?}"))
}

impl PackageFixture {
    fn roles(&self) -> [(&Container, &'static str); 2] {
        [(&self.balancer, "balancer"), (&self.receiver, "receiver")]
    }

    /// As the package leaves a host, it can be either.
    pub(crate) fn doctor_of_the_installed(&self) -> Result<()> {
        let begin = |role: &str| {
            let file = format!("/etc/spillway/{role}.toml");
            format!("systemctl enable --now spillway-{role}  # after filling in {file}")
        };
        for host in self.hosts() {
            let pins = wrong(host, "pins")?;
            ensure!(pins["mend"] == json!([begin("balancer")]), "{pins}");
            ensure!(pins["or"] == json!(begin("receiver")), "{pins}");
        }
        Ok(())
    }

    /// What the daemon said last is the reason.
    pub(crate) fn doctor_of_the_failed(&self) -> Result<()> {
        for (host, role) in self.roles() {
            let file = format!("/etc/spillway/{role}.toml");
            let daemon = wrong(host, "daemon")?;
            let why = daemon["why"].as_str().context("no reason")?;
            let said = format!("spillway-{role} failed: {file}: interface");
            ensure!(why.starts_with(&said), "{daemon}");
            let start = format!(
                "systemctl start spillway-{role}  # after fixing that; its settings: {file}"
            );
            ensure!(daemon["mend"] == json!([start]), "{daemon}");
        }
        Ok(())
    }

    pub(crate) fn doctor_of_the_stopped(&self) -> Result<()> {
        for (host, role) in self.roles() {
            let daemon = wrong(host, "daemon")?;
            ensure!(daemon["found"] == "does not run", "{daemon}");
            ensure!(
                daemon["mend"] == json!([format!("systemctl start spillway-{role}")]),
                "{daemon}"
            );
        }
        // On a backend nobody is told to start a balancer.
        for verb in ["status", "stats"] {
            let asked = self.receiver.output(["spillway", verb])?;
            let said = String::from_utf8_lossy(&asked.stderr);
            ensure!(asked.status.code() == Some(3), "{asked:?}");
            ensure!(
                said.contains(
                    "hint: this host is a backend: `spillway stats --component receiver`"
                )
            );
        }
        Ok(())
    }

    /// A daemon by hand keeps its socket when the unit is started beside it.
    pub(crate) fn by_hand(&self) -> Result<()> {
        let host = &self.balancer;
        host.run(["systemctl", "stop", BALANCER])?;
        let line = "setsid -f spillwayd balancer --config /etc/spillway/balancer.toml \
                    >/run/by-hand.log 2>&1 </dev/null";
        host.run(["sh", "-c", line])?;
        until("the daemon by hand answers", LIMIT, || {
            Ok(host.output(["spillway", "status"])?.status.success().then_some(()))
        })?;
        self.wait_up()?;
        let refused = host.output(["systemctl", "start", BALANCER])?;
        ensure!(!refused.status.success(), "{refused:?}");
        let journal = host.run(["journalctl", "--output=cat", "--unit", SOCKET])?;
        ensure!(journal.contains("a spillwayd that was started by hand listens on"), "{journal}");
        self.wait_up()?;

        let all = findings(host)?;
        let subjects = all.iter().filter_map(|it| it["subject"].as_str());
        let process = |subject: &str| {
            let rest = subject.strip_prefix("spillwayd balancer (process ")?;
            Some(rest.strip_suffix(')')?.to_owned())
        };
        let process = subjects.filter_map(process).next().context(format!("{all:#?}"))?;
        // The shell's own: a minimal Debian has no other.
        host.run(["sh", "-c", &format!("kill {process}")])?;
        until("the daemon by hand ends", LIMIT, || {
            let gone = !host.output(["test", "-e", &format!("/proc/{process}")])?.status.success();
            Ok(gone.then_some(()))
        })?;
        host.run(["rm", "/run/by-hand.log"])?;
        host.run(["systemctl", "start", BALANCER])?;
        self.wait_up()
    }
}
