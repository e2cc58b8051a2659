//! Balancers that know nothing of each other: what a fleet is compared with.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, FleetFixture, FleetPlan, HTTP, Health, Tunnel};
use lb_e2e::harness;
use lb_tests::daemon::scrape;
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::{Demand, Limit, Schedule};
use lb_tests::topology::{Cut, FleetFabric};
use lb_tests::traffic::{name_over_http, name_over_udp};

fn start(sandbox: &Sandbox, name: &str) -> Result<FleetFixture> {
    let settings = "http = \"127.0.0.1:9750\"";
    let plan = FleetPlan { settings, ..FleetPlan::STANDALONE };
    let mut fixture = FleetFixture::start(sandbox, name, plan)?;
    // Each reads its settings.
    for host in &fixture.fabric.balancers {
        scrape(&host.node).with_context(|| host.name().to_owned())?;
    }
    let text = fixture.configuration_with(Health::DEFAULT, "1000/s", Some(4))?;
    fixture.apply_to_each(&text)?;
    fixture.wait_up()?;
    Ok(fixture)
}

/// 70 % of a demand that there is room for comes to one balancer, which may take a quarter.
pub(super) fn equal_shares(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "shares")?;
    let length = Duration::from_secs(6);
    for (seed, capacity) in [(1, 1000.0), (2, 10_000.0)] {
        let limit = format!("{capacity}/s");
        let text = fixture.configuration_with(Health::DEFAULT, &limit, Some(4))?;
        fixture.apply_to_each(&text)?;
        let demand = Demand::new(length, 0.8 * capacity, &[7.0, 1.0, 1.0, 1.0]);
        let rates = fixture.load(Schedule::poisson(seed, &[demand]))?.finish()?;
        ensure!(rates.lost() == 0, "{} were lost\n{rates}", rates.lost());

        // The burst is through after a second. 56 of 80 come to the first, and 25 of them stay. The others may take three
        // times what comes, unless their sender sends much at once because it was held up.
        let share = rates.share_elsewhere(Duration::from_secs(1)..length);
        ensure!(share > 0.3, "{share:.3} elsewhere\n{rates}");
        let quarter = Limit { per_second: 0.25 * capacity, tick: 0.0 };
        for balancer in 0..4 {
            let own: Vec<_> =
                rates.connections.iter().filter(|it| it.balancer == balancer).collect();
            let admitted = quarter.admits(own.iter().map(|it| it.sent));
            let expected = admitted.iter().filter(|is_admitted| !**is_admitted).count();
            let far =
                own.iter().filter(|it| it.arrived.is_some_and(|(region, _)| region == 1)).count();
            ensure!(
                far.abs_diff(expected) as f64 <= 5.0 + 0.03 * own.len() as f64,
                "{far} of balancer {balancer} are elsewhere, {expected} by a limiter of a quarter\n{rates}"
            );
        }
        harness::note(format!(
            "equal shares of {limit}: {:.1} % sent elsewhere; a SYN {:?} late at most\n{rates}",
            share * 100.0,
            rates.late,
        ));
    }
    Ok(())
}

/// The router spreads flows over all balancers, and a flow gets the same backend at each.
pub(super) fn equal_choices(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "alike")?;
    for tunnel in [Tunnel::Ipip, Tunnel::Ip6Ip6] {
        let before = forwarded(&fixture)?;
        let mut random = Random::new(3);
        for _ in 0..80 {
            let from = spread_client(&mut random, tunnel);
            name_over_udp(&fixture.fabric.client, from, tunnel.endpoint(ECHO))?;
        }
        let after = forwarded(&fixture)?;
        let each: Vec<_> =
            after.iter().zip(&before).map(|(after, before)| after - before).collect();
        // Health checks are no packets of the program's.
        ensure!(each.iter().sum::<u64>() == 80 && each.iter().all(|it| *it >= 5), "{each:?}");

        let flows: Vec<_> = (0..16).map(|n| steered_client(0, tunnel, n)).collect();
        let mut answers: Vec<Vec<String>> = Vec::new();
        for balancer in 0..4 {
            fixture.fabric.steer(0, balancer)?;
            let before = forwarded(&fixture)?;
            let client = &fixture.fabric.client;
            let udp = |from: &SocketAddr| name_over_udp(client, *from, tunnel.endpoint(ECHO));
            let names = flows.iter().map(udp).collect::<Result<Vec<_>>>()?;
            let mut expected = before;
            expected[balancer] += flows.len() as u64;
            ensure!(forwarded(&fixture)? == expected, "not all came to balancer {balancer}");
            // A connection goes on elsewhere what a datagram began: the choice is the same.
            let http = name_over_http(client, flows[balancer], tunnel.endpoint(HTTP))?;
            ensure!(fixture.fabric.backends.iter().any(|it| it.name() == http), "{http}");
            answers.push(names);
        }
        fixture.fabric.steer(0, 0)?;
        ensure!(answers.iter().all(|names| *names == answers[0]), "{answers:?}");
        let first = &answers[0][0];
        ensure!(answers[0].iter().any(|name| name != first), "all flows are on {first}");
    }
    Ok(())
}

