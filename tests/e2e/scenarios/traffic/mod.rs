//! Traffic through every kind of tunnel arrives whole and evenly spread.

mod icmp_errors;
mod icmp_replies;
mod last_hop;
mod not_forwarded;
mod packet_sizes;
mod small_mtu;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_e2e::harness::Case;
use lb_tests::capture::Capture;
use lb_tests::daemon::{XdpMode, xdp_mode};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::statistics::ensure_even;
use lb_tests::traffic::{ClientCounters, Siege, Wrk, name_over_udp};

pub(crate) const CASES: &[Case] = &[
    Case::waits("the_packet_programs_are_native", the_packet_programs_are_native),
    Case::waits("two_hundred_connections_are_answered_and_spread", two_hundred_connections),
    Case::works("a_flood_of_connections_is_answered", a_flood_of_connections_is_answered),
    Case::works(
        "ten_megabytes_arrive_whole_both_ways",
        packet_sizes::ten_megabytes_arrive_whole_both_ways,
    ),
    Case::waits("a_vip_answers_pings_by_itself", icmp_replies::a_vip_answers_pings_by_itself),
    Case::waits("a_balancer_is_a_hop_of_traceroute", last_hop::a_balancer_is_a_hop_of_traceroute),
    Case::waits(
        "frames_for_a_group_are_not_forwarded",
        not_forwarded::frames_for_a_group_are_not_forwarded,
    ),
    Case::waits(
        "sources_that_no_router_forwards_are_no_clients",
        not_forwarded::sources_that_no_router_forwards_are_no_clients,
    ),
    Case::waits("answers_are_limited_and_counted", icmp_replies::answers_are_limited_and_counted),
    Case::works(
        "an_upload_fits_itself_to_the_tunnel",
        packet_sizes::an_upload_fits_itself_to_the_tunnel,
    ),
    Case::waits(
        "a_backend_hears_of_a_small_path_mtu",
        packet_sizes::a_backend_hears_of_a_small_path_mtu,
    ),
    Case::waits(
        "a_displaced_backend_hears_of_a_small_path_mtu",
        icmp_errors::a_displaced_backend_hears_of_a_small_path_mtu,
    ),
    Case::waits(
        "clients_are_told_of_a_configured_mtu",
        packet_sizes::clients_are_told_of_a_configured_mtu,
    ),
    Case::waits(
        "an_mtu_too_small_for_ipv6_is_a_condition",
        small_mtu::an_mtu_too_small_for_ipv6_is_a_condition,
    ),
    Case::waits("datagrams_are_answered_from_the_vip", datagrams_are_answered_from_the_vip),
    Case::waits("every_connection_is_counted_once", every_connection_is_counted_once),
];

fn the_packet_programs_are_native(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::idle(sandbox, "native")?;
    let backends = fixture.fabric.backends.iter().map(|backend| &backend.node);
    for node in std::iter::once(&fixture.fabric.balancer).chain(backends) {
        let mode = xdp_mode(node, "eth0")?;
        ensure!(mode == XdpMode::Native, "{}: {mode:?}", node.name());
    }
    Ok(())
}

/// 200 connections of siege through each tunnel, with every frame of the balancer's link taken down.
fn two_hundred_connections(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "siege", Health::QUICK)?;
    for tunnel in Tunnel::ALL {
        let capture = Capture::start(&fixture.fabric.router, "balancer", "")?;
        let siege = Siege { clients: 20, requests: 10, pause: None };
        let report = siege.run(&fixture.fabric.client, &tunnel.url())?;
        ensure!((report.answered, report.failed) == (200, 0), "{tunnel:?}: {report:?}");
        let logged = settled_log(&fixture, tunnel, 200)?;
        ensure_even(&logged[..3], 5.0).with_context(|| format!("{tunnel:?}: {logged:?}"))?;
        ensure!(logged[3..] == [0, 0, 0], "{tunnel:?}: the other region answered: {logged:?}");

        let frames = capture.stop()?;
        frames.assert_faultless().with_context(|| format!("{tunnel:?}"))?;
        // In the tunnel are as many first packets to each backend as it answered requests. One that is
        // repeated, which it is after a second, is the same.
        let syns = format!("{} && tcp.flags.syn == 1", tunnel.filter());
        let field = if tunnel.is_outer_v4() { "ip.dst" } else { "ipv6.dst" };
        let ends = frames.fields(&syns, [field, "tcp.srcport", "tcp.seq_raw"])?;
        let ends: BTreeSet<_> = ends.into_iter().collect();
        for (backend, logged) in fixture.fabric.backends.iter().zip(&logged) {
            let end = tunnel.end(backend).to_string();
            let is_here = |[all, ..]: &&[String; 3]| all.split(',').next() == Some(&end);
            let sent = ends.iter().filter(is_here).count();
            ensure!(sent as u64 == *logged, "{}: {sent} sent, {logged} logged", backend.name());
        }
    }
    Ok(())
}

