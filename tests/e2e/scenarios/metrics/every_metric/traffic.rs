//! Metrics of packets and connections.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::ECHO;
use lb_tests::daemon::scrape;
use lb_tests::openmetrics::Exposition;
use lb_tests::process::until;
use lb_tests::topology::{Backend, Fabric};
use lb_tests::traffic;

use super::{PATIENCE, watch::Watch};
use crate::metrics::fixture::{FAR, MetricsFixture, OVER, STRICT};

/// Forty datagrams of a known size are forty packets of a known size everywhere.
pub(super) fn datagrams(watch: &mut Watch<'_>) -> Result<()> {
    const NUMBER: f64 = 40.0;
    // Ethernet, IPv4, UDP, payload.
    const BYTES: f64 = NUMBER * (14 + 20 + 8 + 100) as f64;
    let since = watch.before.clone();
    let received = receivers(watch.fixture)?;
    let (from, to) = (Fabric::CLIENT_V4.into(), SocketAddr::from((Fabric::VIP_V4, ECHO)));
    let _sockets =
        traffic::datagrams(&watch.fixture.fabric.client, from, to, NUMBER as usize, 100)?;
    let service = [("service", "datagrams")];
    let sent = [("component", "balancer"), ("verdict", "transmitted"), ("action", "transmit")];
    // A packet moves its counters one after the other, and they are read one after the other.
    let all: [(&str, &[_]); 3] = [
        ("spillway_service_packets_total", &service),
        ("spillway_backend_packets_total", &[]),
        ("spillway_verdict_packets_total", &sent),
    ];
    watch.until("datagrams come", |now| {
        all.iter().all(|(name, labels)| {
            let was = since.value(name, labels).unwrap_or_default();
            now.value(name, labels) >= Some(was + NUMBER)
        })
    })?;
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
    let all: f64 = received.iter().sum::<f64>() + NUMBER;
    let taken = until("the receivers have them", PATIENCE, || {
        let taken = receivers(watch.fixture)?;
        Ok((taken.iter().sum::<f64>() >= all).then_some(taken))
    })?;
    for ((backend, before), after) in watch.fixture.fabric.backends.iter().zip(received).zip(taken)
    {
        let address = backend.v4.to_string();
        let labels = [("backend", address.as_str())];
        let sent = watch.rose(&since, "spillway_backend_packets_total", &labels);
        ensure!(after - before == sent, "{address}: {before} and {after}, {sent} were sent");
    }
    Ok(())
}

/// Without a packet program at the other end of its veth, the balancer's driver drops what is sent back.
pub(super) fn dropped(watch: &mut Watch<'_>) -> Result<()> {
    const NUMBER: f64 = 10.0;
    let Fabric { net, router, client, .. } = &watch.fixture.fabric;
    router.ip("link set balancer xdp off")?;
    router.run("ethtool", ["-K", "balancer", "gro", "off"])?;
    let (from, to) = (Fabric::CLIENT_V4.into(), SocketAddr::from((Fabric::VIP_V4, ECHO)));
    let _sockets = traffic::datagrams(client, from, to, NUMBER as usize, 100)?;
    let after = [("interface", "eth0")];
    watch.until("the driver drops what is sent", |now| {
        now.value("spillway_interface_dropped_after_program_total", &after) == Some(NUMBER)
    })?;
    router.run("ethtool", ["-K", "balancer", "gro", "on"])?;
    net.pass_all(router, "balancer")
}

/// Packets that each receiver took out of a tunnel.
fn receivers(fixture: &MetricsFixture) -> Result<Vec<f64>> {
    let decapsulated = |backend: &Backend| {
        let labels = [("component", "receiver"), ("verdict", "decapsulated"), ("action", "pass")];
        let value = scrape(&backend.node)?.value("spillway_verdict_packets_total", &labels);
        value.context("the receiver serves none")
    };
    fixture.fabric.backends.iter().map(decapsulated).collect()
}

