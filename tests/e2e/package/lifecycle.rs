//! Installation, upgrade, removal and purge leave on a host exactly what they should.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{container::Container, harness::note, leftovers::pinned_below};
use lb_tests::{
    daemon::{XdpMode, xdp_mode},
    process::{eventually, until},
    topology::Fabric,
};

use crate::{
    fixture::{BALANCER, LIMIT, PackageFixture, RECEIVER},
    host::{broken_links, dpkg, given, show},
};

/// The longest time from the command that installs the package to a connection through the balancer.
const FIRST_CONNECTION: Duration = Duration::from_secs(30);
/// What the package says of programs that no daemon looks after.
const UNATTENDED: &str = "The program in the kernel goes on with packets";

impl PackageFixture {
    pub(crate) fn install(&self) -> Result<()> {
        for (host, node) in
            [(&self.balancer, &self.fabric.balancer), (&self.receiver, &self.backend.node)]
        {
            // As on a stock Debian.
            node.sysctls(&[("net.ipv4.ping_group_range", "1\t0")])?;
            dpkg(host, "--install", &given("SPILLWAY_DEB_BEFORE")?)?;
            let groups = host.run(["cat", "/proc/sys/net/ipv4/ping_group_range"])?;
            ensure!(groups == "0\t2147483647\n", "echo requests cannot be sent: {groups}");
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
            self.refuse_an_unknown_interface(host, unit, file)?;
        }
        Ok(())
    }

    /// An interface that the host does not have is a wrong setting too.
    fn refuse_an_unknown_interface(&self, host: &Container, unit: &str, file: &str) -> Result<()> {
        let before = host.run(["cat", file])?;
        let settings = "interface = [\"eth7\"]\ninterface-wait = \"0s\"\n";
        let lists = "allow-source = [\"10.0.0.2\"]\nvip = [\"203.0.113.1\"]\n";
        let lists = if unit == RECEIVER { lists } else { "" };
        host.write(file, format!("{settings}{lists}"))?;
        ensure!(!host.output(["systemctl", "start", unit])?.status.success(), "{unit} runs");
        ensure!(show(host, unit, "ActiveState")? == "failed");
        ensure!(show(host, unit, "NRestarts")? == "0", "{unit} was tried again");
        let journal = host.run(["journalctl", "--output=cat", "--unit", unit])?;
        let sentence = "spillwayd: eth7: no such interface: this host has eth0 and lo";
        ensure!(journal.lines().any(|line| line == sentence), "{journal}");
        host.write(file, before)?;
        // What the doctor says next is of these settings.
        ensure!(!host.output(["systemctl", "start", unit])?.status.success(), "{unit} runs");
        Ok(())
    }

    pub(crate) fn set_up(&self) -> Result<()> {
        self.set_up_receiver()?;
        self.set_up_balancer()?;
        self.wait_up()?;
        self.under_load(|| Ok(()))?;
        Ok(())
    }

    fn set_up_receiver(&self) -> Result<()> {
        let (vip, source) = (Fabric::VIP_V4, Fabric::BALANCER_V4);
        let settings =
            format!("interface = [\"eth0\"]\nallow-source = [\"{source}\"]\nvip = [\"{vip}\"]\n");
        self.receiver.write("/etc/spillway/receiver.toml", settings)?;
        self.receiver.run(["systemctl", "enable", "--now", RECEIVER]).map(drop)
    }

    fn set_up_balancer(&self) -> Result<()> {
        let settings = "interface = [\"eth0\"]\nregion = \"eu\"\n\
                        apply = \"/etc/spillway/configuration.toml\"\n";
        self.balancer.write("/etc/spillway/balancer.toml", settings)?;
        self.configure(80)?;
        self.balancer.run(["systemctl", "enable", "--now", BALANCER]).map(drop)
    }

