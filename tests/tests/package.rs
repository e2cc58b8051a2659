//! The Debian package as an operator meets it: in a Debian with systemd as process 1.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use lb_tests::container::{self, Container, Debian};
use lb_tests::daemon::{XdpMode, xdp_mode};
use lb_tests::harness;
use lb_tests::process::{eventually, until};
use lb_tests::remains::pinned_below;
use lb_tests::sandbox::{self, Sandbox};
use lb_tests::topology::{Backend, Fabric};
use lb_tests::traffic::{Nginx, Requests, ensure_answered};

const BALANCER: &str = "spillway-balancer.service";
const SOCKET: &str = "spillway-balancer.socket";
const RECEIVER: &str = "spillway-receiver.service";

/// Capabilities by their numbers, include/uapi/linux/capability.h.
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// What the units may be exposed to at most, by `systemd-analyze security`.
const EXPOSURE: f64 = 2.0;

/// How long systemd may take to do what it was asked.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    if let Err(error) = container::sweeper() {
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("a_build_without_packet_programs_loads_nothing", a_stub_loads_nothing),
            ("from_installation_to_purge", from_installation_to_purge),
        ],
    )
}

fn a_stub_loads_nothing(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "stub", 1)?;
    let node = &fabric.balancer;
    let bpffs = sandbox.bpffs(node.namespace())?;
    let mut command = node.command(given("SPILLWAY_STUB")?);
    command.args(["balancer", "--interface", "eth0", "--bpffs"]).arg(&bpffs);
    command.arg("--state-dir").arg(node.directory());
    let output = command.arg("--socket").arg(node.directory().join("s")).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
    ensure!(
        said.lines()
            .any(|line| line.starts_with("spillwayd: balancer object: this build has none")),
        "{said}"
    );
    ensure!(xdp_mode(node, "eth0")? == XdpMode::None, "something is attached");
    ensure!(pinned_below(&bpffs).is_empty(), "something is pinned");
    Ok(())
}

/// One host of each role, in one story: what one step leaves is what the next one finds.
fn from_installation_to_purge(sandbox: &Sandbox) -> Result<()> {
    let debian = Debian::unpack(sandbox)?;
    let fabric = Fabric::new(sandbox, "package", 1)?;
    let backend = fabric.backends.first().context("no backend")?.clone();
    let _nginx = Nginx::start(&backend.node)?;
    let story = Story {
        balancer: Container::boot(sandbox, &debian, &fabric.balancer)?,
        receiver: Container::boot(sandbox, &debian, &backend.node)?,
        fabric,
        backend,
    };
    let [balancer, receiver] = [&story.balancer, &story.receiver];
    let before = [files(balancer)?, files(receiver)?];

    story.install()?;
    story.refuse_without_settings()?;
    story.set_up()?;
    story.confinement()?;
    story.socket()?;
    story.journal()?;
    story.reload()?;
    story.restart()?;
    story.upgrade()?;
    story.stop()?;
    story.remove_and_install_again()?;
    story.purge()?;

    for (container, before) in [balancer, receiver].into_iter().zip(before) {
        let left: Vec<_> = files(container)?.difference(&before).cloned().collect();
        ensure!(left.is_empty(), "left after the purge: {left:?}");
    }
    Ok(())
}

struct Story {
    balancer: Container,
    receiver: Container,
    fabric: Fabric,
    backend: Backend,
}

