//! A balancer whose IPv4 tunnels come from a prefix: each connection has its own outer source, so that cards and networks
//! spread what goes to one backend.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::capture::{Capture, Frames};
use lb_tests::daemon::{
    Binaries, Receiver, answers,
    printed::{self, Diagnosis, Finding, ReceiverStats},
};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::Curl;

pub(crate) const CASES: &[Case] = &[
    Case::waits("each_connection_has_its_source", each_connection_has_its_source),
    Case::waits("a_prefix_has_no_other_owner", a_prefix_has_no_other_owner),
];

const PREFIX: &str = "10.64.0.0/24";
const CONNECTIONS: usize = 40;

fn each_connection_has_its_source(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = with_prefix(sandbox, "prefix")?;
    // Checks through tunnels come from the prefix too: receivers allow nothing else.
    let document = configuration(&fixture.fabric, Health::QUICK).text();
    let name = "[[health_check]]\nname = \"page\"\n";
    fixture.balancer.apply(&document.replace(name, &format!("{name}via = \"tunnel\"\n")))?;
    fixture.wait_up(&[])?;

    // In IP alone, IPv4 and IPv6 packets.
    for tunnel in [Tunnel::Ipip, Tunnel::Ip6In4] {
        let frames = connections(&fixture, tunnel)?;
        let seen = in_ip(&frames, tunnel)?;
        spread(&seen).with_context(|| format!("{tunnel:?}"))?;
    }

    // In GUE, of a client that stays at one backend.
    fixture.balancer.cli(&["pool", "update", "v4", "--encapsulation", "gue"])?;
    fixture.balancer.cli(&["service", "update", "ipip-tcp-80", "--affinity", "client"])?;
    fixture.wait_up(&[])?;
    let before = fixture.logged(Tunnel::Ipip.vip())?;
    let frames = connections(&fixture, Tunnel::Ipip)?;
    let logged = fixture.logged(Tunnel::Ipip.vip())?;
    // The checks of 300 ms are logged as well, but not by so many.
    let by_one = logged.iter().zip(&before).filter(|(now, then)| *now - *then >= 40).count();
    ensure!(by_one == 1, "one backend serves the client: {before:?}, {logged:?}");
    let [sources, ports] = in_gue(&frames)?;
    spread(&sources).context("in GUE")?;
    let own: BTreeSet<_> = ports.values().flatten().collect();
    ensure!(own.len() >= CONNECTIONS - 3, "{} source ports", own.len());
    ensure!(ports.values().all(|of| of.len() == 1), "a connection has one port: {ports:?}");

    a_receiver_that_does_not_allow_it(sandbox, &mut fixture, &logged, &before)?;
    the_doctor_sees_it(&fixture)
}

/// What a receiver does not allow stays in its tunnel, and is counted.
fn a_receiver_that_does_not_allow_it(
    sandbox: &Sandbox,
    fixture: &mut Fixture,
    logged: &[u64],
    before: &[u64],
) -> Result<()> {
    let most = logged.iter().zip(before).map(|(now, then)| now - then).enumerate();
    let (number, _) = most.max_by_key(|(_, requests)| *requests).context("no backend")?;
    // Without checks through the tunnel the balancer does not know.
    fixture.balancer.apply(&configuration(&fixture.fabric, Health::QUICK).text())?;
    fixture.balancer.cli(&["service", "update", "ipip-tcp-80", "--affinity", "client"])?;
    fixture.wait_up(&[])?;
    restart_receiver(sandbox, fixture, number, &["--allow-source", "10.0.0.2"])?;
    let client = Curl::new(&fixture.fabric.client);
    // The program of the receiver before runs on until the new one has its lists.
    until("packets of no allowed source stay out", PATIENCE, || {
        let answer = client.timed(&Tunnel::Ipip.url(), Duration::from_secs(1))?;
        Ok((answer.status == 0).then_some(()))
    })?;
    let counted = || -> Result<u64> {
        let node = &fixture.fabric.backends[number].node;
        let bpffs = sandbox.bpffs(node.namespace())?.display().to_string();
        let spillway = Binaries::find()?.spillway;
        let arguments = ["--bpffs", &bpffs, "-o", "json", "stats", "--component", "receiver"];
        let stats: ReceiverStats = printed::read(node.run(spillway, arguments)?.as_bytes())?;
        let row = stats.verdicts.iter().find(|row| row.verdict == "source_not_allowed");
        Ok(row.map_or(0, |row| row.packets))
    };
    until("it is counted", PATIENCE, || Ok((counted()? > 0).then_some(())))?;
    // At tc's hook too the header is off before the reverse path filter.
    let more = ["--allow-source", PREFIX, "--hook", "tc"];
    restart_receiver(sandbox, fixture, number, &more)?;
    until("packets of the prefix arrive", PATIENCE, || {
        let answer = client.timed(&Tunnel::Ipip.url(), Duration::from_secs(1))?;
        Ok((answer.status == 200).then_some(()))
    })
}

