//! A capture with a rate takes that many packets a second and counts the others.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::capture::{Capture, Frames};
use lb_tests::process::pause;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;

use crate::capture::command::RunningCapture;

/// Packets a second, and how many of them at once (docs/capture.md).
const RATE: u32 = 200;
const BURST: usize = 20;
/// How long packets come, five times as fast.
const LONG: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(1);
/// By how much the kernel's coarse clock, which the rate goes by, may lag, and tcpdump's differ; seconds.
const CLOCK: f64 = 0.025;

pub(crate) fn kept(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "rate", Health::QUICK)?;
    let (vip, rate) = (Tunnel::Ipip.vip(), RATE.to_string());
    // With the port: replies that come after the client's socket is closed are answered by ICMP errors to the VIP.
    let endpoint = Tunnel::Ipip.endpoint(ECHO).to_string();
    let wire = Capture::start(&fixture.fabric.router, "balancer", "udp")?;
    let flags = ["--vip", &endpoint, "--rate", &rate, "--count", "1000000", "--duration", "6s"];
    let running = RunningCapture::start(&fixture, "rate", &flags)?;
    let sent = send(&fixture)?;
    let (taken, said) = running.end()?;
    let wire = wire.stop()?;
    taken.assert_faultless()?;

    let came = format!("udp.dstport == {ECHO} && ip.dst == {vip} && ip.proto == 17");
    let wire = moments(&wire, &came)?;
    ensure!(wire.len() == sent, "{sent} sent, {} on the wire", wire.len());
    let taken = moments(&taken, "frame.interface_name == \"eth0 in\"")?;
    let written = taken.len();
    let expected = format!("; {sent} matched, {} over the rate, 0 lost\n", sent - written);
    ensure!(said.starts_with(&format!("{written} packets in ")), "{said}");
    ensure!(said.ends_with(&expected), "{said}expected{expected}");

    // Never more than a burst above the rate, wherever one begins to count.
    for (first, begin) in taken.iter().enumerate() {
        for (last, end) in taken.iter().enumerate().skip(first) {
            let most = BURST as f64 + f64::from(RATE) * (end - begin + CLOCK);
            let there = last - first + 1;
            ensure!(there as f64 <= most, "{there} from {begin} to {end}");
        }
    }
    // Nor fewer: whatever comes when its turn is has it.
    let turn = 1.0 / f64::from(RATE) + CLOCK;
    let ends = taken[1..].iter().chain(wire.last());
    for (begin, end) in taken.iter().zip(ends) {
        let passed =
            wire.iter().filter(|moment| begin + turn < **moment && **moment + CLOCK < *end);
        ensure!(passed.count() == 0, "nothing was taken from {begin} to {end}");
    }
    ensure!(written > BURST, "{written} of {sent}");
    Ok(())
}

/// Datagrams of one flow; how many.
fn send(fixture: &Fixture) -> Result<usize> {
    fixture.fabric.client.enter(|| {
        let socket = UdpSocket::bind((Fabric::CLIENT_V4, 43_000))?;
        let (begin, mut sent) = (Instant::now(), 0);
        while begin.elapsed() < LONG {
            socket.send_to(b"?", Tunnel::Ipip.endpoint(ECHO))?;
            sent += 1;
            pause(PACE);
        }
        Ok(sent)
    })?
}

/// When frames came, seconds since 1970.
fn moments(frames: &Frames, filter: &str) -> Result<Vec<f64>> {
    let times = frames.fields(filter, ["frame.time_epoch"])?;
    times.iter().map(|[time]| time.parse().with_context(|| time.clone())).collect()
}
