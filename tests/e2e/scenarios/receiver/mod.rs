//! What a receiver hands to real sockets. A corrupt segment reaches none, whatever was noted of the checksum
//! around it: on its way it passes a router whose GRO finds outer checksums right and says so to who comes after.

mod endpoints;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::verdict::Action;
use lb_e2e::{
    fixture::{self, ECHO, Fixture, Health},
    harness::Case,
};
use lb_maps::ReceiverMaps;
use lb_tests::{
    daemon::{Binaries, Receiver},
    packets::frames::{ETHERNET, Flow, Packet},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::{Fabric, Node, Topology},
    traffic::{Stream, name_over_udp},
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Of both versions.
const SENDER: Both = (Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
const BACKEND: Both = (Ipv4Addr::new(10, 1, 0, 2), Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 2));
const VIP: Both = (Ipv4Addr::new(203, 0, 113, 1), Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1));
const MTU: u32 = 1600;

type Both = (Ipv4Addr, Ipv6Addr);

pub(crate) const CASES: &[Case] = &[
    Case::waits("no_corrupt_segment_reaches_a_socket_native", |sandbox| corrupt(sandbox, "native")),
    Case::waits("no_corrupt_segment_reaches_a_socket_generic", |sandbox| {
        corrupt(sandbox, "generic")
    }),
    Case::waits("no_corrupt_segment_reaches_a_socket_at_tc", |sandbox| corrupt(sandbox, "tc")),
    Case::waits("what_a_balancer_sends_in_gue_arrives", gue_from_a_balancer),
    Case::waits("a_tunnel_to_another_host_goes_through_native", |sandbox| {
        endpoints::goes_through(sandbox, "native")
    }),
    Case::waits("a_tunnel_to_another_host_goes_through_at_tc", |sandbox| {
        endpoints::goes_through(sandbox, "tc")
    }),
    Case::waits("endpoints_follow_the_addresses_of_the_host", endpoints::follow),
    Case::waits("addresses_that_came_unnoticed_are_found", endpoints::lost_events),
    Case::waits("a_listed_endpoint_need_not_be_an_address", endpoints::listed),
    Case::waits("pins_without_endpoints_are_taken_over_without_a_loss", endpoints::upgrade),
];

/// How a packet is sent: in what, and over which IP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tunnel {
    kind: Kind,
    outer: Version,
    inner: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

impl Version {
    fn of(self, both: Both) -> IpAddr {
        match self {
            Self::V4 => both.0.into(),
            Self::V6 => both.1.into(),
        }
    }

    /// Its number as what another IP packet holds.
    fn protocol(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 41,
        }
    }

    /// Length of its header, bytes.
    fn header(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
        sender.ip(&format!(
            "address add {}/24 dev eth0\nroute add default via 10.0.0.1\n\
             address add {}/64 dev eth0 nodad\nroute add default via fd00::1",
            SENDER.0, SENDER.1
        ))?;
        router.sysctls(&[("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")])?;
        router.ip("address add 10.0.0.1/24 dev sender\naddress add 10.1.0.1/24 dev backend\n\
             address add fd00::1/64 dev sender nodad\naddress add fd00:1::1/64 dev backend nodad")?;
        backend.ip(&format!(
            "address add {}/24 dev eth0\nroute add default via 10.1.0.1\n\
             address add {}/64 dev eth0 nodad\nroute add default via fd00:1::1\n\
             address add {}/32 dev lo\naddress add {}/128 dev lo nodad",
            BACKEND.0, BACKEND.1, VIP.0, VIP.1
        ))?;
        net.ready()?;
        let (sources, vips) = ([SENDER.0.into(), SENDER.1.into()], [VIP.0.into(), VIP.1.into()]);
        let more = if mode == "tc" { ["--hook", "tc"] } else { ["--xdp-mode", mode] };
        let binaries = Binaries::find()?;
        let receiver = Receiver::start_with(sandbox, &binaries, &backend, &sources, &vips, &more)?;
        let bpffs = sandbox.bpffs(backend.namespace())?;
        let is_at_tc = mode == "tc";
        Ok(Self { _net: net, sender, backend, bpffs, is_at_tc, _receiver: receiver })
    }

    /// Sends an IP packet to the backend in a tunnel.
    fn send(&self, tunnel: Tunnel, packet: &[u8]) -> Result<()> {
        send(&self.sender, tunnel, BACKEND, packet)
    }

    /// A counter of the backend's stack, as /proc/net/snmp has it, and /proc/net/snmp6 what there is of UDP
    /// over IPv6.
    fn counter(&self, protocol: &str, name: &str) -> Result<u64> {
        if protocol == "Udp6" {
            let text = self.backend.run("cat", ["/proc/net/snmp6"])?;
            let wanted = format!("{protocol}{name}");
            let mut lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
            let (_, value) =
                lines.find(|(found, _)| *found == wanted).context("no such counter")?;
            return Ok(value.trim().parse()?);
        }
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
        verdict(&self.bpffs, name)
    }
}

/// Packets that a receiver counted under a verdict.
fn verdict(bpffs: &Path, name: &str) -> Result<u64> {
    let counters = ReceiverMaps::open(bpffs)?.verdicts()?;
    let found = counters.into_iter().find(|(verdict, _)| verdict.name() == name);
    Ok(found.context("no such verdict")?.1.packets)
}

