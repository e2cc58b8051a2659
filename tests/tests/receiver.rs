//! What a receiver hands to real sockets. A corrupt segment reaches none, whatever was noted of the checksum
//! around it: on its way it passes a router whose GRO finds outer checksums right and says so to who comes after.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::verdict::Action;
use lb_daemon::dataplane::ReceiverMaps;
use lb_tests::{
    daemon::{Binaries, Receiver},
    harness,
    packets::frames::{ETHERNET, Flow, Packet},
    process::{PATIENCE, until},
    sandbox::{self, Sandbox},
    scene::{self, ECHO, Health, Scene},
    topology::{Fabric, Node, Topology},
    traffic::{Stream, name_over_udp},
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BACKEND: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const VIP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const MTU: u32 = 1600;

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("no_corrupt_segment_reaches_a_socket_native", |sandbox| corrupt(sandbox, "native")),
            ("no_corrupt_segment_reaches_a_socket_generic", |sandbox| corrupt(sandbox, "generic")),
            ("no_corrupt_segment_reaches_a_socket_at_tc", |sandbox| corrupt(sandbox, "tc")),
            ("what_a_balancer_sends_in_gue_arrives", gue_from_a_balancer),
        ],
    )
}

/// How a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tunnel {
    Ipip,
    /// With a UDP checksum that is right.
    Summed,
    /// With a UDP checksum of zero.
    Unsummed,
}

struct Network {
    _net: Topology,
    sender: Node,
    backend: Node,
    bpffs: PathBuf,
    /// The stack has no note of outer checksums, and finds what is wrong inside.
    is_at_tc: bool,
    _receiver: Receiver,
}

impl Network {
    fn new(sandbox: &Sandbox, mode: &str) -> Result<Self> {
        let mut net = Topology::new(sandbox, mode)?;
        let (sender, router) = (net.node("sender")?, net.node("router")?);
        let backend = net.node("backend")?;
        net.link(&sender, "eth0", &router, "sender", MTU)?;
        net.link(&backend, "eth0", &router, "backend", MTU)?;
        sender.ip(&format!("address add {SENDER}/24 dev eth0\nroute add default via 10.0.0.1"))?;
        router.sysctls(&[("net.ipv4.ip_forward", "1")])?;
        router.ip("address add 10.0.0.1/24 dev sender\naddress add 10.1.0.1/24 dev backend")?;
        backend.ip(&format!(
            "address add {BACKEND}/24 dev eth0\nroute add default via 10.1.0.1\n\
             address add {VIP}/32 dev lo"
        ))?;
        net.ready()?;
        let (sources, vips) = ([SENDER.into()], [VIP.into()]);
        let more = if mode == "tc" { ["--hook", "tc"] } else { ["--xdp-mode", mode] };
        let binaries = Binaries::find()?;
        let receiver = Receiver::start_with(sandbox, &binaries, &backend, &sources, &vips, &more)?;
        let bpffs = sandbox.bpffs(backend.namespace())?;
        let is_at_tc = mode == "tc";
        Ok(Self { _net: net, sender, backend, bpffs, is_at_tc, _receiver: receiver })
    }

    /// Sends an IP packet to the backend in a tunnel. The kernel makes the outer IP header.
    fn send(&self, tunnel: Tunnel, packet: &[u8]) -> Result<()> {
        let (protocol, payload) = match tunnel {
            Tunnel::Ipip => (4, packet.to_vec()),
            Tunnel::Summed | Tunnel::Unsummed => (17, gue(tunnel, packet)),
        };
        self.sender.enter(|| {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)))?;
            socket.send_to(&payload, &SockAddr::from(SocketAddr::new(BACKEND.into(), 0)))?;
            Ok(())
        })?
    }

    /// A counter of the backend's stack, as /proc/net/snmp has it.
    fn counter(&self, protocol: &str, name: &str) -> Result<u64> {
        let text = self.backend.run("cat", ["/proc/net/snmp"])?;
        let head = format!("{protocol}: ");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&head));
        let (names, values) =
            (lines.next().context("no names")?, lines.next().context("no values")?);
        let mut pairs = names.split(' ').zip(values.split(' '));
        let (_, value) = pairs.find(|(found, _)| *found == name).context("no such counter")?;
        Ok(value.parse()?)
    }

    /// Packets that the receiver counted under a verdict.
    fn verdict(&self, name: &str) -> Result<u64> {
        let counters = ReceiverMaps::open(&self.bpffs)?.verdicts()?;
        let found = counters.into_iter().find(|(verdict, _)| verdict.name() == name);
        Ok(found.context("no such verdict")?.1.packets)
    }
}

/// UDP and GUE headers around a packet.
fn gue(tunnel: Tunnel, packet: &[u8]) -> Vec<u8> {
    let flow = Flow {
        client: SocketAddr::new(SENDER.into(), 49_153),
        vip: SocketAddr::new(BACKEND.into(), 6_080),
    };
    let frame = Packet::new(flow).payload(&[&[0, 4, 0, 0], packet].concat()).udp();
    let mut datagram = frame[ETHERNET + 20..].to_vec();
    if tunnel == Tunnel::Unsummed {
        datagram[6..8].fill(0);
    }
    datagram
}

/// A packet of the sender's to the VIP.
fn packet(from: u16, to: u16, payload: &[u8]) -> Packet {
    let client = SocketAddr::new(IpAddr::V4(SENDER), from);
    Packet::new(Flow { client, vip: SocketAddr::new(VIP.into(), to) }).payload(payload)
}

/// The packet of a frame with a bit of its last byte turned over.
fn turned(frame: &[u8]) -> Vec<u8> {
    let mut packet = frame[ETHERNET..].to_vec();
    if let Some(last) = packet.last_mut() {
        *last ^= 1;
    }
    packet
}