/// The check of the prefix finds it in order, until its routes are gone: the balancer's own, then that of a router with a
/// reverse path filter.
fn the_doctor_sees_it(fixture: &Fixture) -> Result<()> {
    let now = findings(fixture, "source_prefix")?;
    let passes = "no reverse path filter drops its packets on the way to 6 backends";
    ensure!(levels(&now) == [("ok", "is local to this host"), ("ok", passes)], "{now:?}");

    let Fabric { router, balancer, .. } = &fixture.fabric;
    balancer.ip(&format!("route del local {PREFIX} dev lo"))?;
    let now = findings(fixture, "source_prefix")?;
    let missing = ("warning", "is not local to this host");
    ensure!(levels(&now) == [missing, ("ok", passes)], "{now:?}");
    let subject = format!("local route to {PREFIX}");
    let condition = |is_there: bool| {
        until("status says the same", PATIENCE, || {
            let found = answers::condition(&fixture.balancer.status()?, &subject).is_some();
            Ok((found == is_there).then_some(()))
        })
    };
    condition(true)?;
    // Two halves are the whole; one is not.
    let halves = ["10.64.0.0/25", "10.64.0.128/25"];
    balancer.ip(&format!("route add local {} dev lo", halves[0]))?;
    balancer.ip(&format!("route add local {} dev lo", halves[1]))?;
    condition(false)?;
    balancer.ip(&format!("route del local {} dev lo", halves[1]))?;
    condition(true)?;
    balancer.ip(&format!("route del local {} dev lo", halves[0]))?;

    router.sysctls(&[("net.ipv4.conf.balancer.rp_filter", "1")])?;
    router.ip(&format!("route del {PREFIX}"))?;
    let now = findings(fixture, "source_prefix")?;
    ensure!(levels(&now) == [missing], "{now:?}");
    let now = findings(fixture, "tunnels")?;
    let dropped = now.iter().find(|finding| finding.level == "problem").context("a problem")?;
    let words = format!("drops packets from {PREFIX}");
    ensure!(dropped.why.contains(&words), "{dropped:?}");
    Ok(())
}

/// What the doctor finds in a check.
fn findings(fixture: &Fixture, check: &str) -> Result<Vec<Finding>> {
    let output = fixture.balancer.try_cli(&["-o", "json", "doctor"], None)?;
    Ok(printed::read::<Diagnosis>(&output.stdout)?.of_check(check).cloned().collect())
}

fn levels(findings: &[Finding]) -> Vec<(&str, &str)> {
    findings.iter().map(|it| (&*it.level, &*it.found)).collect()
}

fn a_prefix_has_no_other_owner(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = with_prefix(sandbox, "clash")?;
    let document = configuration(&fixture.fabric, Health::QUICK).text();
    let vip = Tunnel::Ipip.vip().to_string();
    let first = fixture.fabric.backends[0].v4.to_string();
    for (address, why) in [
        (vip, "service ipip-tcp-7: 10.64.0.9 is in this balancer's tunnel-source-prefix"),
        (first.clone(), "pool v4: 10.64.0.9 is in this balancer's tunnel-source-prefix"),
    ] {
        let text = document.replace(&format!("\"{address}\""), "\"10.64.0.9\"");
        let error = fixture.balancer.apply(&text).err().context("it is refused")?.to_string();
        ensure!(error.contains(&format!("{why} {PREFIX}")), "{error}");
    }
    fixture.balancer.apply(&document)?;

    // Another prefix, of a backend that is there already: the daemon says so, and goes on.
    fixture.balancer.stop()?;
    fixture.balancer.more = vec!["--tunnel-source-prefix".into(), "10.1.0.0/28".into()];
    fixture.balancer.start()?;
    let status = fixture.balancer.status()?;
    let expected =
        format!("pool v4: {first} is in this balancer's tunnel-source-prefix 10.1.0.0/28");
    let cause = answers::condition(&status, "tunnel-source-prefix 10.1.0.0/28");
    let cause = cause.with_context(|| format!("{status:?}"))?;
    ensure!(cause.starts_with(&expected), "{cause}");
    Ok(())
}

