//! Tunnels end at the host's own addresses and at those that are listed; tunnels of another host with the same VIP
//! pass.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use lb_maps::{Component, Pins, ReceiverMaps};
use lb_tests::{
    daemon::{Binaries, Receiver},
    packets::frames::ETHERNET,
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::{Node, Topology},
};
use nix::sys::signal::Signal;

use super::{BACKEND, Both, Kind, MTU, SENDER, Tunnel, VIP, Version, packet, send, verdict};

/// The host that has a receiver, and sends on to the one behind it.
const HOST: Both = (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
/// Addresses that are sent to the host and are not its own.
const LATER: Both = (Ipv4Addr::new(10, 9, 0, 1), Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1));
/// What the tests send most.
const PLAIN: Tunnel = Tunnel { kind: Kind::Ipip, outer: Version::V4, inner: Version::V4 };
/// Port of the service.
const PORT: u16 = 5_353;

/// A sender, the host, and behind it a machine that serves the same VIP.
struct Network {
    _net: Topology,
    sender: Node,
    host: Node,
    machine: Node,
    bpffs: PathBuf,
    binaries: Binaries,
}

impl Network {
    fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let mut net = Topology::new(sandbox, name)?;
        let (sender, host) = (net.node("sender")?, net.node("host")?);
        let machine = net.node("machine")?;
        net.link(&sender, "eth0", &host, "eth0", MTU)?;
        net.link(&machine, "eth0", &host, "machine", MTU)?;
        sender.ip(&format!(
            "address add {}/24 dev eth0\nroute add default via {}\n\
             address add {}/64 dev eth0 nodad\nroute add default via {}",
            SENDER.0, HOST.0, SENDER.1, HOST.1
        ))?;
        host.sysctls(&[("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")])?;
        let vip =
            format!("address add {}/32 dev lo\naddress add {}/128 dev lo nodad", VIP.0, VIP.1);
        host.ip(&format!(
            "address add {}/24 dev eth0\naddress add {}/64 dev eth0 nodad\n\
             address add 10.1.0.1/24 dev machine\naddress add fd00:1::1/64 dev machine nodad\n{vip}",
            HOST.0, HOST.1
        ))?;
        machine.ip(&format!(
            "address add {}/24 dev eth0\nroute add default via 10.1.0.1\n\
             address add {}/64 dev eth0 nodad\nroute add default via fd00:1::1\n{vip}",
            BACKEND.0, BACKEND.1
        ))?;
        net.ready()?;
        let bpffs = sandbox.bpffs(host.namespace())?;
        Ok(Self { _net: net, sender, host, machine, bpffs, binaries: Binaries::find()? })
    }

    fn receiver(&self, sandbox: &Sandbox, node: &Node, more: &[&str]) -> Result<Receiver> {
        let (sources, vips) = ([SENDER.0.into(), SENDER.1.into()], [VIP.0.into(), VIP.1.into()]);
        Receiver::start_with(sandbox, &self.binaries, node, &sources, &vips, more)
    }

    /// The host's addresses where tunnels end.
    fn endpoints(&self) -> Result<BTreeSet<IpAddr>> {
        Ok(ReceiverMaps::open(&self.bpffs)?.allowed()?.endpoints)
    }

    /// Waits until tunnels end at an address, or no longer do.
    fn wait_for(&self, address: impl Into<IpAddr>, is_there: bool) -> Result<()> {
        let address = address.into();
        until(&format!("{address} as an endpoint: {is_there}"), PATIENCE, || {
            Ok((self.endpoints()?.contains(&address) == is_there).then_some(()))
        })
    }

    fn send(&self, tunnel: Tunnel, to: Both, payload: &[u8]) -> Result<()> {
        let frame = packet(tunnel.inner, 7, PORT, payload).udp();
        send(&self.sender, tunnel, to, &frame[ETHERNET..])
    }

    /// Sends a datagram to the VIP in a tunnel that the host is to leave as it is.
    fn send_past(&self, tunnel: Tunnel, to: Both) -> Result<()> {
        let before = verdict(&self.bpffs, "tunnel_not_local")?;
        self.send(tunnel, to, b"for another host")?;
        until("the host has seen it", PATIENCE, || {
            Ok((verdict(&self.bpffs, "tunnel_not_local")? == before + 1).then_some(()))
        })
    }
}