/// Sends an IP packet in a tunnel. The kernel makes the outer IP header.
fn send(from: &Node, tunnel: Tunnel, to: Both, packet: &[u8]) -> Result<()> {
    let (protocol, payload) = match tunnel.kind {
        Kind::Ipip => (tunnel.inner.protocol(), packet.to_vec()),
        Kind::Summed | Kind::Unsummed => (17, gue(tunnel, to, packet)),
    };
    let to = SocketAddr::new(tunnel.outer.of(to), 0);
    from.enter(|| {
        let domain = Domain::for_address(to);
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(i32::from(protocol))))?;
        socket.send_to(&payload, &SockAddr::from(to))?;
        Ok(())
    })?
}

/// UDP and GUE headers around a packet.
fn gue(tunnel: Tunnel, to: Both, packet: &[u8]) -> Vec<u8> {
    let Tunnel { kind, outer, inner } = tunnel;
    let flow = Flow {
        client: SocketAddr::new(outer.of(SENDER), 49_153),
        vip: SocketAddr::new(outer.of(to), 6_080),
    };
    let frame = Packet::new(flow).payload(&[&[0, inner.protocol(), 0, 0], packet].concat()).udp();
    let mut datagram = frame[ETHERNET + outer.header()..].to_vec();
    if kind == Kind::Unsummed {
        datagram[6..8].fill(0);
    }
    datagram
}

/// A packet of the sender's to the VIP.
fn packet(version: Version, from: u16, to: u16, payload: &[u8]) -> Packet {
    let client = SocketAddr::new(version.of(SENDER), from);
    Packet::new(Flow { client, vip: SocketAddr::new(version.of(VIP), to) }).payload(payload)
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
    let mut port = 2_000;
    for inner in [Version::V4, Version::V6] {
        let vip = inner.of(VIP);
        let (udp, _tcp) = network.backend.enter(|| -> Result<_> {
            Ok((UdpSocket::bind((vip, 5_353))?, TcpListener::bind((vip, 80))?))
        })??;
        udp.set_read_timeout(Some(PATIENCE))?;
        for outer in [Version::V4, Version::V6] {
            for kind in [Kind::Ipip, Kind::Summed, Kind::Unsummed] {
                let tunnel = Tunnel { kind, outer, inner };
                let what = |of: &str| format!("{tunnel:?}: {of}");
                datagrams(&network, &udp, tunnel).with_context(|| what("datagrams"))?;
                port += 10;
                segments(&network, tunnel, port).with_context(|| what("segments"))?;
            }
        }
    }
    Ok(())
}

/// Pools change to GUE and keep their connections, in every form of tunnel; to a port where none ends nothing
/// gets through, so it was GUE.
fn gue_from_a_balancer(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "gue", Health::QUICK)?;
    let client = &fixture.fabric.client;
    let mut streams = Vec::new();
    for tunnel in fixture::Tunnel::ALL {
        for seed in 0..3 {
            streams.push(Stream::open(client, tunnel.endpoint(ECHO), seed)?);
        }
    }
    let change = |port| -> Result<()> {
        for pool in ["v4", "v6"] {
            let to = ["pool", "update", pool, "--encapsulation", "gue", "--gue-port", port];
            fixture.balancer.cli(&to)?;
        }
        Ok(())
    };
    change("6080")?;
    Stream::all_go_on(&streams).context("open before the change")?;
    Stream::finish_all(streams).context("open before the change")?;
    for tunnel in fixture::Tunnel::ALL {
        let (from, to) = (any(tunnel.vip()), tunnel.endpoint(ECHO));
        name_over_udp(client, from, to).with_context(|| format!("{tunnel:?}: a datagram"))?;
        let stream =
            Stream::open(client, to, 9).with_context(|| format!("{tunnel:?}: a stream"))?;
        Stream::finish_all([stream]).with_context(|| format!("{tunnel:?}: a stream"))?;
    }
    for backend in &fixture.fabric.backends {
        let bpffs = sandbox.bpffs(backend.node.namespace())?;
        for (verdict, counter) in ReceiverMaps::open(&bpffs)?.verdicts()? {
            let is_fault = verdict.action() == Action::Drop && counter.packets > 0;
            ensure!(!is_fault, "{}: {} {}", backend.name(), counter.packets, verdict.name());
        }
    }
    change("6081")?;
    for tunnel in fixture::Tunnel::ALL {
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
    let udp = if tunnel.inner == Version::V4 { "Udp" } else { "Udp6" };
    let before = found(network, udp)?;
    let frame = |payload: &[u8]| packet(tunnel.inner, 7, 5_353, payload).udp();
    network.send(tunnel, &frame(b"first")[ETHERNET..])?;
    network.send(tunnel, &turned(&frame(b"second")))?;
    network.send(tunnel, &frame(b"third")[ETHERNET..])?;
    for expected in [&b"first"[..], b"third"] {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer)?;
        ensure!(&buffer[..length] == expected, "{:?}", String::from_utf8_lossy(&buffer[..length]));
    }
    blamed(network, tunnel, before, found(network, udp)?)
}

/// Of two SYNs the first is corrupt. Only the second is answered.
fn segments(network: &Network, tunnel: Tunnel, port: u16) -> Result<()> {
    let before = found(network, "Tcp")?;
    let sent = network.counter("Tcp", "OutSegs")?;
    let syn = |port| packet(tunnel.inner, port, 80, b"?").tcp("S");
    network.send(tunnel, &turned(&syn(port)))?;
    network.send(tunnel, &syn(port + 1)[ETHERNET..])?;
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
    let is_stack = tunnel.kind == Kind::Ipip || network.is_at_tc;
    let expected = if is_stack { (1, 0) } else { (0, 1) };
    ensure!(
        by == expected,
        "found by the stack and by the receiver: {by:?}, expected {expected:?}"
    );
    Ok(())
}
