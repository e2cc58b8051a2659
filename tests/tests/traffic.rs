//! Traffic through every tunnel: all of it arrives, whole, and evenly spread.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::capture::{Capture, Frames};
use lb_tests::daemon::{XdpMode, xdp_mode};
use lb_tests::harness;
use lb_tests::packets::frames::{ETHERNET, Flow, Packet};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::{self, Sandbox};
use lb_tests::scene::{ECHO, Health, Scene, Tunnel};
use lb_tests::statistics::ensure_even;
use lb_tests::topology::Fabric;
use lb_tests::traffic::{ClientCounters, Curl, Siege, Wrk, name_over_udp};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Ten megabytes and a little, so that no packet size divides it.
const LARGE: usize = 10_000_019;

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("the_packet_programs_are_native", the_packet_programs_are_native),
            ("two_hundred_connections_are_answered_and_spread", two_hundred_connections),
            ("a_flood_of_connections_is_answered", a_flood_of_connections_is_answered),
            ("ten_megabytes_arrive_whole_both_ways", ten_megabytes_arrive_whole_both_ways),
            ("a_vip_answers_pings_by_itself", a_vip_answers_pings_by_itself),
            ("answers_are_limited_and_counted", answers_are_limited_and_counted),
            ("an_upload_fits_itself_to_the_tunnel", an_upload_fits_itself_to_the_tunnel),
            ("a_backend_hears_of_a_narrow_path", a_backend_hears_of_a_narrow_path),
            ("a_balancer_learns_of_a_narrow_way", a_balancer_learns_of_a_narrow_way),
            ("datagrams_are_answered_from_the_vip", datagrams_are_answered_from_the_vip),
            ("every_connection_is_counted_once", every_connection_is_counted_once),
        ],
    )
}

fn the_packet_programs_are_native(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::idle(sandbox, "native")?;
    let backends = scene.fabric.backends.iter().map(|backend| &backend.node);
    for node in std::iter::once(&scene.fabric.balancer).chain(backends) {
        let mode = xdp_mode(node, "eth0")?;
        ensure!(mode == XdpMode::Native, "{}: {mode:?}", node.name());
    }
    Ok(())
}

/// 200 connections of siege through each tunnel, with every frame of the balancer's link taken down.
fn two_hundred_connections(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "siege", Health::QUICK)?;
    for tunnel in Tunnel::ALL {
        let capture = Capture::start(&scene.fabric.router, "balancer", "")?;
        let siege = Siege { clients: 20, requests: 10, pause: None };
        let report = siege.run(&scene.fabric.client, &tunnel.url())?;
        ensure!((report.answered, report.failed) == (200, 0), "{tunnel:?}: {report:?}");
        let logged = settled_log(&scene, tunnel, 200)?;
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
        for (backend, logged) in scene.fabric.backends.iter().zip(&logged) {
            let end = tunnel.end(backend).to_string();
            let is_here = |[all, ..]: &&[String; 3]| all.split(',').next() == Some(&end);
            let sent = ends.iter().filter(is_here).count();
            ensure!(sent as u64 == *logged, "{}: {sent} sent, {logged} logged", backend.name());
        }
    }
    Ok(())
}

/// The requests that each backend logged for a tunnel's VIP, once all are written down.
fn settled_log(scene: &Scene, tunnel: Tunnel, total: u64) -> Result<Vec<u64>> {
    until(&format!("{tunnel:?}: {total} requests are logged"), PATIENCE, || {
        let logged = scene.logged(tunnel.vip())?;
        Ok((logged.iter().sum::<u64>() == total).then_some(logged))
    })
}

/// Fresh connections as fast as one client can open them.
fn a_flood_of_connections_is_answered(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "flood", Health { interval_ms: 1000, fall: 5 })?;
    for tunnel in Tunnel::ALL {
        let wrk = Wrk { connections: 16, time: Duration::from_secs(2) };
        let report = wrk.run(&scene.fabric.client, &tunnel.url())?;
        ensure!(report.failed == 0 && report.bad_status == 0, "{tunnel:?}: {report:?}");
        ensure!(report.answered >= 200, "{tunnel:?}: {report:?}");
    }
    Ok(())
}

