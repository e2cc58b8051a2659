//! The units at work: their limits, who may ask the daemons, and how they start, stop and restart.

use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{container::Container, harness};
use lb_tests::process::until;

use crate::{
    fixture::{BALANCER, LIMIT, PackageFixture, RECEIVER, SOCKET},
    host::show,
};

/// Capabilities by their numbers, include/uapi/linux/capability.h.
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// What the units may be exposed to at most, by `systemd-analyze security`.
const EXPOSURE: f64 = 2.0;

/// More often than systemd starts a unit anew by default: five times in ten seconds.
const KILLS: u32 = 8;

impl PackageFixture {
    /// The unit's own bounding set is what limits a daemon, and it has nothing beyond it.
    pub(crate) fn confinement(&self) -> Result<()> {
        let wanted = [NET_ADMIN, PERFMON, BPF].iter().fold(0_u64, |set, bit| set | 1 << bit);
        for (host, unit) in [(&self.balancer, BALANCER), (&self.receiver, RECEIVER)] {
            let status = |pid: &str, name: &str| -> Result<String> {
                let text = host.run(["cat", &format!("/proc/{pid}/status")])?;
                let line =
                    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
                Ok(line.with_context(|| format!("no {name}:\n{text}"))?.to_owned())
            };
            let set = |pid: &str, name: &str| -> Result<u64> {
                Ok(u64::from_str_radix(&status(pid, name)?, 16)?)
            };
            ensure!(set("1", "CapBnd")? & (1 << SYS_ADMIN) != 0, "the container limits already");
            let pid = show(host, unit, "MainPID")?;
            for name in ["CapBnd", "CapPrm", "CapEff"] {
                let has = set(&pid, name)?;
                ensure!(has == wanted, "{unit}: {name} is {has:#x}, not {wanted:#x}");
            }
            ensure!(status(&pid, "NoNewPrivs")? == "1" && status(&pid, "Seccomp")? == "2");
            let report = host.run(["systemd-analyze", "security", "--no-pager", unit])?;
            let figure = report.rsplit_once(": ").and_then(|(_, end)| end.split(' ').next());
            let figure: f64 = figure.context("no figure")?.parse().context(report.clone())?;
            ensure!(figure <= EXPOSURE, "{unit}: exposure {figure}\n{report}");
            harness::note(format!("systemd-analyze security {unit}: {figure}"));
        }
        Ok(())
    }

    /// The group may use the socket, and nobody else.
    pub(crate) fn socket(&self) -> Result<()> {
        let path = "/run/spillway/spillwayd.sock";
        let rights = self.balancer.run(["stat", "--format=%U %G %a", path])?;
        ensure!(rights.trim() == "root spillway 660", "{rights}");
        let ask = |group: &str| {
            let group = format!("--regid={group}");
            let words =
                ["setpriv", "--reuid=nobody", &group, "--clear-groups", "spillway", "status"];
            self.balancer.output(words)
        };
        let member = ask("spillway")?;
        ensure!(member.status.success(), "a member: {member:?}");
        let other = ask("nogroup")?;
        ensure!(other.status.code() == Some(4), "somebody else: {other:?}");
        Ok(())
    }

    /// What the journal has can be asked by service, pool, backend and region, and reads whole.
    pub(crate) fn journal(&self) -> Result<()> {
        let backend = IpAddr::from(self.backend.v4).to_string();
        let asked = |fields: &[&str]| -> Result<Vec<serde_json::Value>> {
            let words = ["journalctl", "--output=json", "--no-pager"];
            let text = self.balancer.run(words.iter().chain(fields))?;
            text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
        };
        let unit = format!("_SYSTEMD_UNIT={BALANCER}");
        let of_backend = format!("SPILLWAY_BACKEND={backend}");
        let whole = [&*unit, &*of_backend, "SPILLWAY_SERVICE=web", "SPILLWAY_REGION=eu"];
        let up = asked(&[&whole[..], &["SPILLWAY_POOL=web", "SPILLWAY_TO=up"]].concat())?;
        let entry = up.first().context("no entry of the backend that came up")?;
        let text = entry["MESSAGE"].as_str().context("no text")?;
        for word in ["service=", "pool=web", &format!("backend={backend}"), "to=\"up\""] {
            ensure!(text.contains(word), "{word}: {text}");
        }
        ensure!(entry["PRIORITY"] == "6" && entry["SYSLOG_IDENTIFIER"] == "spillwayd", "{entry}");
        for (field, text) in [
            ("SPILLWAY_SERVICE=web", "service web: added"),
            ("SPILLWAY_SERVICE=web", "pool web: added"),
            ("SPILLWAY_POOL=web", "pool web: added"),
            ("SPILLWAY_REGION=eu", "region eu: added"),
        ] {
            let entries = asked(&[&*unit, field, "SPILLWAY_GENERATION=1"])?;
            let found = entries.iter().any(|entry| {
                entry["MESSAGE"].as_str().is_some_and(|message| message.starts_with(text))
            });
            ensure!(found, "{field}: {entries:?}");
        }
        Ok(())
    }

