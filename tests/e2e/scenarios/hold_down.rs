//! A backend that goes down again soon after it came back gets no new connections for a while, longer each time.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel, configuration};
use lb_e2e::harness::{self, Case};
use lb_tests::daemon::{
    HTTP_ADDRESS,
    answers::{self, reason},
    scrape,
};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::{Stream, ask_http};
use serde_json::Value;
use spillway_proto::v1::{BackendHistoryRequest, BackendState, BackendStatus, StateChange};

const VICTIM: &str = "eu2";
/// The first hold, seconds: long enough to look at a backend that is held, also on a busy machine.
const HOLD: f64 = 6.0;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_flapping_backend_is_held_down_longer_each_time", flapping),
    Case::waits("a_hold_and_its_row_go_on_over_a_restart", restarted),
];

fn flapping(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "held")?;
    fixture.balancer.stop()?;
    fixture.balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string()];
    fixture.balancer.start()?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let off = "hold_down = \"0s\"";
    ensure!(text.contains(off), "{text}");
    fixture.balancer.apply(&text.replace(off, &format!("hold_down = \"{HOLD}s\"")))?;
    fixture.wait_up(&[])?;
    let mut streams = Vec::new();
    for seed in 0..24 {
        streams.push(Stream::open(&fixture.fabric.client, Tunnel::Ipip.endpoint(ECHO), seed)?);
    }
    ensure!(streams.iter().any(|stream| stream.backend() == VICTIM), "no stream on {VICTIM}");

    fail_and_recover(&mut fixture)?;
    wait_for(&fixture, BackendState::Up, |_| true)?;
    for row in ["return", "return, 2 times in a row"] {
        fail_and_recover(&mut fixture)?;
        let text = format!("s more: went down within 300 s of its {row}");
        let held =
            wait_for(&fixture, BackendState::HeldDown, |backend| reason(backend).ends_with(&text))?;
        let left = hold_left(&held)?;
        ensure!(left > 0.0 && left <= 2.0 * HOLD && held.share.is_none(), "{held:?}");
        let (answered, still) = (answering(&fixture)?, backend(&fixture)?);
        ensure!(
            !answered.contains(VICTIM) || still.state() == BackendState::Up,
            "it is held: {answered:?}"
        );
        let metrics = scrape(&fixture.fabric.balancer)?;
        let in_pool = metrics.value("spillway_pool_backends_held_down", &[("pool", "v4")]);
        ensure!(
            in_pool == Some(1.0) || backend(&fixture)?.state() == BackendState::Up,
            "{in_pool:?}"
        );
        wait_for(&fixture, BackendState::Up, |backend| reason(backend) == "all checks pass")?;
        let answered = answering(&fixture)?;
        ensure!(answered.contains(VICTIM), "it is back: {answered:?}");
    }
    let total = scrape(&fixture.fabric.balancer)?.value("spillway_hold_downs_total", &[]);
    // The pool of the other IP version has the same backend, and may have seen less of it.
    ensure!(total.is_some_and(|total| (2.0..=4.0).contains(&total)), "{total:?}");

    // By the daemon's own times: at least the hold, and at most two looks of its loop more, or what a busy machine adds.
    let holds = holds(&fixture)?;
    harness::note(format!("holds of {HOLD} s, and twice that: {holds:.2?}"));
    let [second, first] = holds[..] else { anyhow::bail!("two holds: {holds:?}") };
    let slack = PATIENCE.as_secs_f64() / 2.0;
    ensure!((HOLD - 0.001..HOLD + slack).contains(&first), "{holds:?}");
    ensure!((2.0 * HOLD - 0.001..2.0 * HOLD + slack).contains(&second), "{holds:?}");

    // The operator lets it back in at once.
    fail_and_recover(&mut fixture)?;
    wait_for(&fixture, BackendState::HeldDown, |backend| {
        reason(backend).ends_with("3 times in a row")
    })?;
    let address = address(&fixture)?;
    fixture.balancer.cli(&["backend", "drain", &address])?;
    fixture.balancer.cli(&["backend", "undrain", &address])?;
    let freed = backend(&fixture)?;
    ensure!(freed.state() == BackendState::Up && freed.hold_left.is_none(), "{freed:?}");

    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}