fn ten_megabytes_arrive_whole_both_ways(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "large", Health::QUICK)?;
    let directory = scene.fabric.client.directory();
    let curl = Curl::new(&scene.fabric.client);
    for (number, tunnel) in Tunnel::ALL.into_iter().enumerate() {
        let content = Random::new(number as u64).bytes(LARGE);
        let name = format!("{}.bin", tunnel.name());
        let (here, back) = (directory.join(&name), directory.join("back"));
        fs::write(&here, &content)?;
        let url = format!("http://{}/files/{name}", tunnel.endpoint(80));

        let capture = Capture::start(&scene.fabric.router, "balancer", "")?;
        curl.upload(&here, &url)?;
        let frames = capture.stop()?;
        frames.assert_faultless().with_context(|| format!("{tunnel:?}: upload"))?;
        // The client sends as much as its link takes, and the outer header comes on top.
        let largest = largest(&frames, &tunnel.filter())?;
        let outer = if tunnel.is_outer_v4() { 20 } else { 40 };
        ensure!(largest == Some(14 + outer + 1500), "{tunnel:?}: largest frame {largest:?}");

        let copies = copies(&scene, &name);
        ensure!(copies.len() == 1, "{tunnel:?}: {} backends have the upload", copies.len());
        ensure!(copies[0] == content, "{tunnel:?}: the upload differs");

        for nginx in &scene.servers {
            fs::write(nginx.files().join(&name), &content)?;
        }
        curl.download(&url, &back)?;
        ensure!(fs::read(&back)? == content, "{tunnel:?}: the download differs");
    }
    Ok(())
}

/// Bytes of the longest frame that a filter of tshark's lets through.
fn largest(frames: &Frames, filter: &str) -> Result<Option<usize>> {
    let lengths = frames.fields(filter, ["frame.len"])?;
    Ok(lengths.iter().filter_map(|[length]| length.parse().ok()).max())
}

/// Each tunnel in IP, then each in GUE, and by how many bytes its header is longer than in IP.
fn tunnels_of_pools() -> impl Iterator<Item = (Tunnel, &'static str, u32)> {
    let forms = [("ip_in_ip", 0), ("gue", 12)];
    forms.into_iter().flat_map(|(form, more)| Tunnel::ALL.map(|tunnel| (tunnel, form, more)))
}

/// Has all pools use a form of tunnel.
fn encapsulate(scene: &Scene, form: &str) -> Result<()> {
    for pool in ["v4", "v6"] {
        scene.balancer.cli(&["pool", "update", pool, "--encapsulation", form])?;
    }
    Ok(())
}

/// A file as those backends have it that have it.
fn copies(scene: &Scene, name: &str) -> Vec<Vec<u8>> {
    scene.servers.iter().filter_map(|nginx| fs::read(nginx.files().join(name)).ok()).collect()
}

/// No backend is there to answer, and the balancer's own kernel does not have the VIPs.
fn a_vip_answers_pings_by_itself(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "ping", Health::QUICK)?;
    let client = &scene.fabric.client;
    for backend in &scene.fabric.backends {
        backend.unplug()?;
    }
    for tunnel in Tunnel::ALL {
        let vip = tunnel.vip().to_string();
        for size in ["0", "56", "1400"] {
            let said =
                client.run("ping", ["-n", "-c", "3", "-i", "0.01", "-W", "2", "-s", size, &vip])?;
            ensure!(said.contains(" 3 received"), "{vip}: {said}");
        }
    }
    ensure!(scene.balancer.packets("answered_echo")? == 4 * 3 * 3, "not by the packet program");

    // Of a thousand at once not all are answered; and what becomes of a VIP becomes of its pings.
    let vip = Tunnel::Ipip.vip().to_string();
    let flood =
        client.run("ping", ["-n", "-q", "-c", "1000", "-i", "0", "-l", "1000", "-W", "1", &vip])?;
    ensure!(!flood.contains(" 1000 received"), "{flood}");
    ensure!(scene.balancer.packets("echo_limited")? > 0, "{flood}");
    scene.balancer.apply("[[region]]\nname = \"eu\"\n")?;
    let gone = client.command("ping").args(["-n", "-c", "1", "-W", "1", &vip]).output()?;
    ensure!(!gone.status.success(), "a VIP without a service answers");
    Ok(())
}

