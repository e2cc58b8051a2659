//! A full region hands new connections to the next one, and open connections stay where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::counter::GroupCounter;
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_maps::PinnedMaps;
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{Stream, name_over_udp};

/// New connections a second that the near region takes, and how many of them at once after a pause.
const RATE: f64 = 10.0;
const BURST: f64 = 10.0;

pub(crate) const CASES: &[Case] = &[
    Case::works("a_full_region_hands_over_and_open_connections_stay", connections),
    Case::waits("a_tracked_flow_stays_where_it_was_admitted", tracked_flows),
    Case::waits("a_member_over_its_limit_is_passed_over", members),
    Case::waits("an_isolated_pool_leaves_its_region_only_on_failure", isolation),
    Case::waits("a_preferred_region_is_asked_before_the_own", preference),
    Case::waits("the_last_resort_serves_where_no_backend_is_healthy", last_resort),
];

/// The fixture's configuration with more said of its first pool, and of that pool's UDP service.
fn apply(fixture: &Fixture, pool: &str, udp: &str) -> Result<()> {
    apply_all(fixture, pool, [("udp", udp)])
}

/// The fixture's configuration with more said of its first pool, and of that pool's services by their
/// protocols.
fn apply_all<const N: usize>(
    fixture: &Fixture,
    more: &str,
    services: [(&str, &str); N],
) -> Result<()> {
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let pool = "health_checks = [\"page\"]\n";
    ensure!(text.contains(pool), "{text}");
    let mut text = text.replacen(pool, &format!("{pool}{more}\n"), 1);
    for (protocol, more) in services {
        let service = format!("protocol = \"{protocol}\"\npool = \"v4\"\n");
        ensure!(text.contains(&service), "{text}");
        text = text.replace(&service, &format!("{service}{more}\n"));
    }
    fixture.balancer.apply(&text)?;
    Ok(())
}

fn group(capacity: &str) -> String {
    format!("[[pool.group]]\nregion = \"eu\"\n{capacity}")
}

fn start(sandbox: &Sandbox, name: &str, groups: &str, udp: &str) -> Result<Fixture> {
    let fixture = Fixture::idle(sandbox, name)?;
    apply(&fixture, groups, udp)?;
    fixture.wait_up(&[])?;
    Ok(fixture)
}

/// Names of who answers so many new streams, kept open.
fn open(fixture: &Fixture, streams: &mut Vec<Stream>, number: u64) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for _ in 0..number {
        let to = Tunnel::Ipip.endpoint(ECHO);
        let stream = Stream::open(&fixture.fabric.client, to, streams.len() as u64)?;
        names.push(stream.backend().to_owned());
        streams.push(stream);
    }
    Ok(names)
}

fn in_region(names: &[String], region: &str) -> usize {
    names.iter().filter(|name| name.starts_with(region)).count()
}

/// Says that what was admitted at once and in some time is what the limit admits.
fn ensure_within(near: usize, asked: Duration) -> Result<()> {
    let most = BURST + RATE * asked.as_secs_f64();
    ensure!((BURST as usize - 1..=most as usize).contains(&near), "{near} in {asked:?}");
    Ok(())
}

/// Counters of the first pool's groups, by place in its order.
fn counters(fixture: &Fixture) -> Result<Vec<GroupCounter>> {
    let maps = PinnedMaps::open(&fixture.balancer.bpffs)?;
    let service =
        maps.services()?.into_iter().find(|service| service.key.ip() == Tunnel::Ipip.vip());
    let pool = maps.pool_view(service.context("no service")?.pool)?.context("no pool")?;
    pool.groups.iter().map(|(_, group)| Ok(maps.group_connections(group.limiter)?)).collect()
}

