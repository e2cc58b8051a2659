//! From the first installation to the purge.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{XdpMode, xdp_mode},
    process::eventually,
    remains::pinned_below,
    topology::Fabric,
};

use crate::{
    host::{broken_links, dpkg, given, show},
    story::{BALANCER, LIMIT, RECEIVER, Story},
};

impl Story {
    pub(crate) fn install(&self) -> Result<()> {
        for host in self.hosts() {
            dpkg(host, "--install", &given("SPILLWAY_DEB_BEFORE")?)?;
            for unit in [BALANCER, RECEIVER] {
                ensure!(show(host, unit, "ActiveState")? == "inactive", "{unit} was started");
                ensure!(show(host, unit, "UnitFileState")? == "disabled", "{unit} was enabled");
            }
            host.run(["dpkg", "--verify", "spillway"])?;
            host.run(["bash", "-n", "/usr/share/bash-completion/completions/spillway"])?;
            host.run(["test", "-s", "/usr/share/man/man8/spillwayd-balancer.8.gz"])?;
            host.run(["test", "-s", "/usr/share/man/man1/spillway-apply.1.gz"])?;
            let broken = broken_links(host)?;
            ensure!(broken.is_empty(), "documents name files that are not there: {broken}");
            for role in ["balancer", "receiver"] {
                let digest = host.run(["spillwayd", "--version"])?;
                let prefix = format!("{role} program: ");
                let digest = digest.lines().find_map(|line| line.strip_prefix(&*prefix));
                ensure!(digest.is_some_and(|digest| digest.len() == 16), "{digest:?}");
            }
        }
        Ok(())
    }

    /// As installed, no role knows its interface: a start fails once, and says what to set.
    pub(crate) fn refuse_without_settings(&self) -> Result<()> {
        for (host, unit, file) in [
            (&self.balancer, BALANCER, "/etc/spillway/balancer.toml"),
            (&self.receiver, RECEIVER, "/etc/spillway/receiver.toml"),
        ] {
            ensure!(!host.output(["systemctl", "start", unit])?.status.success(), "{unit} runs");
            ensure!(show(host, unit, "ActiveState")? == "failed");
            ensure!(show(host, unit, "NRestarts")? == "0", "{unit} was tried again");
            let journal = host.run(["journalctl", "--output=cat", "--unit", unit])?;
            let sentence = journal.lines().find(|line| line.starts_with("spillwayd: "));
            let sentence = sentence.with_context(|| format!("no sentence:\n{journal}"))?;
            ensure!(sentence.contains("interface"), "{sentence}");
            ensure!(journal.lines().any(|line| line.starts_with("hint: ") && line.contains(file)));
        }
        Ok(())
    }

    pub(crate) fn set_up(&self) -> Result<()> {
        let (vip, source) = (Fabric::VIP_V4, Fabric::BALANCER_V4);
        let settings =
            format!("interface = [\"eth0\"]\nallow-source = [\"{source}\"]\nvip = [\"{vip}\"]\n");
        self.receiver.write("/etc/spillway/receiver.toml", settings)?;
        self.receiver.run(["systemctl", "enable", "--now", RECEIVER])?;
        let settings = "interface = [\"eth0\"]\nregion = \"eu\"\n\
                        apply = \"/etc/spillway/configuration.toml\"\n";
        self.balancer.write("/etc/spillway/balancer.toml", settings)?;
        self.configure(80)?;
        self.balancer.run(["systemctl", "enable", "--now", BALANCER])?;
        self.wait_up()?;
        self.under_load(|| Ok(()))?;
        Ok(())
    }

    pub(crate) fn upgrade(&self) -> Result<()> {
        let pids = || -> Result<Vec<_>> {
            self.services().iter().map(|(host, unit)| show(host, unit, "MainPID")).collect()
        };
        let before = pids()?;
        self.under_load(|| {
            for host in self.hosts() {
                dpkg(host, "--install", &given("SPILLWAY_DEB")?)?;
            }
            Ok(())
        })?;
        for host in self.hosts() {
            let version =
                host.run(["dpkg-query", "--show", "--showformat=${Version}", "spillway"])?;
            ensure!(version == "0", "{version}");
        }
        let after = pids()?;
        ensure!(before.iter().zip(&after).all(|(before, after)| before != after), "{after:?}");
        // Each runs only where it ran before.
        ensure!(show(&self.balancer, RECEIVER, "ActiveState")? == "inactive");
        let settings = fs::read_to_string(self.balancer.path("/etc/spillway/balancer.toml"))?;
        ensure!(settings.starts_with("interface = "), "the settings were overwritten");
        self.wait_up()
    }

    /// What is removed leaves settings, state and packet programs to the next installation.
    pub(crate) fn remove_and_install_again(&self) -> Result<()> {
        let generation = self.generation()?;
        self.under_load(|| {
            for host in self.hosts() {
                let said = host.run(["dpkg", "--remove", "spillway"])?;
                ensure!(said.contains("`apt purge spillway` takes these away"), "{said}");
                ensure!(host.path("/etc/spillway/balancer.toml").exists());
                ensure!(!host.path("/usr/sbin/spillwayd").exists());
                let processes =
                    host.output(["sh", "-c", "cat /proc/[0-9]*/comm | grep spillway"])?;
                ensure!(processes.stdout.is_empty(), "{processes:?}");
            }
            Ok(())
        })?;
        for (host, unit) in self.services() {
            dpkg(host, "--install", &given("SPILLWAY_DEB")?)?;
            ensure!(show(host, unit, "ActiveState")? == "inactive", "{unit} was started");
            ensure!(show(host, unit, "UnitFileState")? == "enabled", "{unit} was disabled");
            host.run(["systemctl", "start", unit])?;
        }
        ensure!(self.generation()? == generation, "the state did not stay");
        self.wait_up()?;
        self.under_load(|| Ok(()))?;
        Ok(())
    }

    /// Nothing is left: no program on an interface, no map, no file.
    pub(crate) fn purge(&self) -> Result<()> {
        for (host, node) in
            [(&self.balancer, &self.fabric.balancer), (&self.receiver, &self.backend.node)]
        {
            ensure!(xdp_mode(node, "eth0")? != XdpMode::None, "nothing is attached");
            let objects = pinned_below(&host.path("/sys/fs/bpf"));
            ensure!(objects.len() > 3, "{objects:?}");
            // What an operator put there goes with the operator.
            host.run(["rm", "-f", "/etc/spillway/configuration.toml"])?;
            host.run(["dpkg", "--purge", "spillway"])?;
            ensure!(!host.path("/sys/fs/bpf/spillway").exists(), "pins are left");
            eventually("programs and maps are gone", LIMIT, || {
                objects.iter().all(|object| !object.exists().unwrap_or(true))
            })?;
            ensure!(xdp_mode(node, "eth0")? == XdpMode::None, "a program is attached");
            let group = host.output(["getent", "group", "spillway"])?;
            ensure!(!group.status.success(), "the group is left");
            let units =
                host.run(["systemctl", "list-units", "--all", "--no-legend", "spillway*"])?;
            ensure!(units.trim().is_empty(), "{units}");
        }
        Ok(())
    }
}