/// A balancer that was told nothing yet, with a prefix that is routed to it, and receivers that allow nothing else of
/// IPv4. On their hosts a reverse path filter would drop packets of the prefix, if it saw any: a receiver is before it.
fn with_prefix(sandbox: &Sandbox, name: &str) -> Result<Fixture> {
    let mut fixture = Fixture::idle(sandbox, name)?;
    let Fabric { router, balancer, backends, .. } = &fixture.fabric;
    router.ip(&format!("route add {PREFIX} via {}", Fabric::BALANCER_V4))?;
    balancer.ip(&format!("route add local {PREFIX} dev lo"))?;
    for backend in backends {
        backend.node.sysctls(&[
            ("net.ipv4.conf.all.rp_filter", "1"),
            ("net.ipv4.conf.eth0.rp_filter", "1"),
        ])?;
        backend.node.ip(&format!("route add blackhole {PREFIX}"))?;
    }
    for number in 0..fixture.receivers.len() {
        restart_receiver(sandbox, &mut fixture, number, &["--allow-source", PREFIX])?;
    }
    fixture.balancer.stop()?;
    fixture.balancer.more = vec!["--tunnel-source-prefix".into(), PREFIX.into()];
    fixture.balancer.start()?;
    Ok(fixture)
}

fn restart_receiver(
    sandbox: &Sandbox,
    fixture: &mut Fixture,
    number: usize,
    more: &[&str],
) -> Result<()> {
    let binaries = Binaries::find()?;
    let vips = Tunnel::ALL.map(Tunnel::vip);
    let node = fixture.fabric.backends[number].node.clone();
    let v6 = [Fabric::BALANCER_V6.into()];
    fixture.receivers[number].running.kill()?;
    fixture.receivers[number] = Receiver::start_with(sandbox, &binaries, &node, &v6, &vips, more)?;
    Ok(())
}

/// What the router sees of so many connections of the client, one after the other.
fn connections(fixture: &Fixture, tunnel: Tunnel) -> Result<Frames> {
    // Frames of the balancer come in there.
    let capture = Capture::start(&fixture.fabric.router, "balancer", "")?;
    let client = Curl::new(&fixture.fabric.client);
    for _ in 0..CONNECTIONS {
        client.get(&tunnel.url())?;
    }
    let frames = capture.stop()?;
    frames.assert_faultless()?;
    Ok(frames)
}

/// What each connection of the client has, by its port.
type ByConnection = BTreeMap<u16, BTreeSet<String>>;

/// Outer sources of connections in IP alone. Checks have an address of the balancer inside.
fn in_ip(frames: &Frames, tunnel: Tunnel) -> Result<ByConnection> {
    let (v4, v6) = (Fabric::CLIENT_V4, Fabric::CLIENT_V6);
    let filter = format!("{} && tcp && (ip.src == {v4} || ipv6.src == {v6})", tunnel.filter());
    let mut seen = ByConnection::new();
    for [port, sources] in frames.fields(&filter, ["tcp.srcport", "ip.src"])? {
        let outer = sources.split(',').next().unwrap_or_default().to_owned();
        seen.entry(port.parse().with_context(|| port.clone())?).or_default().insert(outer);
    }
    Ok(seen)
}

/// Outer sources and source ports of connections in GUE, behind 14, 20, 8 and 4 bytes; tshark shows these as data.
fn in_gue(frames: &Frames) -> Result<[ByConnection; 2]> {
    let mut seen = [ByConnection::new(), ByConnection::new()];
    for frame in frames.bytes("udp.dstport == 6080")? {
        let (outer, inner) = (&frame[14..], &frame[46..]);
        let number = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
        if inner[0] != 0x45 || inner[12..16] != Fabric::CLIENT_V4.octets() {
            continue;
        }
        let source = Ipv4Addr::new(outer[12], outer[13], outer[14], outer[15]).to_string();
        let values = [source, number(&outer[20..]).to_string()];
        for (seen, value) in seen.iter_mut().zip(values) {
            seen.entry(number(&inner[20..])).or_default().insert(value);
        }
    }
    Ok(seen)
}

/// Checks that each connection has one source of the prefix, and that they have many.
fn spread(seen: &ByConnection) -> Result<()> {
    ensure!(seen.len() == CONNECTIONS, "{} connections were seen", seen.len());
    let mut all = BTreeSet::new();
    for (port, sources) in seen {
        ensure!(sources.len() == 1, "port {port}: {sources:?}");
        for source in sources {
            let address: Ipv4Addr = source.parse().with_context(|| source.clone())?;
            ensure!(address.octets()[..3] == [10, 64, 0], "port {port}: {address}");
            all.insert(IpAddr::from(address));
        }
    }
    // Of 256 so many draws leave fewer than 25 once in a million runs.
    ensure!(all.len() >= 25, "{} sources", all.len());
    Ok(())
}
