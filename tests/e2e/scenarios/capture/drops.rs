//! `spillway drops` prints a line with the reason for each dropped packet.

use std::net::{SocketAddr, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_maps::PinnedMaps;
use lb_tests::process::{PATIENCE, Running, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_udp;
use serde_json::Value;

use crate::capture::command::{without_icmp_errors, word};

const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Fabric::CLIENT_V4), 43_000);
/// Datagrams that come at once, and how many of them one after the other without a look.
const MANY: u64 = 2_000;
const AT_ONCE: u64 = 100;

fn drops(fixture: &Fixture, name: &str, arguments: &[&str]) -> Result<Running> {
    let log = fixture.fabric.balancer.directory().join(name);
    let running = Running::start("spillway", &mut fixture.balancer.command(arguments), &log)?;
    until("the capture is on", PATIENCE, || Ok((word(fixture)? != 0).then_some(())))?;
    Ok(running)
}

/// Datagrams that the router hands on with a TTL of 1. No more are under way than a veth's ring holds, which
/// is 256, however long the CPU has something else to do.
fn send(fixture: &Fixture, number: u64) -> Result<()> {
    let before = dropped(fixture)?;
    fixture.fabric.client.enter(|| {
        let socket = UdpSocket::bind(FROM)?;
        socket.set_ttl(2)?;
        for sent in 1..=number {
            socket.send_to(b"?", Tunnel::Ipip.endpoint(ECHO))?;
            if sent.is_multiple_of(AT_ONCE) || sent == number {
                until("they came", PATIENCE, || {
                    Ok((dropped(fixture)? - before >= sent).then_some(()))
                })?;
            }
        }
        Ok(())
    })?
}

/// Packets that were dropped for their TTL.
fn dropped(fixture: &Fixture) -> Result<u64> {
    let verdicts = PinnedMaps::open(&fixture.balancer.bpffs)?.verdicts()?;
    let of_ttl = verdicts.iter().find(|(verdict, _)| verdict.name() == "hop_limit_exceeded");
    Ok(of_ttl.context("no such verdict")?.1.packets)
}

pub(crate) fn told(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "drops", Health::QUICK)?;
    without_icmp_errors(&mut fixture)?;
    // One that is forwarded, which is none, and one that is dropped: it ends with that.
    let mut lines = drops(&fixture, "one.log", &["drops", "--count", "1"])?;
    let mut forwarded = FROM;
    forwarded.set_port(43_001);
    name_over_udp(&fixture.fabric.client, forwarded, Tunnel::Ipip.endpoint(ECHO))?;
    send(&fixture, 1)?;
    ensure!(lines.wait()?.success(), "{}", lines.output());
    let said = lines.output();
    let (at, line) = said.split_once(' ').context("a time and more")?;
    ensure!(at.ends_with('Z') && at.starts_with("20"), "{said}");
    let vip = Tunnel::Ipip.vip();
    let expected = format!(
        "eth0 hop_limit_exceeded: udp 198.51.100.2:43000 > {vip}:7, 43 bytes\n\
         1 packet; 1 matched, 0 lost\n"
    );
    ensure!(line == expected, "{said}");

    // Many: ten at once, and the others counted; for programs too.
    let flags = ["-o", "json", "drops", "--duration", "3s", "--rate", "1", "--vip", "203.0.113.1"];
    let mut lines = drops(&fixture, "many.log", &flags)?;
    send(&fixture, MANY)?;
    ensure!(lines.wait()?.success(), "{}", lines.output());
    let said = lines.output();
    let (told, counted): (Vec<_>, Vec<_>) = said.lines().partition(|line| line.starts_with('{'));
    ensure!((10..=14).contains(&told.len()), "{} lines", told.len());
    for line in &told {
        let line: Value = serde_json::from_str(line)?;
        let of = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        ensure!(of("verdict") == "hop_limit_exceeded" && of("protocol") == "udp", "{line}");
        ensure!(of("source") == FROM.to_string() && of("interface") == "eth0", "{line}");
        ensure!(of("destination") == format!("{vip}:7") && line["length"] == 43, "{line}");
        ensure!(line["backend"] == Value::Null, "{line}");
    }
    let left_out = MANY - told.len() as u64;
    let expected =
        format!("{} packets; {MANY} matched, {left_out} over the rate, 0 lost", told.len());
    ensure!(counted == [expected], "{counted:?}");
    Ok(())
}