fn connections(sandbox: &Sandbox) -> Result<()> {
    let limited = group("capacity = \"10/s\"");
    let mut fixture = start(sandbox, "spill", &limited, "")?;
    let mut streams = Vec::new();
    let begun = Instant::now();
    let names = open(&fixture, &mut streams, 40)?;
    let near = in_region(&names, "eu");
    ensure_within(near, begun.elapsed())?;
    ensure!(names[..9].iter().all(|name| name.starts_with("eu")), "{names:?}");
    ensure!(near + in_region(&names, "us") == 40, "{names:?}");
    let spilled = 40 - near as u64;
    let [eu, us] = counters(&fixture)?[..] else { anyhow::bail!("not two groups") };
    let expected = GroupCounter {
        offered: 40,
        admitted: near as u64,
        overflow_out: spilled,
        ..GroupCounter::default()
    };
    ensure!(eu == expected, "{eu:?}, expected {expected:?}");
    ensure!((us.admitted, us.overflow_in) == (spilled, spilled), "{us:?}");
    Stream::all_go_on(&streams)?;

    // A limit that is raised is felt with the next tick of the kernel's clock, and those that were
    // spilled stay where they are.
    apply(&fixture, &group("capacity = \"10000/s\""), "")?;
    until("the near region takes all again", PATIENCE, || {
        let names = open(&fixture, &mut streams, 10)?;
        Ok((in_region(&names, "eu") == 10).then_some(()))
    })?;
    Stream::all_go_on(&streams)?;

    // Drained by scaler: new ones go, open ones stay.
    apply(&fixture, &group("scaler = 0"), "")?;
    let names = open(&fixture, &mut streams, 10)?;
    ensure!(in_region(&names, "us") == 10, "{names:?}");
    Stream::all_go_on(&streams)?;

    // The daemon dead: the limit holds, and so do connections.
    apply(&fixture, &limited, "")?;
    fixture.balancer.kill()?;
    let begun = Instant::now();
    let names = open(&fixture, &mut streams, 30)?;
    ensure_within(in_region(&names, "eu"), begun.elapsed())?;
    Stream::all_go_on(&streams)?;
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}

fn tracked_flows(sandbox: &Sandbox) -> Result<()> {
    let tracked = "udp = \"tracked\"\nidle_timeout = \"30s\"";
    let fixture = start(sandbox, "flows", &group("capacity = \"10/s\""), tracked)?;
    let to = Tunnel::Ipip.endpoint(ECHO);
    let mut random = Random::new(5);
    let flows: BTreeSet<SocketAddr> = (0..40).map(|_| random.client(to.ip())).collect();
    let ask = || -> Result<BTreeMap<SocketAddr, String>> {
        let name =
            |from: &SocketAddr| Ok((*from, name_over_udp(&fixture.fabric.client, *from, to)?));
        flows.iter().map(name).collect()
    };
    let begun = Instant::now();
    let first = ask()?;
    let names: Vec<String> = first.values().cloned().collect();
    ensure_within(in_region(&names, "eu"), begun.elapsed())?;
    // Neither a pause, nor room in the near region, nor a drain moves them.
    ensure!(ask()? == first);
    apply(&fixture, &group("capacity = \"10000/s\""), tracked)?;
    ensure!(ask()? == first);
    apply(&fixture, &group("scaler = 0"), tracked)?;
    ensure!(ask()? == first);
    Ok(())
}

fn members(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::idle(sandbox, "members")?;
    let first = fixture.fabric.backends[fixture.number("eu1")?].v4;
    let address = format!("address = \"{first}\"\n");
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let limited = format!("{address}max_connection_rate = \"10/s\"\n");
    fixture.balancer.apply(&text.replacen(&address, &limited, 1))?;
    fixture.wait_up(&[])?;
    let mut streams = Vec::new();
    let begun = Instant::now();
    let names = open(&fixture, &mut streams, 90)?;
    ensure_within(in_region(&names, "eu1"), begun.elapsed())?;
    ensure!(in_region(&names, "eu") == 90, "the region is not full: {names:?}");
    Stream::all_go_on(&streams)?;

    // Drained: its connections stay, new ones go to the others.
    let drained = format!("{address}admin_state = \"drain\"\n");
    fixture.balancer.apply(&text.replacen(&address, &drained, 1))?;
    let names = open(&fixture, &mut streams, 30)?;
    ensure!(in_region(&names, "eu1") == 0, "{names:?}");
    Stream::all_go_on(&streams)
}