impl Story {
    fn install(&self) -> Result<()> {
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
    fn refuse_without_settings(&self) -> Result<()> {
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

    fn set_up(&self) -> Result<()> {
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

    /// The unit's own bounding set is what limits a daemon, and it has nothing beyond it.
    fn confinement(&self) -> Result<()> {
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
    fn socket(&self) -> Result<()> {
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
    fn journal(&self) -> Result<()> {
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
            ("SPILLWAY_SERVICE=web", "added: service web"),
            ("SPILLWAY_POOL=web", "added: pool web"),
            ("SPILLWAY_REGION=eu", "added: region eu"),
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
    fn reload(&self) -> Result<()> {
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
        until("the generation of the reload", LIMIT, || {
            Ok((self.generation()? == generation + 2).then_some(()))
        })?;
        self.wait_up()
    }

    fn restart(&self) -> Result<()> {
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
        // Killed, it comes back by itself.
        self.under_load(|| {
            self.balancer.run(["systemctl", "kill", "--signal=KILL", BALANCER])?;
            until("the balancer is back", LIMIT, || {
                let active = show(&self.balancer, BALANCER, "ActiveState")? == "active";
                let other = pid()?;
                Ok((active && other != second && other != "0").then_some(()))
            })
        })?;
        ensure!(show(&self.balancer, BALANCER, "NRestarts")? == "1");
        ensure!(self.generation()? == generation, "a restart changed the configuration");
        Ok(())
    }

    fn upgrade(&self) -> Result<()> {
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

    /// Stopped is stopped: packets go on, and to ask does not start the daemon again.
    fn stop(&self) -> Result<()> {
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
        for (host, unit) in self.services() {
            host.run(["systemctl", "start", unit])?;
        }
        self.wait_up()
    }

    /// What is removed leaves settings, state and packet programs to the next installation.
    fn remove_and_install_again(&self) -> Result<()> {
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
    fn purge(&self) -> Result<()> {
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

    fn hosts(&self) -> [&Container; 2] {
        [&self.balancer, &self.receiver]
    }

    fn services(&self) -> [(&Container, &'static str); 2] {
        [(&self.balancer, BALANCER), (&self.receiver, RECEIVER)]
    }

    /// Writes the configuration: one service with one backend, checked on a port.
    fn configure(&self, service_port: u16) -> Result<()> {
        let (vip, backend) = (Fabric::VIP_V4, self.backend.v4);
        let text = format!(
            "[[region]]\nname = \"eu\"\n\
             [[health_check]]\nname = \"web\"\nport = 80\nhttp = {{ path = \"/healthz\" }}\n\
             [[pool]]\nname = \"web\"\nhealth_checks = [\"web\"]\n\
             [[pool.backend]]\naddress = \"{backend}\"\nregion = \"eu\"\n\
             [[service]]\nname = \"web\"\naddress = \"{vip}\"\nport = {service_port}\n\
             protocol = \"tcp\"\npool = \"web\"\n"
        );
        self.balancer.write("/etc/spillway/configuration.toml", text)
    }

    fn status(&self) -> Result<serde_json::Value> {
        let text = self.balancer.run(["spillway", "--output", "json", "status"])?;
        serde_json::from_str(&text).with_context(|| text)
    }

    fn generation(&self) -> Result<u64> {
        self.status()?["generation"].as_u64().context("status: no generation")
    }

    fn wait_up(&self) -> Result<()> {
        let address = IpAddr::from(self.backend.v4).to_string();
        let waited = until("the backend is up", LIMIT, || {
            let status = self.status()?;
            let backends = status["backends"].as_array().context("status: no backends")?;
            let up = backends.iter().any(|it| {
                it["address"] == *address && it["state"] == "up" && it["next_hop_resolved"] == true
            });
            Ok(up.then_some(()))
        });
        waited.with_context(|| format!("{:?}", self.balancer.output(["spillway", "status"])))
    }

    /// Requests through the VIP, before, while and after something is done, of which none fails.
    fn under_load(&self, done: impl FnOnce() -> Result<()>) -> Result<usize> {
        let begun = Instant::now();
        let to = (IpAddr::from(Fabric::VIP_V4), 80).into();
        let requests = Requests::start(&self.fabric.client, to, 4, Duration::from_millis(2));
        requests.wait_for(50)?;
        done()?;
        requests.wait_for(50)?;
        let attempts = requests.finish()?;
        ensure_answered(&attempts, begun, Instant::now(), &[])
    }
}

/// A file that whoever runs this names in a variable.
fn given(variable: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable);
    let path = path.with_context(|| format!("{variable}: not set; `cargo xtask test package`"))?;
    Ok(path.into())
}

/// Installs a package file; whoever changed a settings file keeps it.
fn dpkg(host: &Container, how: &str, deb: &Path) -> Result<()> {
    let package = "/tmp/spillway.deb";
    host.write(package, fs::read(deb).with_context(|| deb.display().to_string())?)?;
    host.run(["dpkg", "--force-confold", how, package])?;
    host.run(["rm", package]).map(drop)
}

/// A property of a unit.
fn show(host: &Container, unit: &str, property: &str) -> Result<String> {
    let text = host.run(["systemctl", "show", "--value", "--property", property, unit])?;
    Ok(text.trim().to_owned())
}

/// Every file that is not somebody else's business: dpkg's own records, logs, and what is mounted.
fn files(host: &Container) -> Result<BTreeSet<String>> {
    let names = host.run(["find", "/", "-xdev", "!", "-path", "/proc/*"])?;
    let run = host.run(["find", "/run", "/tmp", "-name", "*spillway*"])?;
    const OTHERS: [&str; 4] = ["/var/lib/dpkg/", "/var/log/", "/var/cache/", "/etc/group"];
    let all = names.lines().chain(run.lines()).map(str::to_owned);
    let files: BTreeSet<_> =
        all.filter(|name| !OTHERS.iter().any(|other| name.starts_with(other))).collect();
    if files.len() < 1000 {
        bail!("only {} files", files.len());
    }
    Ok(files)
}
