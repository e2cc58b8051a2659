//! Configurations of thousands of objects are applied whole, through the interfaces that an operator has.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::{self, Case};
use lb_maps::PinnedMaps;
use lb_tests::daemon::{Balancer, Binaries, Document, Member, Pool, Service};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};

const SERVICES: u16 = 1_000;
/// Backends of each of them.
const BACKENDS: u16 = 100;
/// Hosts that they are taken from: each is in ten pools.
const HOSTS: u16 = 10_000;
/// Ports of one service.
const PORTS: u16 = 400;
/// How many times as long as one port, all of them may take: far less than if each waited for readers of the maps.
const FACTOR: u32 = 50;

pub(crate) const CASES: &[Case] = &[
    Case::alone("a_thousand_services_with_a_hundred_backends_each", thousand_services),
    Case::waits("four_hundred_ports_of_a_service_come_and_go_at_once", four_hundred_ports),
    Case::works("ten_thousand_services_with_a_hundred_thousand_ports", most_services),
];

fn host(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 1, high, low).into()
}

/// The `pool`th hundred backends; hosts are shared by pools that lie apart.
fn pool(number: u16, backends: u16) -> Pool {
    let hosts = (0..backends).map(|n| (u32::from(number) * 97 + u32::from(n) * 100) as u16 % HOSTS);
    let member = |n| Member { address: host(n + 256), region: REGIONS[0].into(), weight: 1 };
    Pool { name: format!("pool{number}"), checks: Vec::new(), members: hosts.map(member).collect() }
}

fn service(number: u16, port: u16, pool: &str) -> Service {
    let address = Ipv4Addr::new(198, 51, 100, 1).into();
    let (name, pool) = (format!("service{number}"), pool.into());
    Service { name, address, port, protocol: "tcp", pool }
}

/// A balancer with nothing behind it: no packet comes.
fn balancer(sandbox: &Sandbox, name: &str) -> Result<(Fabric, Balancer)> {
    let fabric = Fabric::new(sandbox, name, 1)?;
    fabric.net.ready()?;
    let balancer = Balancer::started(sandbox, &Binaries::find()?, &fabric.balancer, REGIONS[0])?;
    Ok((fabric, balancer))
}

fn thousand_services(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, mut balancer) = balancer(sandbox, "large")?;
    balancer.stop()?;
    balancer.cli(&["detach", "--yes"])?;
    balancer.more.extend(["--pool-backends".into(), "100000".into()]);
    balancer.start()?;
    let before = resident(&mut balancer)?;
    let mut document = Document {
        regions: vec![REGIONS[0].into()],
        pools: (0..SERVICES).map(|n| pool(n, BACKENDS)).collect(),
        services: (0..SERVICES).map(|n| service(n, 1 + n, &format!("pool{n}"))).collect(),
        ..Document::default()
    };
    let (_, first) = timed(|| balancer.apply(&document.text()))?;
    // Not parsed: that would take longer, here, than all else.
    let (listed, list) = timed(|| balancer.cli(&["status", "--output", "json"]))?;
    let backends = listed.matches("\"next_hop\":").count();
    ensure!(backends == usize::from(SERVICES) * usize::from(BACKENDS), "{backends} listed");
    let services = listed.matches("\"endpoint\":").count();
    ensure!(services == usize::from(SERVICES), "{services} listed");
    let (_, again) = timed(|| balancer.apply(&document.text()))?;
    document.pools[500].members[7].weight = 2;
    let (_, one) = timed(|| balancer.apply(&document.text()))?;
    let after = resident(&mut balancer)?;
    let started = restart(&mut balancer)?;
    let words = format!(
        "{SERVICES} services with {BACKENDS} backends each: applied in {first:.1?}, the same again in \
         {again:.1?}, one weight changed in {one:.1?}, status as json in {list:.1?}, a restart took \
         {started:.1?}; the daemon has {} MiB resident, {} MiB before",
        after >> 20,
        before >> 20
    );
    harness::note(words);
    Ok(())
}