/// Of many packets that ask for an answer by the packet program at once a few get one, as the settings say. Each
/// is counted, of both IP versions.
fn answers_are_limited_and_counted(sandbox: &Sandbox) -> Result<()> {
    const RATE: u64 = 20;
    const EACH: u64 = 200;
    let mut scene = Scene::start(sandbox, "limited", Health::QUICK)?;
    for limit in ["--icmp-errors", "--icmp-echoes"] {
        scene.balancer.more.extend([limit.to_owned(), RATE.to_string()]);
    }
    scene.balancer.stop()?;
    scene.balancer.start()?;
    scene.wait_up(&[])?;
    scene.fabric.balancer.ip("link set eth0 mtu 1500")?;
    let tunnels = [Tunnel::Ipip, Tunnel::Ip6Ip6];
    let client = scene.fabric.client.clone();
    let addresses = [IpAddr::V4(Fabric::CLIENT_V4), IpAddr::V6(Fabric::CLIENT_V6)];
    let too_large: Vec<_> = tunnels
        .iter()
        .zip(addresses)
        .map(|(tunnel, own)| {
            let vip = SocketAddr::new(tunnel.vip(), ECHO);
            let header = if own.is_ipv4() { 28 } else { 48 };
            let flow = Flow { client: SocketAddr::new(own, 7), vip };
            let frame = Packet::new(flow).payload(&vec![0; 1_490 - header]).udp();
            (vip, frame[ETHERNET..].to_vec())
        })
        .collect();
    let send = |times: u64| {
        client.enter(|| -> Result<()> {
            for (vip, packet) in &too_large {
                // It makes its IP header itself, and no more of it than one packet.
                let raw =
                    Socket::new(Domain::for_address(*vip), Type::RAW, Some(Protocol::from(255)))?;
                let to = SockAddr::from(SocketAddr::new(vip.ip(), 0));
                for _ in 0..times {
                    raw.send_to(packet, &to)?;
                }
            }
            Ok(())
        })?
    };
    let packets = |verdict: &str| scene.balancer.packets(verdict);
    // The daemon may not have heard of the link yet.
    until("a datagram is too large", PATIENCE, || {
        send(1)?;
        Ok((packets("answered_too_large")? >= 2).then_some(()))
    })?;
    let both = |answered: &str, limited: &str| {
        Ok::<_, anyhow::Error>((packets(answered)?, packets(limited)?))
    };
    let is_within = |what: &str, answered: u64, begun: Instant| {
        // A burst is at most what a second may have.
        let most = RATE + RATE * (begun.elapsed().as_secs() + 1);
        ensure!(answered > 0 && answered <= most, "{what}: {answered} answered, {most} may be");
        Ok(())
    };
    let (before, begun) = (both("answered_too_large", "too_large")?, Instant::now());
    send(EACH)?;
    let after = until("all are counted", PATIENCE, || {
        let now = both("answered_too_large", "too_large")?;
        Ok((now.0 + now.1 - before.0 - before.1 >= 2 * EACH).then_some(now))
    })?;
    ensure!(after.0 + after.1 - before.0 - before.1 == 2 * EACH, "{before:?}, then {after:?}");
    is_within("too large", after.0 - before.0, begun)?;

    let (before, begun) = (both("answered_echo", "echo_limited")?, Instant::now());
    let count = EACH.to_string();
    let mut answered = 0;
    for tunnel in tunnels {
        let vip = tunnel.vip().to_string();
        let flood = ["-n", "-q", "-c", &count, "-i", "0", "-l", &count, "-W", "1", &vip];
        let said = client.command("ping").args(flood).output()?;
        let said = String::from_utf8(said.stdout)?;
        let received = said.split(", ").find_map(|part| part.strip_suffix(" received"));
        answered += received.context("ping says nothing")?.parse::<u64>()?;
    }
    let after = both("answered_echo", "echo_limited")?;
    ensure!(after.0 - before.0 == answered, "{answered} heard: {before:?}, then {after:?}");
    ensure!(after.0 + after.1 - before.0 - before.1 == 2 * EACH, "{before:?}, then {after:?}");
    is_within("pings", answered, begun)
}

