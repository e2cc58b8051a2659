//! `spillway backend drain` and `undrain` under traffic lose no connection.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{Requests, Stream, StreamReport, ensure_answered};

/// New connections leave it at once, its open ones stay; enabled, it gets new ones again.
pub(crate) fn with_traffic(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "drain", Health::QUICK)?;
    let client = &fixture.fabric.client;
    let open = |seed| Stream::open(client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..24).map(open).collect::<Result<Vec<_>>>()?;
    let there = streams.iter().filter(|stream| stream.backend() == "eu2").count();
    ensure!(there > 0, "the streams are badly spread");
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(client, to, 4, Duration::from_millis(5));
    requests.wait_for(50)?;

    let address = Tunnel::Ipip.end(&fixture.fabric.backends[fixture.number("eu2")?]).to_string();
    fixture.balancer.cli(&["backend", "drain", &address])?;
    let drained = Instant::now();
    requests.wait_for(200)?;
    let end = Instant::now();
    fixture.balancer.cli(&["backend", "undrain", &address])?;
    fixture.wait_up(&[])?;
    let back = Instant::now();
    requests.wait_for(200)?;

    let attempts = requests.finish()?;
    ensure_answered(&attempts, drained, end, &["eu2"])?;
    ensure_answered(&attempts, back, Instant::now(), &[])?;
    let by_eu2 = |attempt: &&lb_tests::traffic::Attempt| {
        attempt.at >= back && attempt.answer.as_deref().is_ok_and(|name| name == "eu2")
    };
    ensure!(attempts.iter().filter(by_eu2).count() > 0, "it gets nothing after its return");
    for StreamReport { backend, bytes, lost } in streams.into_iter().map(Stream::finish) {
        ensure!(lost.is_none(), "a stream on {backend} was lost after {bytes} bytes: {lost:?}");
        ensure!(bytes > 10_000, "a stream on {backend} exchanged {bytes} bytes only");
    }
    Ok(())
}
