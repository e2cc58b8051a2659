//! `spillway doctor` finds what is broken on a balancer and on a backend, and nothing else; the command
//! that it prints mends it, pasted as it is.

mod driver_drops;
mod host;
mod services;
mod vip_probe;

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use host::DoctorHost;
use lb_e2e::harness::Case;
use lb_tests::daemon::{
    Balancer, Binaries, Document, HTTP_ADDRESS, Member, Pool, Receiver, Service, scrape,
};
use lb_tests::process::Running;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Backend, Fabric, REGIONS};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// What the README asks of both components, and what a namespace may have from the machine.
const IN_ORDER: [(&str, &str); 5] = [
    ("net.ipv4.ip_forward", "0"),
    ("net.ipv4.conf.all.arp_ignore", "1"),
    ("net.ipv4.conf.all.arp_announce", "2"),
    ("net.ipv4.conf.all.rp_filter", "2"),
    ("net.ipv4.ping_group_range", "0 2147483647"),
];

pub(crate) const CASES: &[Case] = &[
    Case::waits("doctor_finds_and_mends_a_balancer", a_balancer),
    Case::waits("doctor_starts_what_is_stopped_and_restarts_what_hangs", daemons),
    Case::waits("doctor_finds_and_mends_a_backend", a_backend),
    Case::waits("doctor_says_that_nothing_is_pinned", nothing),
    Case::waits("frames_that_are_dropped_after_transmit_are_counted", driver_drops::transmitted),
    Case::waits("frames_that_are_dropped_after_redirect_are_counted", driver_drops::redirected),
    Case::waits("doctor_says_which_service_has_no_backend", services::without_backends),
    Case::waits("doctor_asks_backends_through_their_tunnels", vip_probe::through_tunnels),
];

/// The standard network with one backend a region, and a service for each IP version.
fn set_up(sandbox: &Sandbox, name: &str) -> Result<(Fabric, Binaries)> {
    let fabric = Fabric::new(sandbox, name, 1)?;
    for node in [&fabric.balancer, &fabric.backends[0].node] {
        node.sysctls(&IN_ORDER)?;
    }
    Ok((fabric, Binaries::find()?))
}

fn document(fabric: &Fabric) -> String {
    let pool = |name: &str, address: fn(&Backend) -> std::net::IpAddr| Pool {
        name: name.into(),
        checks: Vec::new(),
        members: fabric
            .backends
            .iter()
            .map(|b| Member { address: address(b), region: b.region.into(), weight: 1 })
            .collect(),
    };
    let service = |name: &str, address, pool: &str| Service {
        name: name.into(),
        address,
        port: 80,
        protocol: "tcp",
        pool: pool.into(),
    };
    Document {
        hash_key: None,
        regions: REGIONS.map(String::from).to_vec(),
        checks: Vec::new(),
        pools: vec![pool("v4", |b| b.v4.into()), pool("v6", |b| b.v6.into())],
        services: vec![
            service("web4", Fabric::VIP_V4.into(), "v4"),
            service("web6", Fabric::VIP_V6.into(), "v6"),
        ],
    }
    .text()
}

