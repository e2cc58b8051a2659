//! After a dead backend or region is detected no request fails, and other clients notice nothing.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel};
use lb_e2e::harness::{self, Case};
use lb_tests::capture::{Capture, Frames};
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{Requests, Stream, StreamReport, ensure_answered, name_over_udp};

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_killed_server_fails_no_request_after_detection", a_killed_server),
    Case::waits("a_vanished_host_fails_no_request_after_detection", a_vanished_host),
    Case::waits("a_failed_region_hands_over_whole_and_takes_back", a_fallen_region),
    Case::alone("the_first_packet_elsewhere_comes_before_another_check", first_packet_elsewhere),
];

/// The port is closed: requests are refused until the balancer has noticed. The host is there, and the
/// long connections to its other port with it.
fn a_killed_server(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "killed", Health::QUICK)?;
    let (streams, requests) = load(&fixture)?;
    let victim = fixture.number("eu2")?;
    fixture.servers[victim].kill()?;
    fixture.wait_up(&["eu2"])?;
    let detected = Instant::now();
    requests.wait_for(200)?;
    let end = Instant::now();

    fixture.servers[victim].restart()?;
    fixture.wait_up(&[])?;
    let back = Instant::now();
    requests.wait_for(200)?;
    judge(&fixture, requests, streams, (detected, end), back, "nobody")
}

/// Nothing answers at all, not even for the address.
fn a_vanished_host(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "vanished", Health::QUICK)?;
    let (streams, requests) = load(&fixture)?;
    let victim = &fixture.fabric.backends[fixture.number("eu2")?];
    victim.unplug()?;
    fixture.wait_up(&["eu2"])?;
    let detected = Instant::now();
    requests.wait_for(200)?;
    let end = Instant::now();

    victim.plug_in()?;
    fixture.wait_up(&[])?;
    let back = Instant::now();
    requests.wait_for(200)?;
    judge(&fixture, requests, streams, (detected, end), back, "eu2")
}

/// Long connections and short ones, on the first VIP.
fn load(fixture: &Fixture) -> Result<(Vec<Stream>, Requests)> {
    let client = &fixture.fabric.client;
    let mut streams = Vec::new();
    for seed in 0..24 {
        streams.push(Stream::open(client, Tunnel::Ipip.endpoint(ECHO), seed)?);
    }
    let on = |name: &str| streams.iter().filter(|stream| stream.backend() == name).count();
    ensure!(on("eu2") > 0 && on("eu1") + on("eu3") >= 8, "the streams are badly spread");
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(client, to, 4, Duration::from_millis(5));
    requests.wait_for(50)?;
    Ok((streams, requests))
}

fn judge(
    fixture: &Fixture,
    requests: Requests,
    streams: Vec<Stream>,
    (detected, end): (Instant, Instant),
    back: Instant,
    gone: &str,
) -> Result<()> {
    let attempts = requests.finish()?;
    ensure_answered(&attempts, detected, end, &["eu2"]).context("without eu2")?;
    ensure_answered(&attempts, back, Instant::now(), &[]).context("eu2 is back")?;
    let after = attempts.iter().filter(|attempt| attempt.at >= back);
    let by_eu2 = after.filter(|a| a.answer.as_deref().is_ok_and(|name| name == "eu2")).count();
    ensure!(by_eu2 > 0, "eu2 answers nothing after its return");

    for StreamReport { backend, bytes, lost } in streams.into_iter().map(Stream::finish) {
        fixture.number(&backend)?;
        if backend != gone {
            ensure!(lost.is_none(), "a stream on {backend} was lost after {bytes} bytes: {lost:?}");
            ensure!(bytes > 100_000, "a stream on {backend} exchanged {bytes} bytes only");
        }
    }
    Ok(())
}

/// All of the near region dies: the far one serves at once, and only until the near one returns.
fn a_fallen_region(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "region", Health::QUICK)?;
    let to = Tunnel::Ip6Ip6.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 4, Duration::from_millis(5));
    requests.wait_for(100)?;
    let begun = Instant::now();
    requests.wait_for(100)?;
    let before = (begun, Instant::now());
    // What is under way ends before its server is killed.
    requests.wait_for(100)?;

    let (near, far) = (["eu1", "eu2", "eu3"], ["us1", "us2", "us3"]);
    (0..3).try_for_each(|number| fixture.servers[number].kill())?;
    fixture.wait_up(&near)?;
    let detected = Instant::now();
    requests.wait_for(200)?;
    let end = Instant::now();

    (0..3).try_for_each(|number| fixture.servers[number].restart())?;
    fixture.wait_up(&[])?;
    let back = Instant::now();
    requests.wait_for(200)?;
    let attempts = requests.finish()?;
    ensure_answered(&attempts, before.0, before.1, &far).context("before")?;
    ensure_answered(&attempts, detected, end, &near).context("while the near region is dead")?;
    ensure_answered(&attempts, back, Instant::now(), &far).context("after")?;
    Ok(())
}