/// What is taken out of the routes gets nothing, what is cut off from peers goes on, and what lost power comes back.
pub(super) fn outages(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "outages")?;
    let tunnel = Tunnel::Ipip;
    let ask = |fixture: &FleetFixture, of: usize, number: u8| {
        let from = steered_client(of, tunnel, number);
        name_over_udp(&fixture.fabric.client, from, tunnel.endpoint(ECHO))
    };
    reach(&fixture, 0, 1, true)?;
    reach(&fixture, 2, 1, true)?;

    // Peers do not reach it, both ways, but clients do.
    for cut in [Cut::PeersAndEtcd, Cut::Peer(0)] {
        fixture.fabric.cut(1, cut)?;
        reach(&fixture, 0, 1, false)?;
        reach(&fixture, 1, 0, false)?;
        reach(&fixture, 2, 1, cut == Cut::Peer(0))?;
        ask(&fixture, 1, 0)?;
        fixture.fabric.heal(1)?;
        reach(&fixture, 0, 1, true)?;
    }

    // Without power nobody answers; out of the routes its clients are served by others.
    fixture.power_off(1)?;
    reach(&fixture, 0, 1, false)?;
    ensure!(ask(&fixture, 1, 1).is_err(), "a balancer without power forwards");
    fixture.fabric.take_out(1)?;
    (0..8).try_for_each(|number| ask(&fixture, 1, number).map(drop))?;
    fixture.power_on(1)?;
    fixture.wait_up()?;
    fixture.fabric.put_back(1)?;
    let before = forwarded(&fixture)?[1];
    (0..8).try_for_each(|number| ask(&fixture, 1, number).map(drop))?;
    ensure!(forwarded(&fixture)?[1] == before + 8);

    // The daemon alone: its packet program goes on.
    fixture.balancers[2].kill()?;
    ask(&fixture, 2, 0)?;
    fixture.balancers[2].start()?;
    until("the daemon counts again", PATIENCE, || {
        Ok((fixture.balancers[2].packets("transmitted")? > 0).then_some(()))
    })
}

/// Says whether a balancer's host reaches another one's.
fn reach(fixture: &FleetFixture, from: usize, to: usize, is_expected: bool) -> Result<()> {
    let [from, to] = [from, to].map(|balancer| &fixture.fabric.balancers[balancer]);
    for address in [IpAddr::from(to.v4), to.v6.into()] {
        let wait = if is_expected { "-W5" } else { "-W0.3" };
        let ping = from.node.run("ping", ["-c1", wait, &address.to_string()]);
        let is_reached = ping.is_ok();
        ensure!(is_reached == is_expected, "{} to {address}: {ping:?}", from.name());
    }
    Ok(())
}

/// Packets that each balancer sent on to a backend.
fn forwarded(fixture: &FleetFixture) -> Result<Vec<u64>> {
    fixture.balancers.iter().map(|balancer| balancer.packets("transmitted")).collect()
}

/// A client that the router may send to any balancer.
fn spread_client(random: &mut Random, tunnel: Tunnel) -> SocketAddr {
    let is_steered = |from: &SocketAddr| match from.ip() {
        IpAddr::V4(v4) => (65..71).contains(&v4.octets()[1]),
        IpAddr::V6(v6) => (1..7).contains(&v6.segments()[3]),
    };
    loop {
        let from = random.client(tunnel.vip());
        if !is_steered(&from) {
            return from;
        }
    }
}

/// A client that is sent to a chosen balancer.
fn steered_client(balancer: usize, tunnel: Tunnel, number: u8) -> SocketAddr {
    let address: IpAddr = if tunnel.vip().is_ipv4() {
        let [a, b, ..] = FleetFabric::clients_v4(balancer).0.octets();
        [a, b, 7, 1 + number].into()
    } else {
        let mut segments = FleetFabric::clients_v6(balancer).0.segments();
        segments[7] = 1 + u16::from(number);
        segments.into()
    };
    SocketAddr::new(address, 2000 + u16::from(number))
}