fn four_hundred_ports(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "ports")?;
    let mut document = Document {
        regions: vec![REGIONS[0].into()],
        pools: vec![pool(0, BACKENDS)],
        services: vec![service(0, 1, "pool0")],
        ..Document::default()
    };
    balancer.apply(&document.text())?;
    document.services = (0..PORTS).map(|n| service(n, 1 + n, "pool0")).collect();
    let many = document.text();
    document.services.truncate(2);
    let two = document.text();
    document.services.truncate(1);
    let few = document.text();
    let mut best = [Duration::MAX; 5];
    for _ in 0..5 {
        // The same again is what a call costs by itself.
        for (best, text) in best.iter_mut().zip([&many, &many, &few, &two, &few]) {
            *best = (*best).min(timed(|| balancer.apply(text))?.1);
        }
    }
    let [come, same, go, comes, goes] = best;
    let words = format!(
        "{PORTS} ports of one service: they come in {come:.1?}, and go in {go:.1?}; one comes in {comes:.1?}, and goes \
         in {goes:.1?}; a call that changes nothing takes {same:.1?}"
    );
    harness::note(words.clone());
    ensure!(come < FACTOR * comes && go < FACTOR * goes, "{words}");
    Ok(())
}

/// As many services, ports and pools as settings allow. Fifty pools each have the same backends, so they share a table.
fn most_services(sandbox: &Sandbox) -> Result<()> {
    const SERVICES: u32 = 10_000;
    const BACKENDS: usize = 4;
    let (_fabric, mut balancer) = balancer(sandbox, "most")?;
    let mut text = format!("[[region]]\nname = \"{}\"\n", REGIONS[0]);
    for n in 0..SERVICES {
        writeln!(text, "[[pool]]\nname = \"p{n}\"")?;
        let first = (n / 50) as u16 * BACKENDS as u16;
        for host in (first..).take(BACKENDS).map(host) {
            let region = REGIONS[0];
            writeln!(text, "[[pool.backend]]\naddress = \"{host}\"\nregion = \"{region}\"")?;
        }
        let address = Ipv4Addr::from(0xc612_0000 + n);
        writeln!(text, "[[service]]\nname = \"s{n}\"\naddress = \"{address}\"\npool = \"p{n}\"")?;
        writeln!(text, "ports = [\"1000-1009\"]\nprotocol = \"tcp\"")?;
    }
    let refused = balancer.apply(&text).err().context("it fits by default")?.to_string();
    let expected = "10000 services exceed the 4096 that the setting `services` allows";
    ensure!(refused.contains(expected), "{refused}");

    balancer.stop()?;
    balancer.cli(&["detach", "--yes"])?;
    for (setting, number) in [
        ("services", 10_000),
        ("ports", 100_000),
        ("pools", 10_000),
        ("groups", 10_000),
        ("pool-backends", 40_000),
    ] {
        balancer.more.extend([format!("--{setting}"), number.to_string()]);
    }
    balancer.start()?;
    let (_, took) = timed(|| balancer.apply(&text))?;
    harness::note(format!("{SERVICES} services with 10 ports each: applied in {took:.1?}"));
    let maps = PinnedMaps::open(&balancer.bpffs)?;
    let services = maps.services()?;
    ensure!(services.len() == 100_000, "{} ports", services.len());
    // The highest numbers are in use.
    let [service, pool] =
        [services.iter().map(|it| it.index).max(), services.iter().map(|it| it.pool).max()];
    ensure!((service, pool) == (Some(SERVICES), Some(SERVICES)), "{service:?}, {pool:?}");
    let last = maps.pool_members(SERVICES)?.context("the last pool is not published")?;
    ensure!(last.backends.len() == BACKENDS, "{:?}", last.backends);
    let (to, from) = ("198.18.39.15:1009", "192.0.2.9:40000");
    let explained = balancer.explain(from.parse()?, to.parse()?, "tcp")?;
    let service = explained.service.as_ref().context("no service")?;
    ensure!(service.name == "s9999", "{explained:?}");
    Ok(())
}

fn timed<T>(call: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let begin = Instant::now();
    let answer = call()?;
    Ok((answer, begin.elapsed()))
}

/// How long the daemon takes to answer again after it was stopped.
fn restart(balancer: &mut Balancer) -> Result<Duration> {
    balancer.stop()?;
    Ok(timed(|| balancer.start())?.1)
}

/// Memory of the daemon, bytes.
fn resident(balancer: &mut Balancer) -> Result<u64> {
    let pid = balancer.running().context("it runs")?.id();
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context(String::from(line))?;
    Ok(kib << 10)
}
