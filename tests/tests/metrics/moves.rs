//! What moves which metric. One that nobody moves turns the test red.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::names;
use lb_daemon::dataplane::{Pins, Role};
use lb_daemon::metrics;
use lb_tests::daemon::scrape;
use lb_tests::exposition::Exposition;
use lb_tests::process::until;
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::ECHO;
use lb_tests::topology::Fabric;

use crate::farm::{FAR, Farm, OVER, STRICT};

/// How long something may take that the daemon does by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// What moves which metrics, by their names without prefix and suffix.
const MOVES: &[(&str, &[&str])] = &[
    (
        "a configuration is applied",
        &[
            "service",
            "service_backends",
            "service_backends_up",
            "backend_next_hop_resolved",
            "backend_share_ratio",
            "group_limit_connections_per_second",
            "group_capacity_connections_per_second",
            "group_configured_connections_per_second",
            "group_scaler_ratio",
            "group_backends",
            "group_backends_up",
            "balancers",
            "generation",
            "generation_applied_timestamp_seconds",
            "packet_path_published_timestamp_seconds",
            "packet_path_checksum",
            "publish_duration_seconds",
            "probes",
            "probe_lateness_seconds",
        ],
    ),
    ("backends say how they are", &["backend_share_ratio", "backend_utilisation_ratio"]),
    (
        "datagrams come",
        &[
            "verdict_packets",
            "verdict_bytes",
            "service_packets",
            "service_bytes",
            "backend_packets",
            "backend_bytes",
        ],
    ),
    (
        "SYNs come, more than are taken",
        &[
            "service_connections",
            "backend_connections",
            "group_connections_offered",
            "group_connections_admitted",
            "group_connections_spilled_in",
            "group_connections_spilled_out",
            "group_connections_refused",
            "group_connections_overrun",
            "pool_gate_open",
        ],
    ),
    ("connections are open away from home", &["flow_table_entries", "events"]),
    ("a group is asked for more than it takes", &["group_missing_backends"]),
    ("a listener closes", &["backend_up", "check_failing"]),
    ("another configuration is applied", &["backend_dead", "pool_settling", "group_out_of_home"]),
    (
        "the daemon starts anew, with a file that is not there",
        &["start_timestamp_seconds", "troubles"],
    ),
    ("the kernel refuses a write", &["packet_path_behind", "publish_failures"]),
    ("the program is taken off", &["interface_attached"]),
];

/// What is left for new exceptions, which moves when the daemon gets round to it.
const BUDGET: &str = "spillway_exception_budget_insertions_per_second";

/// What stays as it is, and is compared with what it must be.
const FIXED: &[&str] = &["build", "flow_table_room_entries"];

/// The scrapes before and after something, which must have moved what is said to be moved by it.
struct Watch<'f> {
    farm: &'f Farm,
    before: Exposition,
    moved: BTreeSet<String>,
}

