//! The receiver at tc's hook: attached by filters before Linux 6.6, and behind VLANs, of which the kernel keeps
//! the outermost tag beside a packet. And, at either hook, beside the kernel's own tunnel devices.

use std::{
    net::{IpAddr, Ipv4Addr, UdpSocket},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::verdict::Verdict;
use lb_e2e::fixture::Tunnel;
use lb_maps::ReceiverMaps;
use lb_tests::{
    daemon::{Binaries, Receiver},
    packets::frames::{ETHERNET, Flow, Packet},
    sandbox::Sandbox,
    topology::{Fabric, Node, Topology},
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::tunnels::{DEVICES, Network};

const AT_TC: [&str; 2] = ["--hook", "tc"];

/// Datagrams and connections get through all forms of tunnel, in IP and in GUE.
pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "tc")?;
    let (sources, vips) =
        ([Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()], Tunnel::ALL.map(Tunnel::vip));
    let mut receivers = Vec::new();
    for backend in network.backends() {
        let (binaries, node) = (Binaries::find()?, &backend.node);
        receivers.push(Receiver::start_with(sandbox, &binaries, node, &sources, &vips, &AT_TC)?);
    }
    network.carry().context("IP in IP")?;
    for pool in ["v4", "v6"] {
        network.balancer.cli(&["pool", "update", pool, "--encapsulation", "gue"])?;
    }
    network.carry().context("GUE")
}

/// Where the kernel's own devices take tunnels apart too, those of balancers are the receiver's; a tunnel of
/// somebody else's is its device's. At either hook.
pub(super) fn run_beside(sandbox: &Sandbox) -> Result<()> {
    for (name, hook) in [("besidexdp", &["--xdp-mode", "native"]), ("besidetc", &AT_TC)] {
        beside(sandbox, name, hook).with_context(|| hook.join(" "))?;
    }
    Ok(())
}

fn beside(sandbox: &Sandbox, name: &str, hook: &[&str]) -> Result<()> {
    let network = Network::new(sandbox, name)?;
    let (sources, vips) =
        ([Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()], Tunnel::ALL.map(Tunnel::vip));
    let mut receivers = Vec::new();
    for backend in network.backends() {
        backend.node.ip(&DEVICES.replace("{v6}", &backend.v6.to_string()))?;
        let (binaries, node) = (Binaries::find()?, &backend.node);
        receivers.push(Receiver::start_with(sandbox, &binaries, node, &sources, &vips, hook)?);
    }
    network.carry()?;
    for backend in network.backends() {
        for device in ["tunl0", "sit0", "tunl6"] {
            let taken = received(&backend.node, device)?;
            ensure!(taken == 0, "{}: {device} took {taken} packets", backend.name());
        }
    }

    // Another end of a tunnel, which no list names.
    let backend = network.backends().next().context("no backend")?;
    let (here, there) = (Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2));
    let client = &network.fabric.client;
    let ends = [
        (client, here, IpAddr::V4(Fabric::CLIENT_V4), backend.v4.into()),
        (&backend.node, there, IpAddr::from(backend.v4), IpAddr::V4(Fabric::CLIENT_V4)),
    ];
    for (node, inner, local, remote) in ends {
        node.ip(&format!(
            "link add name peer type ipip local {local} remote {remote}\nlink set peer up\n\
             address add {inner}/30 dev peer"
        ))?;
    }
    let open = |node: &Node, address: Ipv4Addr| -> Result<UdpSocket> {
        let socket = node.enter(|| UdpSocket::bind((address, 7_777)))??;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(socket)
    };
    let (asks, answers) = (open(client, here)?, open(&backend.node, there)?);
    let mut word = [0; 16];
    asks.send_to(b"asked", (there, 7_777))?;
    let (length, from) = answers.recv_from(&mut word).context("another's tunnel")?;
    ensure!(&word[..length] == b"asked" && from.ip() == here, "from {from}");
    answers.send_to(b"answered", from)?;
    let length = asks.recv(&mut word).context("the answer by another's tunnel")?;
    ensure!(&word[..length] == b"answered");
    ensure!(received(&backend.node, "peer")? > 0, "it came by another way");
    Ok(())
}

/// Packets that a device of a node's took.
fn received(node: &Node, device: &str) -> Result<u64> {
    let link = node.ip_json(&format!("-statistics link show dev {device}"))?;
    link[0]["stats64"]["rx"]["packets"].as_u64().context("no counter")
}

/// What a tunnel brings by one VLAN is its VLAN's; by one in another too, where the receiver is on the outer
/// one's interface. On the card it leaves those as they are.
pub(super) fn run_tagged(sandbox: &Sandbox) -> Result<()> {
    const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const VIP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    let mut net = Topology::new(sandbox, "tagged")?;
    let (sender, backend) = (net.node("sender")?, net.node("backend")?);
    net.link(&sender, "eth0", &backend, "eth0", 1600)?;
    // One tag on 10.0.0.0/24, two on 10.0.1.0/24.
    for (node, host) in [(&sender, 2), (&backend, 3)] {
        node.ip(&format!(
            "link add link eth0 name one type vlan id 10\nlink set one up\n\
             address add 10.0.0.{host}/24 dev one\n\
             link add link eth0 name outer type vlan proto 802.1ad id 7\nlink set outer up\n\
             link add link outer name two type vlan id 20\nlink set two up\n\
             address add 10.0.1.{host}/24 dev two"
        ))?;
    }
    backend.ip(&format!("address add {VIP}/32 dev lo"))?;
    net.ready()?;
    let (sources, vips) = ([SENDER.into(), Ipv4Addr::new(10, 0, 1, 2).into()], [VIP.into()]);
    let more = [&AT_TC[..], &["--interface", "outer"]].concat();
    let _receiver =
        Receiver::start_with(sandbox, &Binaries::find()?, &backend, &sources, &vips, &more)?;
    let socket = backend.enter(|| UdpSocket::bind((VIP, 5_353)))??;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    for (number, (to, name)) in
        [([10, 0, 0, 3], "one"), ([10, 0, 1, 3], "two")].into_iter().enumerate()
    {
        let client = (IpAddr::V4(SENDER), 7).into();
        let flow = Flow { client, vip: (IpAddr::V4(VIP), 5_353).into() };
        let packet = Packet::new(flow).payload(name.as_bytes()).udp();
        // As the kernel sees it, it comes out of the VLAN that it came in by.
        let before = received(&backend, name)?;
        sender.enter(|| -> Result<()> {
            let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(4)))?;
            let to = SockAddr::from(std::net::SocketAddr::from((to, 0)));
            raw.send_to(&packet[ETHERNET..], &to)?;
            Ok(())
        })??;
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).with_context(|| format!("VLAN {name}"))?;
        ensure!(&buffer[..length] == name.as_bytes(), "VLAN {name}: {:?}", &buffer[..length]);
        let verdicts = ReceiverMaps::open(&sandbox.bpffs(backend.namespace())?)?.verdicts()?;
        let opened = verdicts.into_iter().find(|(verdict, _)| *verdict == Verdict::Decapsulated);
        let counted = opened.map(|(_, counter)| (counter.packets, counter.bytes));
        // Headers of Ethernet, twice of IP, of UDP, three letters; and a tag.
        let count = number as u64 + 1;
        ensure!(counted == Some((count, 69 * count)), "VLAN {name}: {counted:?}");
        ensure!(received(&backend, name)? > before, "VLAN {name}: saw nothing");
    }
    Ok(())
}
