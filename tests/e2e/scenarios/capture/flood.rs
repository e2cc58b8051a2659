//! A capture of everything during a flood of 100,000 packets stays within its bounds.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_e2e::harness;
use lb_tests::process::until;
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::Flood;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_udp;

use crate::capture::command::RunningCapture;

const PACKETS: u64 = 100_000;
/// The largest that the daemon may grow by: the batches that wait for a reader, and what holds them.
const GROWTH: u64 = 64 << 20;

pub(crate) fn bounded(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "flood", Health::QUICK)?;
    let before = resident(&mut fixture)?;
    let to = SocketAddrV4::new(Fabric::VIP_V4, ECHO);
    let mut flood = Flood::new(&fixture.fabric, to)?;
    let vip = to.ip().to_string();
    let flags = ["--vip", &vip, "--count", "1000000", "--snap", "2000", "--duration", "45s"];
    let running = RunningCapture::start(&fixture, "flood", &flags)?;
    let was = decided(&fixture)?;
    let mut ports = 44_000..;
    until("a hundred thousand packets were decided about", Duration::from_secs(40), || {
        flood.send(20_000, 1_000_000, Duration::from_secs(1))?;
        // Others are served all the same. A datagram that finds a link's ring full of the flood is lost.
        let is_served = ports.by_ref().take(3).any(|port| {
            let from = SocketAddr::new(Fabric::CLIENT_V4.into(), port);
            name_over_udp(&fixture.fabric.client, from, Tunnel::Ipip.endpoint(ECHO)).is_ok()
        });
        ensure!(is_served, "others are not served");
        Ok((decided(&fixture)? - was >= PACKETS).then_some(()))
    })?;
    let (frames, said) = running.end()?;
    let [written, matched, lost] = counts(&said)?;
    harness::note(format!("{matched} packets at once: {written} written, {lost} lost"));
    let decided = decided(&fixture)? - was;
    ensure!(matched == decided && decided >= PACKETS, "{decided}: {said}");
    ensure!(written + lost == matched, "{said}");
    let there = frames.count("frame.interface_name == \"eth0 in\"")? as u64;
    ensure!(there == written, "{there} of {written}");
    let after = resident(&mut fixture)?;
    ensure!(after < before + GROWTH, "the daemon grew from {before} to {after} bytes");
    Ok(())
}

/// Packets of services that were decided about; those that are passed are the host's own.
fn decided(fixture: &Fixture) -> Result<u64> {
    let verdicts = fixture.balancer.stats()?.verdicts.into_iter();
    Ok(verdicts.filter(|it| it.action != "pass").map(|it| it.packets).sum())
}

/// Written, matched and lost.
fn counts(said: &str) -> Result<[u64; 3]> {
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().ok().with_context(|| said.to_owned())
}

/// Memory of the daemon, bytes.
fn resident(fixture: &mut Fixture) -> Result<u64> {
    let pid = fixture.balancer.running().context("it runs")?.id();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context(String::from(line))?;
    Ok(kib << 10)
}