pub(crate) fn every_metric(sandbox: &Sandbox) -> Result<()> {
    let mut farm = Farm::start(sandbox, "metrics")?;
    let mut moved = BTreeSet::new();
    let first = scrape(&farm.fabric.balancer)?;
    fixed(&first)?;
    let budget = |of: &Exposition| of.value(BUDGET, &[("budget", "exceptions"), ("ip", "ipv4")]);
    let full = budget(&first);

    let mut watch = Watch { farm: &farm, before: first, moved: BTreeSet::new() };
    configured(&mut watch)?;
    said(&mut watch)?;
    datagrams(&mut watch)?;
    syns(&mut watch)?;
    away_from_home(&mut watch)?;
    missing(&mut watch)?;
    moved.append(&mut watch.moved);
    let before = watch.before;

    farm.echoes[0] = None;
    let mut watch = Watch { farm: &farm, before, moved: BTreeSet::new() };
    let labels = [("pool", "even"), ("backend", "10.1.0.11"), ("region", "eu")];
    watch
        .until("a listener closes", |now| now.value("spillway_backend_up", &labels) == Some(0.0))?;
    let dead = watch.before.value("spillway_backend_dead", &labels);
    ensure!(dead == Some(0.0), "a host that refuses is not dead");
    let check = [("pool", "even"), ("backend", "10.1.0.11"), ("check", "open")];
    let failing = watch.before.samples("spillway_check_failing").count();
    ensure!(watch.before.value("spillway_check_failing", &check) == Some(1.0) && failing == 1);
    let failed = [("result", "failed")];
    ensure!(watch.before.value("spillway_probes_total", &failed) >= Some(3.0), "fall is 3");
    reconfigured(&mut watch)?;
    moved.append(&mut watch.moved);
    let before = watch.before;

    farm.balancer.stop()?;
    farm.balancer.more.extend(["--apply".into(), "/nowhere.toml".into()]);
    farm.balancer.start()?;
    let mut watch = Watch { farm: &farm, before, moved: BTreeSet::new() };
    let started = |of: &Exposition| of.value("spillway_start_timestamp_seconds", &[]);
    let was = started(&watch.before);
    let packets = total(&watch.before, "spillway_service_packets_total");
    watch.until("the daemon starts anew, with a file that is not there", |now| {
        // What is held leaves less for others. When that was first counted is nobody's business: maybe
        // by the daemon before.
        started(now) > was && budget(now) < full && now.value("spillway_troubles", &[]) == Some(1.0)
    })?;
    watch.moved.insert(BUDGET.into());
    ensure!(total(&watch.before, "spillway_service_packets_total") >= packets, "they count on");
    refused(&mut watch)?;
    taken_off(&mut watch)?;
    moved.append(&mut watch.moved);

    let known: BTreeSet<String> = metrics::ALL.iter().map(|it| it.family()).collect();
    let fixed = FIXED.iter().map(|name| format!("spillway_{name}"));
    let looked_at: BTreeSet<String> = moved.into_iter().chain(fixed).collect();
    ensure!(known == looked_at, "not moved: {:?}", known.difference(&looked_at));
    let served: BTreeSet<String> = watch.before.families.keys().cloned().collect();
    ensure!(known == served, "not served: {:?}", known.symmetric_difference(&served));
    Ok(())
}

impl Watch<'_> {
    /// Waits until a scrape shows something, which must have moved what is listed for its cause.
    fn until(&mut self, cause: &str, shows: impl Fn(&Exposition) -> bool) -> Result<()> {
        let now = until(cause, PATIENCE, || {
            let now = scrape(&self.farm.fabric.balancer)?;
            Ok(shows(&now).then_some(now))
        })?;
        let listed = MOVES.iter().find(|(name, _)| *name == cause).context("not in the list")?;
        for name in listed.1 {
            let name = format!("spillway_{name}");
            let family = |of: &Exposition| of.families.get(&name).cloned();
            ensure!(family(&now).is_some(), "{name} is not served");
            ensure!(family(&now) != family(&self.before), "{name} does not move when {cause}");
            self.moved.insert(name);
        }
        self.before = now;
        Ok(())
    }

    /// How much a counter rose since a scrape.
    fn rose(&self, since: &Exposition, name: &str, labels: &[(&str, &str)]) -> f64 {
        let value = |of: &Exposition| of.value(name, labels).unwrap_or_default();
        value(&self.before) - value(since)
    }
}

fn total(of: &Exposition, name: &str) -> f64 {
    of.value(name, &[]).unwrap_or_default()
}

fn fixed(first: &Exposition) -> Result<()> {
    let builds: Vec<_> = first.samples("spillway_build_info").collect();
    ensure!(builds.len() == 1, "{builds:?}");
    let [(labels, _)] = builds[..] else { unreachable!() };
    ensure!((labels["role"].as_str(), labels["region"].as_str()) == ("balancer", "eu"));
    ensure!(labels["version"] == env!("CARGO_PKG_VERSION") && labels["program"].len() == 16);
    let room = |table, ip| {
        first.value("spillway_flow_table_room_entries", &[("table", table), ("ip", ip)])
    };
    // docs/operations.md: what the tables hold unless said otherwise.
    for (table, ip, wanted) in [
        ("exceptions", "ipv4", 524_288.0),
        ("exceptions", "ipv6", 131_072.0),
        ("udp_flows", "ipv4", 262_144.0),
        ("udp_flows", "ipv6", 65_536.0),
        ("records", "both", 524_288.0),
    ] {
        ensure!(room(table, ip) == Some(wanted), "{table} {ip}: {:?}", room(table, ip));
    }
    ensure!(first.value("spillway_generation", &[]) == Some(0.0));
    ensure!(first.value("spillway_packet_path_behind", &[]) == Some(0.0));
    Ok(())
}