fn isolation(sandbox: &Sandbox) -> Result<()> {
    let pool = format!("isolation = \"on_failure\"\n{}", group("capacity = \"10/s\""));
    let mut fixture = start(sandbox, "isolated", &pool, "")?;
    let mut streams = Vec::new();
    let begun = Instant::now();
    let names = open(&fixture, &mut streams, 40)?;
    let within = (BURST + RATE * begun.elapsed().as_secs_f64()) as u64;
    let over = 40_u64.saturating_sub(within);
    ensure!(in_region(&names, "eu") == 40, "{names:?}");
    let [eu, us] = counters(&fixture)?[..] else { anyhow::bail!("not two groups") };
    ensure!((eu.offered, eu.admitted, eu.overflow_out, eu.refused) == (40, 40, 0, 0), "{eu:?}");
    ensure!(eu.over_capacity >= over && us == GroupCounter::default(), "{eu:?}, {us:?}");

    // Dropped instead of served beyond the limit: clients try again until there is room.
    apply_all(&fixture, &pool, [("tcp", "when_full = \"reject\"")])?;
    let (before, mut opened) = (eu, 0);
    let eu = until("one is refused", PATIENCE, || {
        let names = open(&fixture, &mut streams, 15)?;
        ensure!(in_region(&names, "eu") == 15, "{names:?}");
        opened += 15;
        let eu = counters(&fixture)?[0];
        Ok((eu.refused > 0).then_some(eu))
    })?;
    ensure!(
        eu.admitted - before.admitted == opened && eu.over_capacity == before.over_capacity,
        "{eu:?}"
    );
    ensure!(eu.offered - before.offered == opened + eu.refused, "{eu:?}");

    (0..3).try_for_each(|number| fixture.servers[number].kill())?;
    fixture.wait_up(&["eu1", "eu2", "eu3"])?;
    let names = open(&fixture, &mut Vec::new(), 10)?;
    ensure!(in_region(&names, "us") == 10, "{names:?}");
    Ok(())
}

fn preference(sandbox: &Sandbox) -> Result<()> {
    let fixture = start(sandbox, "preferred", "preferred_regions = [\"us\"]", "")?;
    let mut streams = Vec::new();
    let names = open(&fixture, &mut streams, 10)?;
    ensure!(in_region(&names, "us") == 10, "{names:?}");
    Stream::all_go_on(&streams)
}

/// The checks of all fail, though what they serve is there.
fn last_resort(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "panic", "panic_threshold_percent = 50", "")?;
    let all = ["eu1", "eu2", "eu3", "us1", "us2", "us3"];
    // Another region first: half of them is enough.
    (0..3).try_for_each(|number| fixture.servers[number].kill())?;
    fixture.wait_up(&all[..3])?;
    let names = open(&fixture, &mut Vec::new(), 10)?;
    ensure!(in_region(&names, "us") == 10, "{names:?}");

    (3..6).try_for_each(|number| fixture.servers[number].kill())?;
    fixture.wait_up(&all)?;
    let mut streams = Vec::new();
    let names = open(&fixture, &mut streams, 10)?;
    ensure!(in_region(&names, "eu") == 10, "{names:?}");
    Stream::all_go_on(&streams)?;

    (0..6).try_for_each(|number| fixture.servers[number].restart())?;
    fixture.wait_up(&[])?;
    let mut streams = Vec::new();
    let names = open(&fixture, &mut streams, 10)?;
    ensure!(in_region(&names, "eu") == 10, "{names:?}");
    Stream::all_go_on(&streams)
}