    /// `systemctl reload` brings the configuration file into force, in the same process.
    pub(crate) fn reload(&self) -> Result<()> {
        let pid = show(&self.balancer, BALANCER, "MainPID")?;
        let generation = self.generation()?;
        self.configure(81)?;
        self.balancer.run(["systemctl", "reload", BALANCER])?;
        until("the generation of the reload", LIMIT, || {
            Ok((self.generation()? == generation + 1).then_some(()))
        })?;
        ensure!(show(&self.balancer, BALANCER, "MainPID")? == pid, "another process");
        self.configure(80)?;
        self.balancer.run(["systemctl", "reload", BALANCER])?;
        // It waits for the outcome.
        ensure!(self.generation()? == generation + 2);
        for (host, unit, role) in
            [(&self.balancer, BALANCER, "balancer"), (&self.receiver, RECEIVER, "receiver")]
        {
            self.refused_reload(host, unit, role)?;
        }
        self.wait_up()
    }

    /// `systemctl reload` fails where the daemon refuses, the journal says why, and the daemon goes on.
    fn refused_reload(&self, host: &Container, unit: &str, role: &str) -> Result<()> {
        let (pid, file) = (show(host, unit, "MainPID")?, format!("/etc/spillway/{role}.toml"));
        let good = host.run(["cat", &file])?;
        host.run(["systemctl", "reload", unit])?;
        host.write(&file, format!("{good}nonsense = 1\n"))?;
        let refused = host.output(["systemctl", "reload", unit])?;
        ensure!(!refused.status.success(), "{unit}: {refused:?}");
        let sentence = format!("error: settings: {file}: line ");
        // systemd's journal reads on its own time what the daemon wrote.
        until("the journal says why", LIMIT, || {
            let journal = host.run(["journalctl", "--output=cat", "--unit", unit])?;
            Ok(journal.lines().any(|line| line.starts_with(&sentence)).then_some(()))
        })?;
        let doctor = host.output(["spillway", "doctor"])?;
        let words = String::from_utf8_lossy(&doctor.stdout);
        let words: Vec<_> = words.split_whitespace().collect();
        let words = words.join(" ");
        ensure!(words.contains("its next start would fail"), "{doctor:?}");
        ensure!(words.contains(&format!("systemctl reload spillway-{role}")), "{doctor:?}");
        host.write(&file, good)?;
        host.run(["systemctl", "reload", unit])?;
        ensure!(
            show(host, unit, "ActiveState")? == "active" && show(host, unit, "MainPID")? == pid
        );
        Ok(())
    }

    pub(crate) fn restart(&self) -> Result<()> {
        let generation = self.generation()?;
        let pid = || show(&self.balancer, BALANCER, "MainPID");
        let first = pid()?;
        self.under_load(|| {
            for (host, unit) in self.services() {
                host.run(["systemctl", "restart", unit])?;
            }
            Ok(())
        })?;
        let second = pid()?;
        ensure!(second != first, "the same process");
        // Killed, it comes back by itself, however often in however short a time.
        self.under_load(|| {
            (1..=KILLS).try_for_each(|kill| {
                self.balancer.run(["systemctl", "kill", "--signal=KILL", BALANCER])?;
                until(&format!("the balancer is back, {kill} of {KILLS}"), LIMIT, || {
                    let active = show(&self.balancer, BALANCER, "ActiveState")? == "active";
                    let restarts = show(&self.balancer, BALANCER, "NRestarts")?;
                    Ok((active && restarts == kill.to_string()).then_some(()))
                })
            })
        })?;
        ensure!(show(&self.balancer, SOCKET, "ActiveState")? == "active");
        ensure!(self.generation()? == generation, "a restart changed the configuration");
        Ok(())
    }

    /// Stopped is stopped: packets go on, and to ask does not start the daemon again.
    pub(crate) fn stop(&self) -> Result<()> {
        self.under_load(|| {
            for (host, unit) in self.services() {
                host.run(["systemctl", "stop", unit])?;
                ensure!(show(host, unit, "ActiveState")? == "inactive");
            }
            ensure!(show(&self.balancer, SOCKET, "ActiveState")? == "inactive");
            Ok(())
        })?;
        let asked = self.balancer.output(["spillway", "status"])?;
        ensure!(asked.status.code() == Some(3), "{asked:?}");
        ensure!(show(&self.balancer, BALANCER, "ActiveState")? == "inactive", "asking starts it");
        self.doctor_of_the_stopped()?;
        for (host, unit) in self.services() {
            host.run(["systemctl", "start", unit])?;
        }
        self.wait_up()
    }
}
