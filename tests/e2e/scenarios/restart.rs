//! Packets flow on while the daemon is dead, and a new one takes over what it left.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel};
use lb_e2e::harness::{self, Case};
use lb_tests::daemon::{XdpMode, xdp_mode};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{ClientCounters, Requests, Stream, ensure_answered};
use spillway_proto::v1::StatusResponse;

/// How soon after it answers a daemon sends traffic past a backend that died while it was down: ten times the three
/// seconds that its check takes, which is as it is when nothing is said.
const LIMIT: Duration = Duration::from_secs(30);
/// What takes longer had its SYN repeated (RFC 6298).
const REPEATED: Duration = Duration::from_secs(1);

pub(crate) const CASES: &[Case] = &[
    Case::waits("kill_9_of_the_daemon_fails_no_request", kill_9_fails_no_request),
    Case::waits("a_stop_and_a_start_fail_no_request", stop_and_start_fail_no_request),
    Case::works("a_server_that_died_meanwhile_is_left", a_server_died_meanwhile),
    Case::works("a_host_that_vanished_meanwhile_is_left", a_host_vanished_meanwhile),
    Case::waits("pinned_health_stands_until_a_check_says_otherwise", pinned_health_stands),
    Case::waits("detach_ends_it", detach_ends_it),
];

fn kill_9_fails_no_request(sandbox: &Sandbox) -> Result<()> {
    through(sandbox, "kill", |fixture| {
        fixture.balancer.kill()?;
        Ok(())
    })
}

fn stop_and_start_fail_no_request(sandbox: &Sandbox) -> Result<()> {
    through(sandbox, "stop", |fixture| fixture.balancer.stop())
}

/// Under load, long connections included: the daemon goes, packets are balanced without it, it
/// comes back to what was, and three times so.
fn through(sandbox: &Sandbox, name: &str, end: fn(&mut Fixture) -> Result<()>) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, name, Health::QUICK)?;
    let client = fixture.fabric.client.clone();
    let before = settled(fixture.balancer.status()?);
    let mut streams = Vec::new();
    for (seed, tunnel) in (0..).zip([Tunnel::Ipip, Tunnel::Ip6Ip6].into_iter().cycle().take(12)) {
        streams.push(Stream::open(&client, tunnel.endpoint(ECHO), seed)?);
    }
    let (begun, sent) = (Instant::now(), ClientCounters::read(&client)?);
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&client, to, 4, Duration::from_millis(2));
    let mut counted = 0;
    for _ in 0..3 {
        requests.wait_for(100)?;
        end(&mut fixture)?;
        requests.wait_for(200)?;
        let now = connections(&fixture)?;
        ensure!(now >= counted + 200, "counters: {now} after {counted} and 200 more requests");
        counted = now;
        fixture.balancer.start()?;
        requests.wait_for(100)?;
        ensure!(connections(&fixture)? >= counted + 100, "the counters did not stand");
        let mut after = None;
        until("the status is as before", PATIENCE, || {
            after = Some(settled(fixture.balancer.status()?));
            Ok((after.as_ref() == Some(&before)).then_some(()))
        })
        .with_context(|| format!("before {before:#?}\nafter {after:#?}"))?;
    }
    let attempts = requests.finish()?;
    ensure_answered(&attempts, begun, Instant::now(), &[])?;
    // Each attempt was one connection, and each SYN was counted once: the client's kernel repeats one that
    // it has no answer to in a second.
    let client = ClientCounters::read(&client)?.since(&sent);
    ensure!(client.opened == attempts.len() as u64, "{client:?}, {} attempts", attempts.len());
    let counted = connections(&fixture)?;
    ensure!((client.opened..=client.syns()).contains(&counted), "{counted} counted of {client:?}");
    Stream::finish_all(streams)?;
    Ok(())
}

/// A status without what changes by itself.
fn settled(mut status: StatusResponse) -> StatusResponse {
    status.uptime = None;
    for backend in &mut status.backends {
        // Since when, and why, the daemon knows since its own start.
        backend.since = None;
        if let Some(reason) = &mut backend.reason {
            reason.text.clear();
        }
    }
    status
}

/// Connections of the service of HTTP over IPIP by the balancer's counter.
fn connections(fixture: &Fixture) -> Result<u64> {
    Ok(fixture.balancer.stats()?.service("ipip-tcp-80")?.connections)
}

fn a_server_died_meanwhile(sandbox: &Sandbox) -> Result<()> {
    died_meanwhile(sandbox, "died", |fixture, victim| fixture.servers[victim].kill())
}