/// The requests that each backend logged for a tunnel's VIP, once all are written down.
fn settled_log(fixture: &Fixture, tunnel: Tunnel, total: u64) -> Result<Vec<u64>> {
    until(&format!("{tunnel:?}: {total} requests are logged"), PATIENCE, || {
        let logged = fixture.logged(tunnel.vip())?;
        Ok((logged.iter().sum::<u64>() == total).then_some(logged))
    })
}

/// Fresh connections as fast as one client can open them.
fn a_flood_of_connections_is_answered(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "flood", Health { interval_ms: 1000, fall: 5 })?;
    for tunnel in Tunnel::ALL {
        let wrk = Wrk { connections: 16, time: Duration::from_secs(2) };
        let report = wrk.run(&fixture.fabric.client, &tunnel.url())?;
        ensure!(report.failed == 0 && report.bad_status == 0, "{tunnel:?}: {report:?}");
        ensure!(report.answered >= 200, "{tunnel:?}: {report:?}");
    }
    Ok(())
}

fn datagrams_are_answered_from_the_vip(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "udp", Health::QUICK)?;
    let mut random = Random::new(7);
    for tunnel in Tunnel::ALL {
        let mut answered = vec![0; fixture.fabric.backends.len()];
        for _ in 0..150 {
            let from = random.client(tunnel.vip());
            // A connected socket: an answer from any other address would not arrive.
            let name = name_over_udp(&fixture.fabric.client, from, tunnel.endpoint(ECHO))?;
            answered[fixture.number(&name)?] += 1;
        }
        ensure_even(&answered[..3], 5.0).with_context(|| format!("{tunnel:?}: {answered:?}"))?;
        ensure!(answered[3..] == [0, 0, 0], "{tunnel:?}: the other region: {answered:?}");
    }
    Ok(())
}

/// The client's kernel, the backends' logs, and the balancer's counters of backends and of the
/// service say the same number.
fn every_connection_is_counted_once(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "count", Health::QUICK)?;
    let before = ClientCounters::read(&fixture.fabric.client)?;
    let siege = Siege { clients: 10, requests: 30, pause: Some(Duration::from_millis(10)) };
    let report = siege.run(&fixture.fabric.client, &Tunnel::Ipip.url())?;
    ensure!((report.answered, report.failed) == (300, 0), "{report:?}");
    let client = ClientCounters::read(&fixture.fabric.client)?.since(&before);
    ensure!(client.opened == 300, "{client:?}");
    let logged = settled_log(&fixture, Tunnel::Ipip, 300)?;

    let stats = fixture.balancer.stats()?;
    let mut all = 0;
    for (backend, logged) in fixture.fabric.backends.iter().zip(logged) {
        let address = backend.v4.to_string();
        let of_backend = stats.backends.iter().filter(|it| it.backend == address);
        let counted: u64 = of_backend.map(|it| it.connections).sum();
        // A SYN that the client's kernel repeats, after a second without an answer, is counted again.
        let most = logged + client.syns_repeated;
        let is_logged = (logged..=most).contains(&counted);
        ensure!(is_logged, "{}: {counted} counted, {logged} logged, {client:?}", backend.name());
        all += counted;
    }
    let of_service = stats.services.iter().filter(|it| it.connections > 0);
    let of_service: Vec<_> = of_service.map(|it| (&*it.service, it.connections)).collect();
    ensure!(of_service == [("ipip-tcp-80", all)], "{of_service:?}, {all} by backends");
    ensure!((300..=client.syns()).contains(&all), "{all}, {client:?}");
    Ok(())
}