fn a_balancer(sandbox: &Sandbox) -> Result<()> {
    let (fabric, binaries) = set_up(sandbox, "doctor")?;
    let balancer = Balancer::started(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
    let host = DoctorHost::unprobing(&fabric.balancer, &binaries, &balancer);
    let wrong = host.until_wrong(&[("daemon", "warning", "balancer")])?;
    ensure!(wrong[0].first_command()? == "spillway apply -f FILE", "{wrong:?}");
    balancer.apply(&document(&fabric))?;
    host.until_wrong(&[])?;

    host.mends("ip link set dev eth0 mtu 1500", &[("mtu", "warning", "eth0")])?;
    host.mends(
        "ip route change default via 10.0.0.1 mtu 1400",
        &[("mtu", "warning", "route to 10.1.0.11"), ("mtu", "warning", "route to 10.2.0.11")],
    )?;
    host.mends("ethtool -K eth0 tx on", &[("offloads", "problem", "eth0")])?;
    host.mends(
        "ip link set dev eth0 arp off && ip neighbour flush dev eth0",
        &[
            ("neighbours", "problem", "10.0.0.1 on eth0"),
            ("neighbours", "problem", "fd00::1 on eth0"),
        ],
    )?;
    host.mends(
        "sysctl -q -w net.ipv4.ip_forward=1",
        &[("forwarding", "warning", "net.ipv4.ip_forward")],
    )?;
    let other = balancer.bpffs.join("spillway/balancer-v0");
    let other = other.display().to_string();
    host.mends(&format!("mkdir {other}"), &[("pins", "warning", &other)])?;
    // Clients in the balancer's own subnet ask for the VIP there.
    host.mends(
        "ip address add 203.0.113.9/24 dev eth0",
        &[("vip_routes", "problem", "203.0.113.1")],
    )?;
    // Somebody who knows the path says what it takes: the interface may stay as it is.
    host.paste("ip link set dev eth0 mtu 1500")?;
    let wrong = host.until_wrong(&[("mtu", "warning", "eth0")])?;
    let or = wrong[0].or.as_deref().context("no other way")?;
    ensure!(or.starts_with("spillway backend update ADDRESS --mtu 1500"), "{or}");
    for backend in fabric.backends.iter().flat_map(|b| [b.v4.to_string(), b.v6.to_string()]) {
        balancer.cli(&["backend", "update", &backend, "--mtu", "1500"])?;
    }
    host.until_wrong(&[])?;
    let all = host.ask()?.0;
    ensure!(all.components == ["balancer"], "{all:?}");

    // Root in name alone.
    for verb in ["stats", "table"] {
        let mut command = fabric.balancer.command("setpriv");
        let less = "-cap_39,-sys_admin";
        command.args([format!("--bounding-set={less}"), format!("--inh-caps={less}")]);
        command.arg("--").arg(&host.spillway).args(&host.options).arg(verb);
        let output = command.output().context("run setpriv")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(4), "{output:?}");
        let sentence = "error: pinned maps: cannot be read without CAP_BPF\nhint: ";
        ensure!(said.starts_with(sentence), "{said}");
    }
    Ok(())
}

fn daemons(sandbox: &Sandbox) -> Result<()> {
    let (fabric, binaries) = set_up(sandbox, "daemons")?;
    let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
    balancer.write_settings(&format!("http = \"{HTTP_ADDRESS}\"\n"))?;
    balancer.start()?;
    balancer.apply(&document(&fabric))?;
    let host = DoctorHost::unprobing(&fabric.balancer, &binaries, &balancer);
    host.until_wrong(&[])?;

    // The daemon is killed: it is started as it was, with its settings file.
    balancer.kill()?;
    let silent = [("services", "warning", "balancer"), ("daemon", "problem", "balancer")];
    let wrong = host.until_wrong(&silent)?;
    host.mend(&wrong[1])?;
    let status = balancer.status()?;
    ensure!(status.region == REGIONS[0] && status.generation == 1, "{status:?}");
    ensure!(status.interfaces[0].mode == "native", "{status:?}");
    scrape(&fabric.balancer).context("metrics are served as before")?;
    kill(pid_of_daemon(&host)?, Signal::SIGKILL).context("kill the daemon")?;
    host.until_wrong(&silent)?;

    // One that runs in the stack is started anew in the driver, with all else it was told.
    let arguments: Vec<_> =
        [["balancer", "--interface", "eth0", "--xdp-mode", "generic", "--region", "eu"]
            .map(String::from)]
        .concat()
        .into_iter()
        .chain(host.options.iter().cloned())
        .collect();
    balancer.cli(&["detach", "--yes"])?;
    let running = fabric.balancer.spawn(&binaries.spillwayd, arguments)?;
    let reaper = std::thread::spawn(move || ended(running));
    let wrong = host.until_wrong(&[("mode", "warning", "eth0")])?;
    host.mend(&wrong[0])?;
    reaper.join().map_err(|_| anyhow::anyhow!("waiting for the daemon panicked"))??;
    let status = balancer.status()?;
    ensure!(status.interfaces[0].mode == "native", "{status:?}");
    Ok(())
}