/// With an outer header a client's packets do not fit the balancer's link. The client is told so, and sends
/// smaller ones.
fn an_upload_fits_itself_to_the_tunnel(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "upload", Health::QUICK)?;
    scene.fabric.balancer.ip("link set eth0 mtu 1500")?;
    let client = &scene.fabric.client;
    let curl = Curl::new(client);
    for (number, (tunnel, form, more)) in tunnels_of_pools().enumerate() {
        encapsulate(&scene, form)?;
        let content = Random::new(100 + number as u64).bytes(LARGE);
        let name = format!("{}-{form}.bin", tunnel.name());
        let (here, url) = (
            client.directory().join(&name),
            format!("http://{}/files/{name}", tunnel.endpoint(80)),
        );
        fs::write(&here, &content)?;
        let room = if tunnel.is_outer_v4() { 1480 } else { 1460 } - more;
        let (vip, before) =
            (tunnel.vip().to_string(), scene.balancer.packets("answered_too_large")?);
        // The first one may come before the daemon has heard of the link.
        until(&format!("{tunnel:?}: the client learns"), PATIENCE, || {
            curl.upload(&here, &url)?;
            let route = client.run("ip", ["route", "get", &vip])?;
            Ok(route.contains(&format!("mtu {room} ")).then_some(()))
        })?;
        ensure!(scene.balancer.packets("answered_too_large")? > before, "{tunnel:?}: by whom?");

        let capture = Capture::start(&scene.fabric.router, "balancer", "")?;
        curl.upload(&here, &url)?;
        let frames = capture.stop()?;
        frames.assert_faultless().with_context(|| format!("{tunnel:?}"))?;
        let in_gue = "udp.dstport == 6080".to_owned();
        let largest = largest(&frames, &if more > 0 { in_gue } else { tunnel.filter() })?;
        ensure!(largest == Some(14 + 1500), "{tunnel:?}: largest frame {largest:?}");
        // It came more than once, and not always to the same.
        let copies = copies(&scene, &name);
        ensure!(!copies.is_empty(), "{tunnel:?}: no backend has the upload");
        ensure!(copies.iter().all(|copy| *copy == content), "{tunnel:?}: the upload differs");
    }
    Ok(())
}

/// The way to the client takes less than either end knows of. The router says so to the VIP; the backend
/// that has the connection hears of it, and nobody else, and sends smaller packets.
fn a_backend_hears_of_a_narrow_path(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "narrow", Health::QUICK)?;
    scene.fabric.router.ip("link set client mtu 1300")?;
    let back = scene.fabric.client.directory().join("back");
    let curl = Curl::new(&scene.fabric.client);
    let content = Random::new(13).bytes(LARGE);
    for nginx in &scene.servers {
        fs::write(nginx.files().join("narrow.bin"), &content)?;
    }
    for tunnel in Tunnel::ALL {
        let before = scene.logged(tunnel.vip())?;
        curl.download(&format!("http://{}/files/narrow.bin", tunnel.endpoint(80)), &back)
            .with_context(|| format!("{tunnel:?}"))?;
        ensure!(fs::read(&back)? == content, "{tunnel:?}: the download differs");
        let total = before.iter().sum::<u64>() + 1;
        let after = settled_log(&scene, tunnel, total)?;
        for ((backend, before), after) in scene.fabric.backends.iter().zip(before).zip(after) {
            let route = |to: &str| {
                let from = tunnel.vip().to_string();
                backend.node.run("ip", ["route", "get", to, "from", &from])
            };
            let route = match tunnel.vip().is_ipv4() {
                true => route(&Fabric::CLIENT_V4.to_string())?,
                false => route(&Fabric::CLIENT_V6.to_string())?,
            };
            let knows = route.contains("mtu 1300");
            ensure!(knows == (after > before), "{tunnel:?}: {}: {route}", backend.name());
            // Each tunnel's backend learns it anew.
            backend.node.run("ip", ["-4", "route", "flush", "cache"])?;
            backend.node.run("ip", ["-6", "route", "flush", "cache"])?;
        }
    }
    Ok(())
}