/// One flow, a datagram every quarter of a millisecond, and the balancer's link taken down. From the
/// refusal that was the last of the checks that have to fail to the first datagram that leaves for somebody
/// else. Most times no other check comes between the two; the bench measures how long it takes.
fn first_packet_elsewhere(sandbox: &Sandbox) -> Result<()> {
    let health = Health { interval_ms: 100, fall: 3 };
    let mut fixture = Fixture::start(sandbox, "fast", health)?;
    let mut checks = Vec::new();
    for round in 0..7 {
        let names = ["eu1", "eu2", "eu3"];
        let victim = names[round % names.len()];
        let from = flow_to(&fixture, victim, round as u64)?;
        let number = fixture.number(victim)?;
        let end: IpAddr = fixture.fabric.backends[number].v4.into();

        let capture = Capture::start(&fixture.fabric.router, "balancer", "")?;
        let client = fixture.fabric.client.clone();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let sender = scope.spawn(|| client.enter(|| send_until(from, &stop)));
            fixture.servers[number].kill()?;
            let moved = fixture.wait_up(&[victim]);
            pause(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
            sender.join().ok().context("sender")???;
            moved
        })?;
        let frames = capture.stop()?;
        frames.assert_faultless()?;
        let (time, failed) = time_to_move(&frames, from, end, health.fall)?;
        harness::note(format!(
            "failover of {victim}: {:.2} ms, after {failed} failed checks",
            time * 1e3
        ));
        checks.push(failed);
        fixture.servers[number].restart()?;
        fixture.wait_up(&[])?;
    }
    checks.sort_unstable();
    // The daemon may have to wait for a CPU for a moment; most of the time it has not.
    ensure!(
        checks[checks.len() / 2] == health.fall as usize,
        "moved after {checks:?} failed checks"
    );
    Ok(())
}

/// A client's address and port whose datagrams go to a backend.
fn flow_to(fixture: &Fixture, backend: &str, seed: u64) -> Result<SocketAddr> {
    let mut random = Random::new(seed);
    let to = Tunnel::Ipip.endpoint(ECHO);
    until(&format!("a flow to {backend}"), PATIENCE, || {
        let from = random.client(to.ip());
        let name = name_over_udp(&fixture.fabric.client, from, to)?;
        Ok((name == backend).then_some(from))
    })
}

fn send_until(from: SocketAddr, stop: &AtomicBool) -> Result<()> {
    let socket = UdpSocket::bind(from)?;
    while !stop.load(Ordering::Relaxed) {
        socket.send_to(b"?", Tunnel::Ipip.endpoint(ECHO))?;
        std::thread::park_timeout(Duration::from_micros(250));
    }
    Ok(())
}

/// How long after the last of the checks that have to fail, and how many failed until then.
fn time_to_move(frames: &Frames, from: SocketAddr, end: IpAddr, fall: u32) -> Result<(f64, usize)> {
    let flow =
        format!("ip.proto == 4 && udp.srcport == {} && ip.src == {}", from.port(), from.ip());
    let mut moved = None;
    for [time, destinations] in frames.fields(&flow, ["frame.time_epoch", "ip.dst"])? {
        if destinations.split(',').next() != Some(&end.to_string()) {
            moved = Some(time.parse::<f64>()?);
            break;
        }
    }
    let moved = moved.context("the flow never moved")?;
    let refused = format!("tcp.flags.reset == 1 && ip.src == {end} && tcp.srcport == {HTTP}");
    let mut refusals = Vec::new();
    for [time] in frames.fields(&refused, ["frame.time_epoch"])? {
        let time = time.parse::<f64>()?;
        if time <= moved {
            refusals.push(time);
        }
    }
    let last = refusals.get(fall as usize - 1);
    let last = last.with_context(|| format!("moved after {} refusals", refusals.len()))?;
    Ok((moved - last, refusals.len()))
}
