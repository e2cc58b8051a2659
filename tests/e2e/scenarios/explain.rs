//! `spillway explain` names the backend that a connection then reaches.

use anyhow::{Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel};
use lb_e2e::harness::Case;
use lb_tests::capture::Capture;
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{name_over_http, name_over_udp};

pub(crate) const CASES: &[Case] = &[
    Case::works("a_thousand_tuples_go_where_explain_says", a_thousand_tuples),
    Case::waits("explain_needs_no_daemon", explain_needs_no_daemon),
];

/// A random tuple is explained, then sent; who answers must be who was named. For the second half
/// one backend is dead, so alternates are explained too.
fn a_thousand_tuples(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "thousand", Health::QUICK)?;
    let mut random = Random::new(2);
    let capture = Capture::start(&fixture.fabric.router, "balancer", "")?;
    for number in 0..1000 {
        if number == 500 {
            let dead = fixture.number("eu2")?;
            fixture.servers[dead].kill()?;
            fixture.wait_up(&["eu2"])?;
        }
        explain_and_send(&fixture, &mut random, Tunnel::ALL[number % 4])?;
    }
    capture.stop()?.assert_faultless()
}

fn explain_needs_no_daemon(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "dead", Health::QUICK)?;
    fixture.balancer.kill()?;
    let mut random = Random::new(3);
    for number in 0..20 {
        explain_and_send(&fixture, &mut random, Tunnel::ALL[number % 4])?;
    }
    Ok(())
}

fn explain_and_send(fixture: &Fixture, random: &mut Random, tunnel: Tunnel) -> Result<()> {
    let from = random.client(tunnel.vip());
    let udp = random.below(2) == 0;
    let (protocol, to) =
        if udp { ("udp", tunnel.endpoint(ECHO)) } else { ("tcp", tunnel.endpoint(HTTP)) };
    let chosen = fixture.balancer.explain(from, to, protocol)?.backend()?;

    let client = &fixture.fabric.client;
    let name =
        if udp { name_over_udp(client, from, to)? } else { name_over_http(client, from, to)? };
    let named = fixture.at(chosen)?.name();
    ensure!(named == name, "{protocol} {from} to {to}: explain names {named}, {name} answered");
    ensure!(chosen == tunnel.end(fixture.at(chosen)?), "{tunnel:?}: tunnel to {chosen}");
    Ok(())
}