    /// A balancer's host that knows nothing of the package serves within seconds; the backend's host is ready.
    pub(crate) fn serve_at_once(&self) -> Result<()> {
        let deb = given("SPILLWAY_DEB")?;
        dpkg(&self.receiver, "--install", &deb)?;
        self.set_up_receiver()?;
        let package = "/tmp/spillway.deb";
        self.balancer.write(package, fs::read(&deb)?)?;
        let begun = Instant::now();
        self.balancer.run(["apt-get", "install", "--yes", package])?;
        self.set_up_balancer()?;
        let vip = SocketAddr::from((Fabric::VIP_V4, 80));
        let connect = || TcpStream::connect_timeout(&vip, Duration::from_millis(200));
        until("a connection through the balancer", LIMIT, || {
            Ok(self.fabric.client.enter(connect)?.ok().map(drop))
        })?;
        let took = begun.elapsed();
        note(format!("first connection {:.1} s after apt-get install began", took.as_secs_f64()));
        ensure!(took <= FIRST_CONNECTION, "the first connection came after {took:?}");
        self.balancer.run(["rm", package]).map(drop)
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
            let said = dpkg(host, "--install", &given("SPILLWAY_DEB")?)?;
            ensure!(
                show(host, unit, "ActiveState")? == "active",
                "{unit} ran, and was not started"
            );
            ensure!(show(host, unit, "UnitFileState")? == "enabled", "{unit} was disabled");
            ensure!(!said.contains(UNATTENDED), "{said}");
            ensure!(!host.path("/var/lib/spillway/ran-when-removed").exists());
        }
        ensure!(show(&self.balancer, RECEIVER, "ActiveState")? == "inactive");
        ensure!(self.generation()? == generation, "the state did not stay");
        self.wait_up()?;
        self.under_load(|| Ok(()))?;
        self.reinstall_the_stopped()
    }

    /// What did not run before the removal is not started; that packets go on without it is said.
    fn reinstall_the_stopped(&self) -> Result<()> {
        for (host, unit) in self.services() {
            let role = unit.trim_end_matches(".service");
            host.run(["systemctl", "stop", unit])?;
            host.run(["dpkg", "--remove", "spillway"])?;
            // An upgrade of what is stopped says it too.
            for _installed_and_upgraded in 0..2 {
                let said = dpkg(host, "--install", &given("SPILLWAY_DEB")?)?;
                ensure!(show(host, unit, "ActiveState")? == "inactive", "{unit} was started");
                ensure!(said.contains(UNATTENDED), "{said}");
                ensure!(said.contains(&format!("Start it: systemctl start {role}\n")), "{said}");
            }
            host.run(["systemctl", "start", unit])?;
        }
        self.wait_up()
    }

    /// Nothing is left: no program on an interface, no map, no file.
    pub(crate) fn purge(&self) -> Result<()> {
        for (host, node) in
            [(&self.balancer, &self.fabric.balancer), (&self.receiver, &self.backend.node)]
        {
            ensure!(xdp_mode(node, "eth0")? != XdpMode::None, "nothing is attached");
            let objects = pinned_below(&host.path("/sys/fs/bpf"));
            ensure!(objects.len() > 3, "{objects:?}");
            // What an operator put there is the operator's.
            let (key, text) = ("/etc/spillway/balancer.key", "a key that nobody else has\n");
            host.write(key, text)?;
            let said = host.run(["dpkg", "--purge", "spillway"])?;
            ensure!(said.contains("these files are not of the package"), "{said}");
            ensure!(said.contains(&format!("spillway:   {key}\n")), "{said}");
            ensure!(fs::read_to_string(host.path(key))? == text, "the key was touched");
            ensure!(!said.contains("balancer.toml"), "the package's own settings: {said}");
            for file in ["balancer.toml", "receiver.toml"] {
                ensure!(!host.path(&format!("/etc/spillway/{file}")).exists(), "{file} is left");
            }
            host.run(["rm", "-r", "/etc/spillway"])?;
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
