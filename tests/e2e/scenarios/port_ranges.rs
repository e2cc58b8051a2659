//! Services of port ranges and of any port, and fragmented datagrams, with real clients and servers.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::daemon::Document;
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Node;
use lb_tests::traffic::{Echo, name_over_http};
use socket2::{Domain, Socket, Type};

/// No answer for so long: there is none.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often a waiting thread looks whether it should end.
const TICK: Duration = Duration::from_millis(50);
/// Beyond what any frame holds.
const LARGE: usize = 8_000;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_range_is_one_service", a_range_is_one_service),
    Case::waits("a_port_has_one_backend", a_port_has_one_backend),
    Case::waits("fragments_meet_their_datagram", fragments_meet_their_datagram),
];

/// A fixture with services of its own, as a file says them.
fn fixture(sandbox: &Sandbox, name: &str, services: &str) -> Result<Fixture> {
    let fixture = Fixture::idle(sandbox, name)?;
    apply(&fixture, services)?;
    fixture.wait_up(&[])?;
    Ok(fixture)
}

fn apply(fixture: &Fixture, services: &str) -> Result<String> {
    let document = configuration(&fixture.fabric, Health::QUICK);
    let document = Document { services: Vec::new(), ..document };
    fixture.balancer.apply(&format!("{}\n{services}", document.text()))
}

/// Who says its name on a fresh connection.
fn name_of(node: &Node, from: SocketAddr, to: SocketAddr) -> Result<String> {
    let ask = || -> Result<String> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&from.into())?;
        socket.connect_timeout(&to.into(), PATIENCE)?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut name, mut byte) = (String::new(), [0]);
        while stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
            name.push(char::from(byte[0]));
        }
        Ok(name)
    };
    node.enter(ask)?.with_context(|| format!("{from} to {to}"))
}

/// What `explain` says: verdict, and the backend's name.
fn explained(
    fixture: &Fixture,
    protocol: &str,
    from: SocketAddr,
    to: SocketAddr,
) -> Result<(String, Option<String>)> {
    let said = fixture.balancer.explain(from, to, protocol)?;
    let Some(choice) = said.choice else { return Ok((said.verdict, None)) };
    Ok((said.verdict, Some(fixture.at(choice.backend)?.name().to_owned())))
}

/// Rows of services: name, endpoint, packets.
fn services(fixture: &Fixture) -> Result<Vec<(String, String, u64)>> {
    let services = fixture.balancer.stats()?.services.into_iter();
    Ok(services.map(|it| (it.service, it.endpoint, it.packets)).collect())
}

/// One port and a range of one service, and none of those beside it; it is counted and shown as one.
fn a_range_is_one_service(sandbox: &Sandbox) -> Result<()> {
    let (v4, v6) = (Tunnel::Ipip, Tunnel::Ip6Ip6);
    let services_of = |ports: &str| {
        format!(
            "[[service]]\nname = \"web\"\naddress = \"{}\"\nports = {ports}\nprotocol = \"tcp\"\npool = \"v4\"\n\
             [[service]]\nname = \"web6\"\naddress = \"{}\"\nports = {ports}\nprotocol = \"tcp\"\npool = \"v6\"\n",
            v4.vip(),
            v6.vip(),
        )
    };
    let fixture = fixture(sandbox, "range", &services_of("[80, \"7000-7009\"]"))?;
    let mut echoes = Vec::new();
    for backend in &fixture.fabric.backends {
        for port in [7000, 7004, 7009] {
            echoes.push(Echo::start(&backend.node, &[], port)?);
        }
    }
    let mut random = Random::new(5);
    for tunnel in [v4, v6] {
        for port in [80, 7000, 7004, 7009] {
            let (from, to) = (random.client(tunnel.vip()), tunnel.endpoint(port));
            let (_, chosen) = explained(&fixture, "tcp", from, to)?;
            let name = match port {
                80 => name_over_http(&fixture.fabric.client, from, to)?,
                _ => name_of(&fixture.fabric.client, from, to)?,
            };
            ensure!(chosen.as_ref() == Some(&name), "{to}: {name} answered, explained {chosen:?}");
        }
        for port in [79, 81, 6999, 7010] {
            let (from, to) = (random.client(tunnel.vip()), tunnel.endpoint(port));
            let said = explained(&fixture, "tcp", from, to)?;
            ensure!(said == ("unserved".into(), None), "{to}: {said:?}");
        }
    }
    let rows = services(&fixture)?;
    let endpoints: Vec<_> = rows.iter().map(|(name, endpoint, _)| (&**name, endpoint)).collect();
    let spelt = [format!("{}:80,7000-7009", v4.vip()), format!("[{}]:80,7000-7009", v6.vip())];
    ensure!(endpoints == [("web", &spelt[0]), ("web6", &spelt[1])], "{endpoints:?}");
    ensure!(rows.iter().all(|(_, _, packets)| *packets > 0), "{rows:?}");
    // What goes of the range ends; the rest of it is as it was.
    let changed = apply(&fixture, &services_of("[80, \"7000-7004\"]"))?;
    ensure!(changed.contains("ports: 80,7000-7009 -> 80,7000-7004"), "{changed}");
    let from = random.client(v4.vip());
    ensure!(explained(&fixture, "tcp", from, v4.endpoint(7009))?.0 == "unserved");
    ensure!(name_of(&fixture.fabric.client, from, v4.endpoint(7004)).is_ok());
    Ok(())
}

