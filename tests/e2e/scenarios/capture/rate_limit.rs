//! A capture with a rate takes that many packets a second and counts the others.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::capture::{Capture, Frames};
use lb_tests::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::process::pause;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use nix::time::{ClockId, clock_gettime};

use crate::capture::command::RunningCapture;

/// Packets a second, and how many of them at once (docs/capture.md).
const RATE: u32 = 200;
const BURST: usize = 20;
/// How long packets come, five times as fast.
const LONG: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(1);
/// By how much the clocks of tcpdump and the program may differ, and the kernel's coarse clock, which the
/// rate goes by, may lag more in the program than it did when the packet was sent; seconds.
const CLOCK: f64 = 0.010;

pub(crate) fn kept(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "rate", Health::QUICK)?;
    let (vip, rate) = (Tunnel::Ipip.vip().to_string(), RATE.to_string());
    let wire = Capture::start(&fixture.fabric.router, "balancer", "udp")?;
    let flags = ["--vip", &vip, "--rate", &rate, "--count", "1000000", "--duration", "6s"];
    let running = RunningCapture::start(&fixture, "rate", &flags)?;
    let (sent, lag) = send(&fixture)?;
    let clock = CLOCK + lag;
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
            let most = BURST as f64 + f64::from(RATE) * (end - begin + clock);
            let there = last - first + 1;
            ensure!(there as f64 <= most, "{there} from {begin} to {end}");
        }
    }
    // Nor fewer: whatever comes when its turn is has it.
    let turn = 1.0 / f64::from(RATE) + clock;
    let ends = taken[1..].iter().chain(wire.last());
    for (begin, end) in taken.iter().zip(ends) {
        let passed =
            wire.iter().filter(|moment| begin + turn < **moment && **moment + clock < *end);
        ensure!(passed.count() == 0, "nothing was taken from {begin} to {end}");
    }
    ensure!(written > BURST, "{written} of {sent}");
    Ok(())
}

/// Datagrams of one flow: how many, and by how many seconds the coarse clock lagged at most. On a busy
/// machine it lags by more than a tick, as the CPU that keeps it waits too.
fn send(fixture: &Fixture) -> Result<(usize, f64)> {
    fixture.fabric.client.enter(|| {
        let socket = UdpSocket::bind((Fabric::CLIENT_V4, 43_000))?;
        let (begin, mut sent, mut lag) = (Instant::now(), 0, Duration::ZERO);
        while begin.elapsed() < LONG {
            let coarse = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE)?);
            let exact = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
            lag = lag.max(exact.saturating_sub(coarse));
            socket.send_to(b"?", Tunnel::Ipip.endpoint(ECHO))?;
            sent += 1;
            pause(PACE);
        }
        Ok((sent, lag.as_secs_f64()))
    })?
}

/// When frames came, seconds since 1970.
fn moments(frames: &Frames, filter: &str) -> Result<Vec<f64>> {
    let times = frames.fields(filter, ["frame.time_epoch"])?;
    times.iter().map(|[time]| time.parse().with_context(|| time.clone())).collect()
}