fn configured(watch: &mut Watch<'_>) -> Result<()> {
    watch.farm.balancer.apply(&watch.farm.configuration(false))?;
    watch.until("a configuration is applied", |now| {
        let up = now.value("spillway_backend_up", &[]);
        let hops = now.value("spillway_backend_next_hop_resolved", &[]);
        // Six in each of three pools, three in two; six hosts.
        (up, hops) == (Some(24.0), Some(6.0))
    })?;
    let now = &watch.before;
    let of = |pool, region| [("pool", pool), ("region", region)];
    for (name, labels, wanted) in [
        ("generation", vec![], 1.0),
        ("balancers", vec![], 2.0),
        ("service_backends", vec![("service", "datagrams")], 6.0),
        ("service_backends_up", vec![("service", "datagrams")], 6.0),
        ("group_backends", of("even", "us").into(), 3.0),
        ("group_scaler_ratio", of("far", "eu").into(), 0.0),
        ("group_scaler_ratio", of("even", "eu").into(), 1.0),
        ("group_limit_connections_per_second", of("strict", "eu").into(), 0.05),
        ("group_capacity_connections_per_second", of("strict", "eu").into(), 0.1),
        ("group_configured_connections_per_second", of("strict", "eu").into(), 0.1),
        ("group_limit_connections_per_second", of("far", "eu").into(), 0.0),
    ] {
        let value = now.value(&format!("spillway_{name}"), &labels);
        let near = value.is_some_and(|value| (value - wanted).abs() < 1e-6);
        ensure!(near, "{name} {labels:?}: {value:?}, not {wanted}");
    }
    let unlimited = now.value("spillway_group_limit_connections_per_second", &of("even", "eu"));
    ensure!(unlimited.is_none(), "there is no limit to show");
    Ok(())
}

/// What backends say is shown, and a share that one asks for is its own.
fn said(watch: &mut Watch<'_>) -> Result<()> {
    let of = |backend| [("pool", "even"), ("backend", backend), ("region", "eu")];
    let (share, utilisation) =
        ("spillway_backend_share_ratio", "spillway_backend_utilisation_ratio");
    ensure!(watch.before.value(utilisation, &[]).is_none(), "nobody has said one");
    ensure!(
        watch.before.value(share, &of("10.1.0.11")) == Some(1.0),
        "it takes all that is its own"
    );
    // Too little to do for shares to follow it.
    watch.farm.agents[0].say("60% cpu_utilization=0.05");
    watch.until("backends say how they are", |now| {
        // 153 of 255.
        now.value(share, &of("10.1.0.11")) == Some(0.6)
            && now.value(utilisation, &of("10.1.0.11")) == Some(0.05)
    })?;
    ensure!(watch.before.value(share, &of("10.1.0.12")) == Some(1.0), "another's is not touched");
    watch.farm.agents[0].say("100%");
    until("it has its whole share again", PATIENCE, || {
        let now = scrape(&watch.farm.fabric.balancer)?;
        Ok((now.value(share, &of("10.1.0.11")) == Some(1.0)).then_some(()))
    })
}

/// Forty datagrams of a known size are forty packets of a known size everywhere.
fn datagrams(watch: &mut Watch<'_>) -> Result<()> {
    const NUMBER: f64 = 40.0;
    // Ethernet, IPv4, UDP, payload.
    const BYTES: f64 = NUMBER * (14 + 20 + 8 + 100) as f64;
    let since = watch.before.clone();
    let received = receivers(watch.farm)?;
    // Open until all is counted: an answer to a closed one brings an error, which is a packet too.
    let _sockets = watch.farm.fabric.client.enter(|| -> Result<Vec<UdpSocket>> {
        let send = |_| {
            let socket = UdpSocket::bind((Fabric::CLIENT_V4, 0))?;
            socket.send_to(&[0; 100], (Fabric::VIP_V4, ECHO))?;
            Ok(socket)
        };
        (0..NUMBER as usize).map(send).collect()
    })??;
    let service = [("service", "datagrams")];
    let packets = "spillway_service_packets_total";
    watch.until("datagrams come", |now| {
        now.value(packets, &service) >= since.value(packets, &service).map(|was| was + NUMBER)
    })?;
    let sent = [("role", "balancer"), ("verdict", "transmitted"), ("action", "transmit")];
    for (name, labels, wanted) in [
        ("service_packets", &service[..], NUMBER),
        ("service_bytes", &service, BYTES),
        ("service_packets", &[], NUMBER),
        ("service_connections", &[], 0.0),
        ("backend_packets", &[], NUMBER),
        ("backend_bytes", &[], BYTES),
        ("verdict_packets", &sent, NUMBER),
        ("verdict_bytes", &sent, BYTES),
        ("group_connections_offered", &[], 0.0),
    ] {
        let rose = watch.rose(&since, &format!("spillway_{name}_total"), labels);
        ensure!(rose == wanted, "{name} {labels:?}: {rose}, not {wanted}");
    }
    // What the balancer says it sent to each backend is what the receiver there says it took out.
    let taken = receivers(watch.farm)?;
    for ((backend, before), after) in watch.farm.fabric.backends.iter().zip(received).zip(taken) {
        let address = backend.v4.to_string();
        let labels = [("backend", address.as_str())];
        let sent = watch.rose(&since, "spillway_backend_packets_total", &labels);
        ensure!(after - before == sent, "{address}: {before} and {after}, {sent} were sent");
    }
    Ok(())
}