/// By port: whoever asks for a port meets its one backend, and ports are spread over backends. A port of
/// another service beside it is that one's.
fn a_port_has_one_backend(sandbox: &Sandbox) -> Result<()> {
    let tunnel = Tunnel::Ipip;
    let both = format!(
        "[[service]]\nname = \"shards\"\naddress = \"{0}\"\nany_port = true\nprotocol = \"tcp\"\n\
         pool = \"v4\"\naffinity = \"port\"\n\
         [[service]]\nname = \"web\"\naddress = \"{0}\"\nport = 80\nprotocol = \"tcp\"\npool = \"v4\"\n",
        tunnel.vip(),
    );
    let fixture = fixture(sandbox, "shards", &both)?;
    let ports = [1, 2_000, 2_001, 2_002, 2_003, 40_000, 50_000, 65_535];
    let mut echoes = Vec::new();
    for backend in &fixture.fabric.backends {
        for port in ports {
            echoes.push(Echo::start(&backend.node, &[], port)?);
        }
    }
    let mut random = Random::new(6);
    let mut seen = BTreeSet::new();
    for port in ports {
        let to = tunnel.endpoint(port);
        let mut names = BTreeSet::new();
        for _ in 0..5 {
            let from = random.client(tunnel.vip());
            names.extend(explained(&fixture, "tcp", from, to)?.1);
            names.insert(name_of(&fixture.fabric.client, from, to)?);
        }
        ensure!(names.len() == 1, "{to}: {names:?}");
        seen.extend(names);
    }
    ensure!(seen.len() > 1, "all ports at {seen:?}");
    let before = services_packets(&fixture, "shards")?;
    let mut names = BTreeSet::new();
    for _ in 0..20 {
        let from = random.client(tunnel.vip());
        names.insert(name_over_http(&fixture.fabric.client, from, tunnel.endpoint(80))?);
    }
    ensure!(names.len() > 1, "all connections to port 80 at {names:?}");
    ensure!(services_packets(&fixture, "shards")? == before, "port 80 is that of any");
    let endpoint = format!("{}:any", tunnel.vip());
    let rows = services(&fixture)?;
    ensure!(rows.iter().any(|row| (&*row.0, &row.1) == ("shards", &endpoint)), "{rows:?}");
    Ok(())
}

fn services_packets(fixture: &Fixture, name: &str) -> Result<u64> {
    let rows = services(fixture)?;
    rows.iter().find(|row| row.0 == name).map(|row| row.2).context("no such service")
}

/// Servers that answer a datagram with their name and what they got.
struct Digests {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Digests {
    fn start(fixture: &Fixture, vips: &[IpAddr], port: u16) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for backend in &fixture.fabric.backends {
            for vip in vips {
                let address = SocketAddr::new(*vip, port);
                let socket = backend.node.enter(|| UdpSocket::bind(address))??;
                socket.set_read_timeout(Some(TICK))?;
                let (name, stop) = (backend.name().to_owned(), stop.clone());
                threads.push(std::thread::spawn(move || {
                    let mut buffer = vec![0; 65_536];
                    while !stop.load(Ordering::Relaxed) {
                        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                            let answer = format!("{name} {}", digest(&buffer[..length]));
                            // A client that is gone needs no answer.
                            let _ = socket.send_to(answer.as_bytes(), from);
                        }
                    }
                }));
            }
        }
        Ok(Self { stop, threads })
    }
}