/// `kill -9` in the middle of a hold, and an orderly stop in the middle of the next one.
fn restarted(sandbox: &Sandbox) -> Result<()> {
    const HOLD: f64 = 12.0;
    let mut fixture = Fixture::idle(sandbox, "holding")?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let off = "hold_down = \"0s\"";
    fixture.balancer.apply(&text.replace(off, &format!("hold_down = \"{HOLD}s\"")))?;
    fixture.wait_up(&[])?;
    fail_and_recover(&mut fixture)?;
    wait_for(&fixture, BackendState::Up, |_| true)?;
    fail_and_recover(&mut fixture)?;
    wait_for(&fixture, BackendState::HeldDown, |_| true)?;
    // When it was said is between two moments of ours.
    let (asked, held, began) = (Instant::now(), backend(&fixture)?, Instant::now());
    ensure!(held.state() == BackendState::HeldDown, "{held:?}");
    let whole = hold_left(&held)?;
    wait_until_saved(&fixture)?;
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    let least = began.elapsed().as_secs_f64();
    let held = backend(&fixture)?;
    let most = asked.elapsed().as_secs_f64();
    // By another clock of another process.
    let is_over = most + 1.0 > whole && held.state() == BackendState::Up;
    if !is_over {
        let left = hold_left(&held)?;
        ensure!(held.state() == BackendState::HeldDown, "{whole}, {most}: {held:?}");
        ensure!(left <= whole - least + 1.0, "{whole}, {least}: {held:?}");
        ensure!(left > whole - most - 1.0, "{whole}, {most}: {held:?}");
    }
    let answered = answering(&fixture)?;
    let still = backend(&fixture)?;
    ensure!(
        !answered.contains(VICTIM) || still.state() == BackendState::Up,
        "it is held: {answered:?}"
    );
    wait_for(&fixture, BackendState::Up, |backend| reason(backend) == "all checks pass")?;
    let took = began.elapsed().as_secs_f64();
    harness::note(format!("{whole:.1} s were left, {took:.1} s later it was up"));
    ensure!(asked.elapsed().as_secs_f64() >= whole - 0.1, "too early: {took} of {whole}");
    ensure!(took < whole + PATIENCE.as_secs_f64() / 2.0, "too late: {took} of {whole}");

    let row =
        |row: u32| move |it: &BackendStatus| reason(it).ends_with(&format!("{row} times in a row"));
    fail_and_recover(&mut fixture)?;
    wait_for(&fixture, BackendState::HeldDown, row(2))?;
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    let held = backend(&fixture)?;
    ensure!(held.state() == BackendState::HeldDown && row(2)(&held), "{held:?}");
    fail_and_recover(&mut fixture)?;
    wait_for(&fixture, BackendState::HeldDown, row(3))?;
    Ok(())
}

/// The file of the daemon has the hold.
fn wait_until_saved(fixture: &Fixture) -> Result<()> {
    let mut file = fixture.balancer.socket.clone().into_os_string();
    file.push(".health-state");
    let (file, address) = (PathBuf::from(file), address(fixture)?);
    until("the hold is in the file", PATIENCE, || {
        let Ok(text) = fs::read(&file) else { return Ok(None) };
        let state: Value = serde_json::from_slice(&text).context("health state")?;
        let holds = state["hold_downs"].as_array().context("no holds")?;
        let is_it = |it: &Value| {
            it["pool"] == "v4"
                && it["address"] == address
                && it["hold_down"]["phase"]["held"].is_object()
        };
        Ok(holds.iter().any(is_it).then_some(()))
    })
}

/// How much longer it is held, seconds.
fn hold_left(backend: &BackendStatus) -> Result<f64> {
    let left = backend.hold_left.with_context(|| format!("it is not held: {backend:?}"))?;
    Ok(Duration::try_from(left)?.as_secs_f64())
}

/// Its server fails until that is seen, and serves again.
fn fail_and_recover(fixture: &mut Fixture) -> Result<()> {
    let victim = fixture.number(VICTIM)?;
    fixture.servers[victim].be_sick(true)?;
    wait_for(fixture, BackendState::Unhealthy, |_| true)?;
    fixture.servers[victim].be_sick(false)
}

fn address(fixture: &Fixture) -> Result<String> {
    Ok(fixture.fabric.backends[fixture.number(VICTIM)?].v4.to_string())
}

fn backend(fixture: &Fixture) -> Result<BackendStatus> {
    answers::backend(&fixture.balancer.status()?, &address(fixture)?).cloned()
}

fn wait_for(
    fixture: &Fixture,
    state: BackendState,
    is: impl Fn(&BackendStatus) -> bool,
) -> Result<BackendStatus> {
    until(&format!("{VICTIM} is {state:?}"), PATIENCE, || {
        let backend = backend(fixture)?;
        Ok((backend.state() == state && is(&backend)).then_some(backend))
    })
}

/// Who answers new connections.
fn answering(fixture: &Fixture) -> Result<BTreeSet<String>> {
    let to = Tunnel::Ipip.endpoint(HTTP);
    fixture.fabric.client.enter(|| {
        (0..60).map(|_| ask_http(SocketAddr::from((Fabric::CLIENT_V4, 0)), to)).collect()
    })?
}

/// Lengths of its holds by its history, the newest first, seconds.
fn holds(fixture: &Fixture) -> Result<Vec<f64>> {
    let request = BackendHistoryRequest { pool: "v4".into(), address: address(fixture)? };
    let client = fixture.balancer.client()?;
    let history = client.call(async |mut c| c.backend_history(request).await)?;
    let changes = &history.backends.first().context("no history")?.changes;
    let at = |change: &StateChange| -> Result<f64> {
        let at = change.at.as_ref().context("no time")?;
        Ok(at.seconds as f64 + f64::from(at.nanos) / 1e9)
    };
    let pairs = changes.windows(2).filter(|pair| pair[1].state() == BackendState::HeldDown);
    pairs.map(|pair| Ok(at(&pair[0])? - at(&pair[1])?)).collect()
}