/// Packets that each receiver took out of a tunnel.
fn receivers(farm: &Farm) -> Result<Vec<f64>> {
    let decapsulated = |backend: &lb_tests::topology::Backend| {
        let labels = [("role", "receiver"), ("verdict", "decapsulated"), ("action", "pass")];
        let value = scrape(&backend.node)?.value("spillway_verdict_packets_total", &labels);
        value.context("the receiver serves none")
    };
    farm.fabric.backends.iter().map(decapsulated).collect()
}

fn syns(watch: &mut Watch<'_>) -> Result<()> {
    const NUMBER: f64 = 30.0;
    let since = watch.before.clone();
    for (seed, to) in [(1, (Fabric::VIP_V4, STRICT)), (2, (Fabric::VIP_V4, OVER)), (3, (FAR, ECHO))]
    {
        watch.farm.syns(SocketAddrV4::new(to.0, to.1), seed, NUMBER as usize)?;
    }
    let offered = "spillway_group_connections_offered_total";
    watch.until("SYNs come, more than are taken", |now| {
        // Those that spill are offered to both regions.
        now.value(offered, &[]) >= since.value(offered, &[]).map(|was| was + 4.0 * NUMBER)
    })?;
    let group = |name: &str, pool, region| {
        let labels = [("pool", pool), ("region", region)];
        watch.rose(&since, &format!("spillway_group_connections_{name}_total"), &labels)
    };
    let all = |pool, region| {
        ["offered", "admitted", "spilled_in", "spilled_out", "refused", "overrun"]
            .map(|name| group(name, pool, region))
    };
    ensure!(all("far", "eu") == [NUMBER, 0.0, 0.0, NUMBER, 0.0, 0.0], "{:?}", all("far", "eu"));
    ensure!(all("far", "us") == [NUMBER, NUMBER, NUMBER, 0.0, 0.0, 0.0], "{:?}", all("far", "us"));
    // A burst of ten, less what the clock's tick costs of it; no other is due for twenty seconds.
    let [offered, admitted, spilled_in, spilled_out, refused, overrun] = all("strict", "eu");
    ensure!((offered, spilled_in, spilled_out, overrun) == (NUMBER, 0.0, 0.0, 0.0));
    ensure!(admitted + refused == NUMBER && (9.0..=11.0).contains(&admitted), "{admitted}");
    let [offered, taken, _, _, lost, overrun] = all("over", "eu");
    ensure!((offered, taken, lost) == (NUMBER, NUMBER, 0.0), "{offered} {taken} {lost}");
    ensure!((NUMBER - 12.0..=NUMBER - 9.0).contains(&overrun), "{overrun}");

    let dropped = [("verdict", "regions_full"), ("action", "drop")];
    let full = watch.rose(&since, "spillway_verdict_packets_total", &dropped);
    ensure!(full == refused, "{full} were dropped, {refused} refused");
    for (service, wanted) in [("strict", admitted), ("over", NUMBER), ("far", NUMBER)] {
        let labels = [("service", service)];
        let connections = watch.rose(&since, "spillway_service_connections_total", &labels);
        ensure!(connections == wanted, "{service}: {connections}, not {wanted}");
    }
    let backends = watch.rose(&since, "spillway_backend_connections_total", &[]);
    ensure!(backends == admitted + 2.0 * NUMBER, "{backends}");
    let gate = |pool| watch.before.value("spillway_pool_gate_open", &[("pool", pool)]);
    ensure!((gate("far"), gate("even")) == (Some(1.0), Some(0.0)), "who spilled is away from home");
    Ok(())
}