impl Drop for Digests {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

/// Length, and a sum in which each byte's place counts.
fn digest(bytes: &[u8]) -> String {
    let fold = |sum: u64, byte: &u8| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte);
    format!("{} {:016x}", bytes.len(), bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// The answer to a datagram, or `None` where none comes.
fn sent(node: &Node, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Result<Option<String>> {
    node.enter(|| {
        let socket = UdpSocket::bind(from).with_context(|| format!("bind {from}"))?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send(bytes)?;
        let mut buffer = [0; 128];
        Ok(match socket.recv(&mut buffer) {
            Ok(length) => Some(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(_) => None,
        })
    })?
}

/// A datagram of 8,000 bytes arrives whole, where the client's others go; and does not where fragments are
/// not served.
fn fragments_meet_their_datagram(sandbox: &Sandbox) -> Result<()> {
    const PORT: u16 = 5_000;
    let tunnels = [(Tunnel::Ipip, "port = 5000"), (Tunnel::Ip6Ip6, "any_port = true")];
    let services_of = |fragments: &str| {
        let service = |(tunnel, ports): (Tunnel, &str)| {
            format!(
                "[[service]]\nname = \"{}\"\naddress = \"{}\"\n{ports}\nprotocol = \"udp\"\npool = \"{}\"\n\
                 affinity = \"client\"\nfragments = \"{fragments}\"\n",
                tunnel.name(),
                tunnel.vip(),
                tunnel.pool(),
            )
        };
        tunnels.map(service).concat()
    };
    let fixture = fixture(sandbox, "fragments", &services_of("served"))?;
    let _servers = Digests::start(&fixture, &tunnels.map(|(tunnel, _)| tunnel.vip()), PORT)?;
    let client = &fixture.fabric.client;
    let mut random = Random::new(9);
    for (tunnel, _) in tunnels {
        let mut seen = BTreeSet::new();
        for _ in 0..12 {
            let from = random.client(tunnel.vip());
            let to = tunnel.endpoint(PORT);
            let content = random.bytes(LARGE);
            let before = services_packets(&fixture, tunnel.name())?;
            let answer = sent(client, from, to, &content)?;
            let answer = answer.with_context(|| format!("{from} to {to}: no answer"))?;
            let (name, got) = answer.split_once(' ').context("an answer")?;
            ensure!(got == digest(&content), "{from} to {to}: {name} got {got}");
            // 8,008 bytes in pieces that fit 1,500.
            let pieces = services_packets(&fixture, tunnel.name())? - before;
            ensure!(pieces == 6, "{from} to {to}: {pieces} pieces");
            // From another port, in one piece: the same.
            let other = SocketAddr::new(from.ip(), from.port() ^ 1);
            let answer = sent(client, other, to, b"?")?.context("no answer")?;
            ensure!(answer.starts_with(&format!("{name} 1 ")), "{name} and then {answer}");
            ensure!(explained(&fixture, "udp", from, to)?.1.as_deref() == Some(name));
            seen.insert(name.to_owned());
        }
        ensure!(seen.len() > 1, "all clients at {seen:?}");
    }
    ensure!(fixture.balancer.packets("fragment")? == 0);
    apply(&fixture, &services_of("dropped"))?;
    for (tunnel, _) in tunnels {
        let (from, to) = (random.client(tunnel.vip()), tunnel.endpoint(PORT));
        let before = (fixture.balancer.packets("fragment")?, fixture.balancer.packets("unserved")?);
        let answer = sent(client, from, to, &random.bytes(LARGE))?;
        ensure!(answer.is_none(), "{from} to {to}: {answer:?}");
        let after = (fixture.balancer.packets("fragment")?, fixture.balancer.packets("unserved")?);
        ensure!((after.0 - before.0, after.1 - before.1) == (1, 5), "{before:?}, then {after:?}");
    }
    Ok(())
}