/// The service at a node.
fn service(node: &Node, version: Version) -> Result<UdpSocket> {
    let socket = node.enter(|| UdpSocket::bind((version.of(VIP), PORT)))??;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// What comes first must be this.
fn takes(socket: &UdpSocket, expected: &[u8]) -> Result<()> {
    let mut buffer = [0; 64];
    let length = socket.recv(&mut buffer).context("nothing arrives")?;
    ensure!(&buffer[..length] == expected, "{:?}", String::from_utf8_lossy(&buffer[..length]));
    Ok(())
}

/// The machine takes its tunnels apart itself, and the host takes its own.
pub(super) fn goes_through(sandbox: &Sandbox, mode: &str) -> Result<()> {
    let network = Network::new(sandbox, mode)?;
    let hook = if mode == "tc" { ["--hook", "tc"] } else { ["--xdp-mode", mode] };
    let _here = network.receiver(sandbox, &network.host, &hook)?;
    let _there = network.receiver(sandbox, &network.machine, &hook)?;
    let mut sent = 0;
    for inner in [Version::V4, Version::V6] {
        let services = [service(&network.host, inner)?, service(&network.machine, inner)?];
        for outer in [Version::V4, Version::V6] {
            for kind in [Kind::Ipip, Kind::Summed, Kind::Unsummed] {
                let tunnel = Tunnel { kind, outer, inner };
                let of = |what| format!("{tunnel:?}: {what}");
                network.send(tunnel, BACKEND, b"machine")?;
                takes(&services[1], b"machine").with_context(|| of("at the machine"))?;
                network.send(tunnel, HOST, b"host")?;
                takes(&services[0], b"host").with_context(|| of("at the host"))?;
                sent += 1;
                let counted =
                    ["tunnel_not_local", "decapsulated"].map(|name| verdict(&network.bpffs, name));
                let [passed, opened] = counted;
                let counted = (passed?, opened?);
                ensure!(counted == (sent, sent), "{tunnel:?}: {counted:?}, {sent} of each");
            }
        }
    }
    Ok(())
}

/// An address that comes, as by DHCP, needs no restart, and one that goes is another host's from then on.
pub(super) fn follow(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "follow")?;
    let _receiver = network.receiver(sandbox, &network.host, &[])?;
    let host = &network.host;
    let own = [HOST.0.into(), IpAddr::from(Ipv4Addr::new(10, 1, 0, 1)), HOST.1.into()];
    let machine = IpAddr::from(Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1));
    let there = BTreeSet::from_iter(own.into_iter().chain([machine]));
    ensure!(network.endpoints()? == there, "no VIP, not loopback's: {:?}", network.endpoints()?);
    for (outer, bits) in [(Version::V4, 32), (Version::V6, 128)] {
        let (tunnel, address) = (Tunnel { outer, ..PLAIN }, outer.of(LATER));
        let service = service(host, tunnel.inner)?;
        network.send_past(tunnel, LATER)?;
        host.ip(&format!("address add {address}/{bits} dev lo"))?;
        network.wait_for(address, true)?;
        network.send(tunnel, LATER, b"now")?;
        takes(&service, b"now")?;
        host.ip(&format!("address del {address}/{bits} dev lo"))?;
        network.wait_for(address, false)?;
        network.send_past(tunnel, LATER)?;
        network.send(tunnel, HOST, b"still")?;
        takes(&service, b"still")?;
    }

    // The sender has this address, and says so when the host asks.
    host.sysctls(&[("net.ipv6.conf.eth0.accept_dad", "1"), ("net.ipv6.conf.all.accept_dad", "1")])?;
    host.ip(&format!("address add {}/64 dev eth0", SENDER.1))?;
    until("a duplicate is found", PATIENCE, || {
        let shown = host.run("ip", ["-6", "address", "show", "dadfailed"])?;
        Ok(shown.contains("fd00::2").then_some(()))
    })?;
    // Nobody has this one, which is so for as long as it takes to ask.
    host.ip("address add fd00::77/64 dev eth0")?;
    network.wait_for(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x77), true)?;
    ensure!(!network.endpoints()?.contains(&SENDER.1.into()), "the sender's address");

    // With an interface go its addresses.
    host.ip("link del machine")?;
    network.wait_for(machine, false)
}