/// Five connections that go on in the other region are five exceptions.
fn away_from_home(watch: &mut Watch<'_>) -> Result<()> {
    let since = watch.before.clone();
    let to = SocketAddr::from((FAR, ECHO));
    let open = || -> Result<Vec<TcpStream>> {
        let one = |_| {
            let stream = TcpStream::connect_timeout(&to, Duration::from_secs(10))?;
            let mut name = String::new();
            BufReader::new(&stream).read_line(&mut name)?;
            ensure!(name.starts_with("us"), "{name} answers");
            Ok(stream)
        };
        (0..5).map(one).collect()
    };
    let _streams = watch.farm.fabric.client.enter(open)??;
    let held = [("table", "exceptions"), ("ip", "ipv4")];
    watch.until("connections are open away from home", |now| {
        now.value("spillway_flow_table_entries", &held) == Some(5.0)
    })?;
    let inserted = [("event", "exception_inserted")];
    ensure!(watch.rose(&since, "spillway_events_total", &inserted) == 5.0);
    let records = [("table", "records")];
    let records = watch.before.value("spillway_flow_table_entries", &records);
    ensure!(records >= Some(5.0), "{records:?} records of SYNs");
    Ok(())
}

fn missing(watch: &mut Watch<'_>) -> Result<()> {
    let labels = [("pool", "over"), ("region", "eu")];
    let farm = watch.farm;
    let seed = std::cell::Cell::new(100);
    // What was asked before has left the window.
    watch.before = until("no more than it takes is asked", PATIENCE, || {
        let now = scrape(&farm.fabric.balancer)?;
        Ok((now.value("spillway_group_missing_backends", &labels) == Some(0.0)).then_some(now))
    })?;
    watch.until("a group is asked for more than it takes", |now| {
        seed.set(seed.get() + 1);
        let sent = farm.syns(SocketAddrV4::new(Fabric::VIP_V4, OVER), seed.get(), 20);
        sent.is_ok() && now.value("spillway_group_missing_backends", &labels) > Some(0.0)
    })
}

fn reconfigured(watch: &mut Watch<'_>) -> Result<()> {
    watch.farm.balancer.apply(&watch.farm.configuration(true))?;
    watch.until("another configuration is applied", |now| {
        let out = [("pool", "away"), ("region", "eu")];
        let settling = [("pool", "even")];
        now.value("spillway_group_out_of_home", &out) == Some(1.0)
            && now.value("spillway_pool_settling", &settling) == Some(1.0)
    })?;
    let dead = watch.before.value("spillway_backend_dead", &[("pool", "away"), ("region", "eu")]);
    ensure!(dead == Some(3.0), "{dead:?} of 3 are disabled");
    ensure!(watch.before.value("spillway_generation", &[]) == Some(2.0));
    Ok(())
}

/// A frozen map takes no writes from the daemon: the generation is in force, the packet path behind.
fn refused(watch: &mut Watch<'_>) -> Result<()> {
    let farm = watch.farm;
    let pins = Pins::new(&farm.balancer.bpffs, Role::Balancer);
    let map = pins.map(names::SERVICES_V4).display().to_string();
    farm.fabric.balancer.run("bpftool", ["map", "freeze", "pinned", &map])?;
    let more = "[[service]]\nname = \"late\"\naddress = \"203.0.113.2\"\nport = 7005\n\
                protocol = \"tcp\"\npool = \"even\"\n";
    let text = farm.configuration(true) + more;
    ensure!(farm.balancer.apply(&text).is_err(), "a frozen map takes a service");
    let failures = "spillway_publish_failures_total";
    watch.until("the kernel refuses a write", |now| {
        now.value("spillway_packet_path_behind", &[]) == Some(1.0)
            && now.value(failures, &[]) >= Some(2.0)
    })?;
    ensure!(watch.before.value("spillway_generation", &[]) == Some(3.0), "it is in force");
    Ok(())
}

fn taken_off(watch: &mut Watch<'_>) -> Result<()> {
    let pins = Pins::new(&watch.farm.balancer.bpffs, Role::Balancer);
    let link = pins.link("eth0").display().to_string();
    watch.farm.fabric.balancer.run("bpftool", ["link", "detach", "pinned", &link])?;
    let attached = [("role", "balancer"), ("interface", "eth0")];
    watch.until("the program is taken off", |now| {
        now.value("spillway_interface_attached", &attached) == Some(0.0)
    })
}