/// The way to the backends takes less than the balancer can know of. The router says so to the source of the
/// tunnels; the client is told, and its upload gets through.
fn a_balancer_learns_of_a_narrow_way(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "learn", Health::QUICK)?;
    scene.fabric.router.ip("link set eu mtu 1400")?;
    let client = &scene.fabric.client;
    let curl = Curl::new(client);
    for (number, (tunnel, form, more)) in tunnels_of_pools().enumerate() {
        encapsulate(&scene, form)?;
        let content = Random::new(200 + number as u64).bytes(LARGE);
        let name = format!("{}-{form}.bin", tunnel.name());
        let (here, url) = (
            client.directory().join(&name),
            format!("http://{}/files/{name}", tunnel.endpoint(80)),
        );
        fs::write(&here, &content)?;
        curl.upload(&here, &url).with_context(|| format!("{tunnel:?}"))?;
        let copies =
            scene.servers.iter().filter_map(|nginx| fs::read(nginx.files().join(&name)).ok());
        ensure!(copies.into_iter().all(|copy| copy == content), "{tunnel:?}: the upload differs");
        let room = if tunnel.is_outer_v4() { 1380 } else { 1360 } - more;
        let route = client.run("ip", ["route", "get", &tunnel.vip().to_string()])?;
        ensure!(route.contains(&format!("mtu {room} ")), "{tunnel:?}: {route}");
    }
    // Of the backends that had an upload it is known, and of those in the other region it is not.
    let status = scene.balancer.ask(&["status"])?;
    let rows = status["backends"].as_array().context("backends")?;
    let mut known = 0;
    for row in rows {
        match (row["mtu"].as_u64(), row["path_mtu"].as_u64()) {
            (Some(1400), Some(1400)) if row["region"] == "eu" => known += 1,
            (Some(1600), None) => {}
            _ => anyhow::bail!("{row}"),
        }
    }
    ensure!((2..=6).contains(&known), "{known} ways are known: {status}");
    Ok(())
}

fn datagrams_are_answered_from_the_vip(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "udp", Health::QUICK)?;
    let mut random = Random::new(7);
    for tunnel in Tunnel::ALL {
        let mut answered = vec![0; scene.fabric.backends.len()];
        for _ in 0..150 {
            let from = random.client(tunnel.vip());
            // A connected socket: an answer from any other address would not arrive.
            let name = name_over_udp(&scene.fabric.client, from, tunnel.endpoint(ECHO))?;
            answered[scene.number(&name)?] += 1;
        }
        ensure_even(&answered[..3], 5.0).with_context(|| format!("{tunnel:?}: {answered:?}"))?;
        ensure!(answered[3..] == [0, 0, 0], "{tunnel:?}: the other region: {answered:?}");
    }
    Ok(())
}

/// The client's kernel, the backends' logs, and the balancer's counters of backends and of the
/// service say the same number.
fn every_connection_is_counted_once(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "count", Health::QUICK)?;
    let before = ClientCounters::read(&scene.fabric.client)?;
    let siege = Siege { clients: 10, requests: 30, pause: Some(Duration::from_millis(10)) };
    let report = siege.run(&scene.fabric.client, &Tunnel::Ipip.url())?;
    ensure!((report.answered, report.failed) == (300, 0), "{report:?}");
    let client = ClientCounters::read(&scene.fabric.client)?.since(&before);
    ensure!(client.opened == 300, "{client:?}");
    let logged = settled_log(&scene, Tunnel::Ipip, 300)?;

    let stats = scene.balancer.ask(&["stats"])?;
    let rows = |name: &str| stats[name].as_array().cloned().unwrap_or_default();
    let mut all = 0;
    for (backend, logged) in scene.fabric.backends.iter().zip(logged) {
        let address = backend.v4.to_string();
        let counted: u64 = rows("backends")
            .iter()
            .filter(|row| row["backend"] == address.as_str())
            .filter_map(|row| row["connections"].as_u64())
            .sum();
        // A SYN that the client's kernel repeats, after a second without an answer, is counted again.
        let most = logged + client.syns_repeated;
        let is_logged = (logged..=most).contains(&counted);
        ensure!(is_logged, "{}: {counted} counted, {logged} logged, {client:?}", backend.name());
        all += counted;
    }
    let of_service: Vec<_> = rows("services")
        .iter()
        .filter_map(|row| Some((row["service"].as_str()?.to_owned(), row["connections"].as_u64()?)))
        .filter(|(_, connections)| *connections > 0)
        .collect();
    ensure!(of_service == [("ipip-tcp-80".to_owned(), all)], "{of_service:?}, {all} by backends");
    ensure!((300..=client.syns()).contains(&all), "{all}, {client:?}");
    Ok(())
}
