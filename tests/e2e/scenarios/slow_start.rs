//! A backend that returns gets its share of new connections bit by bit.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel, configuration};
use lb_e2e::harness::{self, Case};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::{Stream, ask_http};
use spillway_proto::v1::BackendState;

const VICTIM: &str = "eu2";
const SLOW_START: Duration = Duration::from_secs(15);
/// Connections of one look, a third of which is the victim's whole share.
const LOOK: usize = 150;
/// Of a look, four standard deviations less than a third: whose share is whole has more.
const ENOUGH: usize = 26;

pub(crate) const CASES: &[Case] =
    &[Case::works("a_backend_that_comes_back_has_its_share_bit_by_bit", slow_start)];

/// Connections of so many that the victim answers.
fn share(fixture: &Fixture) -> Result<usize> {
    let to = Tunnel::Ipip.endpoint(HTTP);
    fixture.fabric.client.enter(|| {
        let mut answered = 0;
        for _ in 0..LOOK {
            let name = ask_http(SocketAddr::from((Fabric::CLIENT_V4, 0)), to)?;
            answered += usize::from(name == VICTIM);
        }
        Ok(answered)
    })?
}

fn slow_start(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "shares")?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let seconds = SLOW_START.as_secs();
    let pool = "health_checks = [\"page\"]\n";
    ensure!(text.contains(pool), "{text}");
    fixture.balancer.apply(&text.replace(pool, &format!("{pool}slow_start = \"{seconds}s\"\n")))?;
    fixture.wait_up(&[])?;
    let began = share(&fixture)?;
    ensure!(began > ENOUGH, "who comes up together shares alike: {began} of {LOOK}");
    // Another daemon takes all who are up for old.
    fixture.balancer.stop()?;
    fixture.balancer.start()?;

    let victim = fixture.number(VICTIM)?;
    fixture.servers[victim].be_sick(true)?;
    let address = fixture.fabric.backends[victim].v4.to_string();
    until(&format!("{VICTIM} is unhealthy"), PATIENCE, || {
        let status = fixture.balancer.status()?;
        let mut of_address = status.backends.iter().filter(|it| it.address == address);
        Ok(of_address.any(|it| it.state() == BackendState::Unhealthy).then_some(()))
    })?;
    fixture.servers[victim].be_sick(false)?;
    let back = Instant::now();
    fixture.wait_up(&[])?;
    let first = share(&fixture)?;
    // At the end of that look it had at most this part of a third; four deviations above it, and one
    // for a look of the daemon a second later.
    let part = (back.elapsed().as_secs_f64() / SLOW_START.as_secs_f64()).clamp(0.05, 1.0);
    let most = LOOK as f64 / 3.0 * part;
    let most = most + 4.0 * most.sqrt() + 1.0;
    ensure!((first as f64) < most, "{first} of {LOOK} at the begin, at most {most:.0}");

    let streams = (0..30)
        .map(|seed| Stream::open(&fixture.fabric.client, Tunnel::Ipip.endpoint(ECHO), seed))
        .collect::<Result<Vec<_>>>()?;
    let mut looks = vec![first];
    until("it has its whole share", SLOW_START + 2 * PATIENCE, || {
        looks.push(share(&fixture)?);
        let is_over = back.elapsed() > SLOW_START;
        Ok((is_over && looks.last() > Some(&ENOUGH)).then_some(()))
    })?;
    // Those that were its own by the table and went elsewhere stay there.
    Stream::all_go_on(&streams)?;
    let some: Vec<_> = looks.iter().step_by(looks.len() / 12 + 1).collect();
    harness::note(format!("of {LOOK} connections at each look after its return: {some:?}"));
    Stream::finish_all(streams)
}