fn corrupt(sandbox: &Sandbox, mode: &str) -> Result<()> {
    let network = Network::new(sandbox, mode)?;
    let (udp, _tcp) = network.backend.enter(|| -> Result<_> {
        Ok((UdpSocket::bind((VIP, 5_353))?, TcpListener::bind((VIP, 80))?))
    })??;
    udp.set_read_timeout(Some(PATIENCE))?;
    for tunnel in [Tunnel::Ipip, Tunnel::Summed, Tunnel::Unsummed] {
        datagrams(&network, &udp, tunnel).with_context(|| format!("{tunnel:?}: datagrams"))?;
        segments(&network, tunnel).with_context(|| format!("{tunnel:?}: segments"))?;
    }
    Ok(())
}

/// Pools change to GUE and keep their connections, in every form of tunnel; to a port where none ends nothing
/// gets through, so it was GUE.
fn gue_from_a_balancer(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "gue", Health::QUICK)?;
    let client = &scene.fabric.client;
    let mut streams = Vec::new();
    for tunnel in scene::Tunnel::ALL {
        for seed in 0..3 {
            streams.push(Stream::open(client, tunnel.endpoint(ECHO), seed)?);
        }
    }
    let change = |port| -> Result<()> {
        for pool in ["v4", "v6"] {
            let to = ["pool", "update", pool, "--encapsulation", "gue", "--gue-port", port];
            scene.balancer.cli(&to)?;
        }
        Ok(())
    };
    change("6080")?;
    Stream::all_go_on(&streams).context("open before the change")?;
    Stream::finish_all(streams).context("open before the change")?;
    for tunnel in scene::Tunnel::ALL {
        let (from, to) = (any(tunnel.vip()), tunnel.endpoint(ECHO));
        name_over_udp(client, from, to).with_context(|| format!("{tunnel:?}: a datagram"))?;
        let stream =
            Stream::open(client, to, 9).with_context(|| format!("{tunnel:?}: a stream"))?;
        Stream::finish_all([stream]).with_context(|| format!("{tunnel:?}: a stream"))?;
    }
    for backend in &scene.fabric.backends {
        let bpffs = sandbox.bpffs(backend.node.namespace())?;
        for (verdict, counter) in ReceiverMaps::open(&bpffs)?.verdicts()? {
            let is_fault = verdict.action() == Action::Drop && counter.packets > 0;
            ensure!(!is_fault, "{}: {} {}", backend.name(), counter.packets, verdict.name());
        }
    }
    change("6081")?;
    for tunnel in scene::Tunnel::ALL {
        let lost = name_over_udp(client, any(tunnel.vip()), tunnel.endpoint(ECHO));
        ensure!(lost.is_err(), "{tunnel:?}: answered by another port: {lost:?}");
    }
    Ok(())
}

/// Any port of an address of the client's that speaks the VIP's version.
fn any(vip: IpAddr) -> SocketAddr {
    let client = match vip {
        IpAddr::V4(_) => IpAddr::from(Fabric::CLIENT_V4),
        IpAddr::V6(_) => Fabric::CLIENT_V6.into(),
    };
    SocketAddr::new(client, 0)
}

/// Of three datagrams the one in the middle is corrupt.
fn datagrams(network: &Network, socket: &UdpSocket, tunnel: Tunnel) -> Result<()> {
    let before = found(network, "Udp")?;
    let frame = |payload: &[u8]| packet(7, 5_353, payload).udp();
    network.send(tunnel, &frame(b"first")[ETHERNET..])?;
    network.send(tunnel, &turned(&frame(b"second")))?;
    network.send(tunnel, &frame(b"third")[ETHERNET..])?;
    for expected in [&b"first"[..], b"third"] {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer)?;
        ensure!(&buffer[..length] == expected, "{:?}", String::from_utf8_lossy(&buffer[..length]));
    }
    blamed(network, tunnel, before, found(network, "Udp")?)
}

/// Of two SYNs the first is corrupt. Only the second is answered.
fn segments(network: &Network, tunnel: Tunnel) -> Result<()> {
    let before = found(network, "Tcp")?;
    let sent = network.counter("Tcp", "OutSegs")?;
    let port = 2_000 + 10 * tunnel as u16;
    network.send(tunnel, &turned(&packet(port, 80, b"?").tcp("S")))?;
    network.send(tunnel, &packet(port + 1, 80, b"?").tcp("S")[ETHERNET..])?;
    until("a SYN is answered", PATIENCE, || {
        Ok((network.counter("Tcp", "OutSegs")? > sent).then_some(()))
    })?;
    // The sender knows of no connection and says so, before anything is said again.
    let answers = network.counter("Tcp", "OutSegs")? - sent;
    ensure!(answers == 1, "{answers} answers");
    blamed(network, tunnel, before, found(network, "Tcp")?)
}

/// Wrong checksums that the stack found, and that the receiver found.
fn found(network: &Network, protocol: &str) -> Result<(u64, u64)> {
    Ok((network.counter(protocol, "InCsumErrors")?, network.verdict("inner_checksum")?))
}

/// Who found the wrong checksum of a tunnel.
fn blamed(network: &Network, tunnel: Tunnel, before: (u64, u64), after: (u64, u64)) -> Result<()> {
    let by = (after.0 - before.0, after.1 - before.1);
    let is_stack = tunnel == Tunnel::Ipip || network.is_at_tc;
    let expected = if is_stack { (1, 0) } else { (0, 1) };
    ensure!(
        by == expected,
        "found by the stack and by the receiver: {by:?}, expected {expected:?}"
    );
    Ok(())
}