/// The process of the daemon that the doctor sees: nobody here has started it.
fn pid_of_daemon(host: &DoctorHost) -> Result<Pid> {
    let (answer, _) = host.ask()?;
    let mut subjects = answer.findings.iter().map(|finding| &finding.subject);
    let pid =
        subjects.find_map(|s| s.strip_prefix("spillwayd balancer (process ")?.strip_suffix(")"));
    Ok(Pid::from_raw(pid.context("no daemon is seen")?.parse()?))
}

/// Waits for a daemon that is told to stop, so that its number is free.
fn ended(mut running: Running) -> Result<()> {
    let status = running.wait()?;
    ensure!(status.success(), "spillwayd: {status}\n{}", running.output());
    Ok(())
}

fn a_backend(sandbox: &Sandbox) -> Result<()> {
    let (fabric, binaries) = set_up(sandbox, "backend")?;
    let node = &fabric.backends[0].node;
    let sources = [Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()];
    let vips = [Fabric::VIP_V4.into(), Fabric::VIP_V6.into()];
    let mut receiver = Receiver::start(sandbox, &binaries, node, &sources, &vips)?;
    let host = DoctorHost::of(node, &binaries, sandbox.bpffs(node.namespace())?);
    host.until_wrong(&[])?;

    host.mends("sysctl -q -w net.ipv4.conf.all.rp_filter=1", &[("rp_filter", "warning", "eth0")])?;
    // The way back to some clients is another one.
    let router = &fabric.router;
    router.ip("address add 192.0.2.9/32 dev lo")?;
    node.ip("link add other0 type veth peer name other1\nlink set other0 up\nlink set other1 up\nroute add 192.0.2.0/24 dev other0")?;
    let target = fabric.backends[0].v4.to_string();
    // The filter holds for ARP too, so the router has to know the MAC.
    router.run("ping", ["-q", "-c", "1", "-W", "5", &target])?;
    node.sysctls(&[("net.ipv4.conf.all.rp_filter", "1")])?;
    let lost = router.run("ping", ["-q", "-c", "1", "-W", "1", "-I", "192.0.2.9", &target]);
    ensure!(lost.is_err(), "{lost:?}");
    let wrong = host.until_wrong(&[("rp_filter", "problem", "eth0")])?;
    host.mend(&wrong[0])?;
    host.mends(
        "ip address delete 203.0.113.1/32 dev lo",
        &[("served_vips", "problem", "203.0.113.1")],
    )?;
    host.mends(
        "ip -6 address delete 2001:db8:f::1/128 dev lo",
        &[("served_vips", "problem", "2001:db8:f::1")],
    )?;
    host.mends(
        "ip address delete 203.0.113.1/32 dev lo && ip address add 203.0.113.1/32 dev eth0",
        &[("served_vips", "problem", "203.0.113.1")],
    )?;
    host.mends("sysctl -q -w net.ipv4.conf.all.arp_ignore=0", &[("arp", "warning", "eth0")])?;
    host.mends("ip link set dev eth0 mtu 1500", &[("mtu", "warning", "eth0")])?;
    receiver.running.kill()?;
    host.until_wrong(&[("daemon", "warning", "receiver")])?;
    node.ip("address add 10.9.0.1/32 dev lo")?;
    let wrong = host
        .until_wrong(&[("daemon", "warning", "receiver"), ("endpoints", "problem", "10.9.0.1")])?;
    host.mend(&wrong[1])?;
    let all = host.ask()?.0;
    let allowed = all.of_check("allow_lists").next().context("no allow lists")?;
    ensure!(allowed.found == "10.0.0.2/32, fd00::2/128", "{allowed:?}");
    Ok(())
}

fn nothing(sandbox: &Sandbox) -> Result<()> {
    let binaries = Binaries::find()?;
    let bpffs = sandbox.bpffs("doctor-nothing")?;
    let mut doctor = Command::new(&binaries.spillway);
    let output = doctor.arg("--bpffs").arg(&bpffs).arg("doctor").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code() == Some(9), "{text}");
    let line = format!("problem pins: {}/spillway: no program is pinned here", bpffs.display());
    let words: Vec<_> = text.split_whitespace().collect();
    ensure!(words.join(" ").contains(&line), "{text}");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.starts_with("error: this host: 1 problem\nhint: "), "{said}");
    Ok(())
}