pub(super) fn syns(watch: &mut Watch<'_>) -> Result<()> {
    const NUMBER: f64 = 30.0;
    let since = watch.before.clone();
    for (seed, to) in [(1, (Fabric::VIP_V4, STRICT)), (2, (Fabric::VIP_V4, OVER)), (3, (FAR, ECHO))]
    {
        watch.fixture.syns(SocketAddrV4::new(to.0, to.1), seed, NUMBER as usize)?;
    }
    let offered = "spillway_group_connections_offered_total";
    let verdicts = "spillway_verdict_packets_total";
    watch.until("SYNs come, more than are taken", |now| {
        let more = |name: &str, labels: &[_]| {
            let value = |of: &Exposition| of.value(name, labels).unwrap_or_default();
            value(now) - value(&since)
        };
        // Those that spill are offered to both regions; and each has a verdict, which is counted last.
        let decided =
            ["transmitted", "regions_full"].map(|name| more(verdicts, &[("verdict", name)]));
        more(offered, &[]) >= 4.0 * NUMBER && decided.iter().sum::<f64>() >= 3.0 * NUMBER
    })?;
    let group = |name: &str, pool, region| {
        let labels = [("pool", pool), ("region", region)];
        watch.rose(&since, &format!("spillway_group_connections_{name}_total"), &labels)
    };
    let all = |pool, region| {
        ["offered", "admitted", "overflow_in", "overflow_out", "refused", "over_capacity"]
            .map(|name| group(name, pool, region))
    };
    ensure!(all("far", "eu") == [NUMBER, 0.0, 0.0, NUMBER, 0.0, 0.0], "{:?}", all("far", "eu"));
    ensure!(all("far", "us") == [NUMBER, NUMBER, NUMBER, 0.0, 0.0, 0.0], "{:?}", all("far", "us"));
    // A burst of ten, less what the clock's tick costs of it; no other is due for twenty seconds.
    let [offered, admitted, overflow_in, overflow_out, refused, over_capacity] =
        all("strict", "eu");
    ensure!((offered, overflow_in, overflow_out, over_capacity) == (NUMBER, 0.0, 0.0, 0.0));
    ensure!(admitted + refused == NUMBER && (9.0..=11.0).contains(&admitted), "{admitted}");
    let [offered, taken, _, _, lost, over_capacity] = all("over", "eu");
    ensure!((offered, taken, lost) == (NUMBER, NUMBER, 0.0), "{offered} {taken} {lost}");
    ensure!((NUMBER - 12.0..=NUMBER - 9.0).contains(&over_capacity), "{over_capacity}");

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
    let gate = |pool| watch.before.value("spillway_pool_has_displaced", &[("pool", pool)]);
    ensure!((gate("far"), gate("even")) == (Some(1.0), Some(0.0)), "what overflowed is displaced");
    Ok(())
}

/// Five connections that go on in the other region are five open cells.
pub(super) fn displaced(watch: &mut Watch<'_>) -> Result<()> {
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
    let _streams = watch.fixture.fabric.client.enter(open)??;
    watch.until("connections are open away from home", |now| {
        now.value("spillway_flow_table_cells", &[("state", "open")]) == Some(5.0)
    })?;
    let taken = [("event", "flow_taken")];
    ensure!(watch.rose(&since, "spillway_events_total", &taken) == 5.0);
    Ok(())
}

pub(super) fn missing(watch: &mut Watch<'_>) -> Result<()> {
    let labels = [("pool", "over"), ("region", "eu")];
    let fixture = watch.fixture;
    let seed = std::cell::Cell::new(100);
    // What was asked before has left the window.
    watch.before = until("no more than it takes is asked", PATIENCE, || {
        let now = scrape(&fixture.fabric.balancer)?;
        Ok((now.value("spillway_group_missing_backends", &labels) == Some(0.0)).then_some(now))
    })?;
    watch.until("a group is asked for more than it takes", |now| {
        seed.set(seed.get() + 1);
        let sent = fixture.syns(SocketAddrV4::new(Fabric::VIP_V4, OVER), seed.get(), 20);
        sent.is_ok() && now.value("spillway_group_missing_backends", &labels) > Some(0.0)
    })
}

/// A route to a backend that has an MTU of its own.
pub(super) fn route_mtu(watch: &mut Watch<'_>) -> Result<()> {
    const BACKEND: &str = "10.1.0.11";
    watch.fixture.fabric.balancer.ip(&format!("route add {BACKEND} via 10.0.0.1 mtu 1400"))?;
    watch.until("a route to a backend has an MTU", |now| {
        now.value("spillway_backend_mtu_bytes", &[("backend", BACKEND)]) == Some(1400.0)
    })
}