/// The kernel tells more than the socket holds while the daemon stands still.
pub(super) fn lost_events(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "overrun")?;
    let receiver = network.receiver(sandbox, &network.host, &[])?;
    let host = &network.host;
    receiver.running.signal(Signal::SIGSTOP)?;
    let flood: String = (0..2_000)
        .map(|n| {
            let verb = if n % 2 == 0 { "add" } else { "del" };
            format!("address {verb} 10.8.0.1/32 dev lo\n")
        })
        .collect();
    until("events are lost", PATIENCE, || {
        host.ip(&flood)?;
        Ok((crate::next_hops::drops(host)? > 0).then_some(()))
    })?;
    host.ip(&format!("address add {}/32 dev lo\naddress del 10.1.0.1/24 dev machine", LATER.0))?;
    receiver.running.signal(Signal::SIGCONT)?;
    network.wait_for(LATER.0, true)?;
    network.wait_for(Ipv4Addr::new(10, 1, 0, 1), false)?;
    // It goes on listening.
    host.ip(&format!("address del {}/32 dev lo", LATER.0))?;
    network.wait_for(LATER.0, false)
}

/// The host takes packets for a whole prefix, none of whose addresses it has.
pub(super) fn listed(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "listed")?;
    network.host.ip("route add local 10.9.0.0/24 dev lo\nroute add local fd00:9::/64 dev lo")?;
    let settings = network.host.directory().join("receiver.toml");
    let write = |endpoints: &str| fs::write(&settings, format!("tunnel-endpoint = {endpoints}\n"));
    write("[]")?;
    let config = settings.display().to_string();
    let receiver = network.receiver(sandbox, &network.host, &["--config", &config])?;
    for (outer, endpoint) in [(Version::V4, "10.9.0.1"), (Version::V6, "fd00:9::1")] {
        let tunnel = Tunnel { outer, ..PLAIN };
        let service = service(&network.host, tunnel.inner)?;
        network.send_past(tunnel, LATER)?;
        write(&format!("[\"{endpoint}\"]"))?;
        receiver.running.signal(Signal::SIGHUP)?;
        network.wait_for(outer.of(LATER), true)?;
        network.send(tunnel, LATER, b"listed")?;
        takes(&service, b"listed")?;
        // It stays, though the host has none of its addresses.
        network.host.ip("address add 10.9.1.1/32 dev lo")?;
        network.wait_for(Ipv4Addr::new(10, 9, 1, 1), true)?;
        ensure!(network.endpoints()?.contains(&outer.of(LATER)));
        network.host.ip("address del 10.9.1.1/32 dev lo")?;
        write("[]")?;
        receiver.running.signal(Signal::SIGHUP)?;
        network.wait_for(outer.of(LATER), false)?;
        network.send_past(tunnel, LATER)?;
    }
    Ok(())
}

/// The version before had no map of endpoints. Each datagram arrives while its pins are taken over.
pub(super) fn upgrade(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "upgrade")?;
    let mut before = network.receiver(sandbox, &network.host, &[])?;
    let pins = Pins::new(&network.bpffs, Component::Receiver);
    let id = |path: &Path| fs::metadata(path).map(|pin| std::os::unix::fs::MetadataExt::ino(&pin));
    // It is pinned last.
    let program = until("the program's pin", PATIENCE, || Ok(id(&pins.program()).ok()))?;
    before.running.kill()?;
    fs::remove_file(pins.map("ENDPOINTS"))?;
    let service = service(&network.host, Version::V4)?;
    let exchange = |number: u32| -> Result<()> {
        network.send(PLAIN, HOST, &number.to_be_bytes())?;
        takes(&service, &number.to_be_bytes()).with_context(|| format!("datagram {number}"))
    };
    exchange(0)?;
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| network.receiver(sandbox, &network.host, &[]));
        let mut number = 0;
        until("the next program", PATIENCE, || {
            number += 1;
            exchange(number)?;
            Ok((starting.is_finished() && id(&pins.program())? != program).then_some(()))
        })?;
        let _after = starting.join().map_err(|_| anyhow::anyhow!("it panicked"))??;
        ensure!(network.endpoints()?.contains(&HOST.0.into()), "{:?}", network.endpoints()?);
        exchange(number + 1)
    })
}