fn a_host_vanished_meanwhile(sandbox: &Sandbox) -> Result<()> {
    died_meanwhile(sandbox, "gone", |fixture, victim| fixture.fabric.backends[victim].unplug())
}

/// With checks as they are when nobody says anything: every second, three failures.
fn died_meanwhile(
    sandbox: &Sandbox,
    name: &str,
    end: fn(&mut Fixture, usize) -> Result<()>,
) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, name, Health::DEFAULT)?;
    let victim = fixture.number("eu3")?;
    fixture.balancer.kill()?;
    end(&mut fixture, victim)?;
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 8, Duration::from_millis(2));
    requests.wait_for(100)?;
    let start = Instant::now();
    fixture.balancer.start()?;
    let answers = Instant::now();
    fixture.wait_up(&["eu3"])?;
    let detected = Instant::now();
    requests.wait_for(200)?;
    let attempts = requests.finish()?;
    let before = attempts.iter().filter(|attempt| attempt.at < start);
    ensure!(
        before.filter(|a| a.answer.is_err() || a.took > REPEATED).count() > 0,
        "eu3 was not missed"
    );
    ensure_answered(&attempts, detected, Instant::now(), &["eu3"])?;
    ensure!(detected - answers < LIMIT, "after {:?}", detected - answers);
    let failed = attempts.iter().rev().find(|a| a.answer.is_err() || a.took > REPEATED);
    if let Some(last) = failed.filter(|attempt| attempt.at > start) {
        harness::note(format!(
            "{name}: the last request in vain began {:?} after the start of the daemon",
            last.at - start
        ));
    }
    Ok(())
}

/// A backend that was unhealthy is not raised by a restart, and one that was up is not doubted.
fn pinned_health_stands(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "stands", Health::QUICK)?;
    let victim = fixture.number("eu1")?;
    fixture.servers[victim].kill()?;
    fixture.wait_up(&["eu1"])?;
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 4, Duration::from_millis(2));
    let begun = Instant::now();
    for _ in 0..5 {
        fixture.balancer.kill()?;
        fixture.balancer.start()?;
        requests.wait_for(50)?;
    }
    let attempts = requests.finish()?;
    ensure_answered(&attempts, begun, Instant::now(), &["eu1", "us1", "us2", "us3"])?;
    Ok(())
}

/// Pins go only when asked, and only when no daemon needs them.
fn detach_ends_it(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "detach", Health::QUICK)?;
    let refused = fixture.balancer.try_cli(&["detach"], None)?;
    ensure!(refused.status.code() == Some(7), "while the daemon runs: {refused:?}");
    ensure!(xdp_mode(&fixture.fabric.balancer, "eth0")? == XdpMode::Native);
    fixture.balancer.stop()?;
    ensure!(xdp_mode(&fixture.fabric.balancer, "eth0")? == XdpMode::Native, "gone with the daemon");
    let refused = fixture.balancer.try_cli(&["detach"], None)?;
    let said = String::from_utf8_lossy(&refused.stderr);
    let stops = "this stops packets: the balancer no longer gets those of eth0";
    ensure!(refused.status.code() == Some(2) && said.contains(stops), "{refused:?}");
    ensure!(xdp_mode(&fixture.fabric.balancer, "eth0")? == XdpMode::Native, "gone without --yes");
    ensure!(pins(&fixture)? > 0);
    // On a terminal the answer decides.
    let asked = |answer: &str| {
        let on_terminal = format!("printf '{answer}\\n' | script -qec 'spillway detach' /dev/null");
        fixture.balancer.shell(&on_terminal).output().context("script")
    };
    let refused = asked("")?;
    let said = String::from_utf8_lossy(&refused.stdout);
    ensure!(said.contains("Go on? [y/N]") && said.contains("not confirmed"), "{refused:?}");
    ensure!(refused.status.code() == Some(1) && pins(&fixture)? > 0, "{refused:?}");
    let done = asked("y")?;
    ensure!(done.status.success(), "{done:?}");
    ensure!(xdp_mode(&fixture.fabric.balancer, "eth0")? == XdpMode::None);
    ensure!(pins(&fixture)? == 0, "pins are left");
    Ok(())
}

/// Files below the balancer's directory of the BPF file system.
fn pins(fixture: &Fixture) -> Result<usize> {
    fn count(directory: &std::path::Path) -> Result<usize> {
        let mut files = 0;
        for entry in directory.read_dir()? {
            let entry = entry?;
            files += if entry.file_type()?.is_dir() { count(&entry.path())? } else { 1 };
        }
        Ok(files)
    }
    count(&fixture.balancer.bpffs)
}
