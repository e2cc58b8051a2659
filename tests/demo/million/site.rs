//! The network: one link to the balancer, behind which are all clients and all backends, and one like it to the least
//! program that could stand in the balancer's place.
//!
//! ```text
//!   outside                              balancer
//!   10.0.0.0/8 clients (frames) ─┐
//!   172.31.0.N backends ─────────┴─ site ─── eth0   192.168.0.2: the balancer's program
//!                                   floor ── floor  the floor program
//! ```
//!
//! Frames go in and out by one link, and each CPU has a queue of its own: what it sends, the CPU that sends it balances and
//! receives too, as with a network card whose queues each interrupt one CPU. What programs send, health checks above all,
//! has one more queue: whichever CPU sends it polls that queue, and would else draw another CPU's frames to itself.

use std::{net::Ipv4Addr, path::Path};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{MapData, PerCpuArray},
    programs::{Xdp, XdpMode},
};
use lb_tests::{
    sandbox::Sandbox,
    test_run::programs::program,
    topology::{Node, Topology},
};
use nix::net::if_::if_nametoindex;

use super::tally::{ByBackend, Tally, by_backend};

/// The VIP.
pub(crate) const VIP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// Whom the VIP is behind.
const BALANCER: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
/// Room for the outer header.
const MTU: u32 = 1600;
/// The ends of both links outside.
const ENDS: [&str; 2] = ["site", "floor"];

/// What frames pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Balancer,
    Floor,
}

/// The network, and the programs that count what arrives.
pub(crate) struct Site {
    pub(crate) outside: Node,
    pub(crate) balancer: Node,
    /// Indices of the two ends outside.
    ends: [u32; 2],
    sink: Ebpf,
    _floor: Ebpf,
    _net: Topology,
}

impl Site {
    /// Builds it for so many CPUs.
    pub(crate) fn new(sandbox: &Sandbox, objects: &Path, cpus: usize) -> Result<Self> {
        let mut net = Topology::new(sandbox, "million")?;
        let (outside, balancer) = (net.node("outside")?, net.node("balancer")?);
        for (near, far) in [(ENDS[0], "eth0"), (ENDS[1], "floor")] {
            link(&outside, near, &balancer, far, cpus)?;
        }
        outside.ip(&format!("address add {GATEWAY}/30 dev {}", ENDS[0]))?;
        balancer
            .ip(&format!("address add {BALANCER}/30 dev eth0\nroute add default via {GATEWAY}"))?;
        let sink = outside.enter(|| attached(objects, "request_sink", &ENDS))??;
        let floor = balancer.enter(|| attached(objects, "tunnel_floor", &["floor"]))??;
        let ends = outside.enter(|| ENDS.map(if_nametoindex))?;
        let ends = [ends[0]?, ends[1]?];
        net.ready()?;
        Ok(Self { outside, balancer, ends, sink, _floor: floor, _net: net })
    }

    /// The interface that frames leave by.
    pub(crate) const fn end(&self, through: Through) -> u32 {
        self.ends[through as usize]
    }

    /// The address of a backend, from 1 to 254.
    pub(crate) const fn backend(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(172, 31, 0, number)
    }

    /// Gives the hosts of these backends power.
    pub(crate) fn switch_on(&self, numbers: impl IntoIterator<Item = u8>) -> Result<()> {
        self.change_addresses("add", numbers)
    }

    /// Cuts the power: nobody answers for them.
    pub(crate) fn switch_off(&self, numbers: impl IntoIterator<Item = u8>) -> Result<()> {
        self.change_addresses("delete", numbers)
    }

    fn change_addresses(&self, verb: &str, numbers: impl IntoIterator<Item = u8>) -> Result<()> {
        let line = |number| format!("address {verb} {}/32 dev lo\n", Self::backend(number));
        self.outside.ip(numbers.into_iter().map(line).collect::<String>().trim_end())
    }

    /// What has arrived so far.
    pub(crate) fn tally(&self) -> Result<Tally> {
        Tally::read(|name| self.counters(name))
    }

    /// Requests that have begun so far: a part of the tally, which takes less time.
    pub(crate) fn begun(&self) -> Result<ByBackend> {
        by_backend(&self.counters("BEGUN")?)
    }

    /// Requests so far of which a second backend got a packet, by the one that got the SYN.
    pub(crate) fn split(&self) -> Result<ByBackend> {
        by_backend(&self.counters("SPLIT")?)
    }

    fn counters(&self, name: &str) -> Result<PerCpuArray<&MapData, u64>> {
        let map = self.sink.map(name).with_context(|| format!("bench.o has no {name}"))?;
        Ok(PerCpuArray::try_from(map)?)
    }
}

/// A veth pair with a queue for each CPU and one for what programs send, and without checksums that are left to the other
/// side.
fn link(near: &Node, near_end: &str, far: &Node, far_end: &str, cpus: usize) -> Result<()> {
    let queues = cpus + 1;
    let shape = format!("mtu {MTU} numtxqueues {queues} numrxqueues {queues}");
    near.ip(&format!(
        "link add {near_end} {shape} type veth peer name {far_end} {shape} netns {}",
        far.namespace()
    ))?;
    for (node, end) in [(near, near_end), (far, far_end)] {
        node.run("ethtool", ["-K", end, "tx", "off"])?;
        node.ip(&format!("link set {end} up"))?;
        send_by_last_queue(node, end, cpus)?;
    }
    Ok(())
}

/// Has programs on these CPUs send by the queue that follows those of the CPUs (XPS). Frames of packet programs take the
/// queue of their CPU.
fn send_by_last_queue(node: &Node, end: &str, cpus: usize) -> Result<()> {
    let (file, mask) = (format!("/sys/class/net/{end}/queues/tx-{cpus}/xps_cpus"), (1 << cpus) - 1);
    // Sysfs shows the interfaces of the namespace that it was mounted in.
    let write = format!("mount -t sysfs sysfs /sys && echo {mask:x} > {file}");
    node.run("unshare", ["--mount", "sh", "-c", &write]).map(drop)
}

/// A program of the bench on interfaces of this namespace, for as long as what is returned lives.
fn attached(objects: &Path, name: &str, interfaces: &[&str]) -> Result<Ebpf> {
    let mut bench = Ebpf::load_file(objects.join("bench.o")).context("bench.o")?;
    let program: &mut Xdp = program(&mut bench, name)?;
    program.load().with_context(|| format!("load {name}"))?;
    for interface in interfaces {
        program
            .attach(interface, XdpMode::Driver)
            .with_context(|| format!("{interface}: {name}"))?;
    }
    Ok(bench)
}
