//! The kernel's own tunnel devices, in place of the receiver, decapsulate what the balancer sends.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, HASH_KEY, Tunnel};
use lb_tests::{
    daemon::{Balancer, Binaries, Check, Document, Member, Pool, answers},
    process::until,
    sandbox::Sandbox,
    topology::{Backend, Fabric, REGIONS},
    traffic::{Echo, Stream, name_over_udp},
};

use super::service::LIMIT;

/// Each backend gets the devices that docs/links.md names.
pub(super) const DEVICES: &str = "link set tunl0 up\n\
     link set sit0 up\n\
     link add name tunl6 type ip6tnl mode any local {v6} remote any\n\
     link set tunl6 up";

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "tunnels")?;
    let backends: Vec<_> = network.backends().collect();
    // Nobody takes a tunnel apart by itself.
    let lost = name_over_udp(&network.fabric.client, any(Tunnel::Ipip), network.to(Tunnel::Ipip));
    ensure!(lost.is_err(), "answered without a device: {lost:?}");
    for backend in &backends {
        backend.node.ip(&DEVICES.replace("{v6}", &backend.v6.to_string()))?;
    }
    network.carry()
}

/// The kernel's GUE in front of its devices; and a pool that changes to it keeps its connections.
pub(super) fn run_in_gue(sandbox: &Sandbox) -> Result<()> {
    /// Not the registered one, so that it is the configured one.
    const PORT: &str = "6090";
    let network = Network::new(sandbox, "gue")?;
    for backend in network.backends() {
        backend.node.ip(&DEVICES.replace("{v6}", &backend.v6.to_string()))?;
        backend.node.run("ip", ["fou", "add", "port", PORT, "gue"])?;
        backend.node.run("ip", ["-6", "fou", "add", "port", PORT, "gue"])?;
    }
    let mut streams = Vec::new();
    for tunnel in Tunnel::ALL {
        for seed in 0..4 {
            let stream = Stream::open(&network.fabric.client, network.to(tunnel), seed);
            streams.push(stream.with_context(|| format!("{tunnel:?}: before the change"))?);
        }
    }
    for pool in ["v4", "v6"] {
        let change = ["--encapsulation", "gue", "--gue-port", PORT];
        network.balancer.cli(&[&["pool", "update", pool], &change[..]].concat())?;
    }
    Stream::all_go_on(&streams).context("those that were open before the change")?;
    Stream::finish_all(streams).context("those that were open before the change")?;
    network.carry()?;
    // It was GUE that they were in: without it the devices have nothing to take apart.
    for backend in network.backends() {
        backend.node.run("ip", ["fou", "del", "port", PORT])?;
        backend.node.run("ip", ["-6", "fou", "del", "port", PORT])?;
    }
    for tunnel in Tunnel::ALL {
        let lost = name_over_udp(&network.fabric.client, any(tunnel), network.to(tunnel));
        ensure!(lost.is_err(), "{tunnel:?}: answered without GUE: {lost:?}");
    }
    Ok(())
}

/// Checks go through tunnels: a backend that lacks a VIP is out though it answers by its own address.
pub(super) fn run_checks(sandbox: &Sandbox) -> Result<()> {
    let network = Network::new(sandbox, "checks")?;
    for backend in network.backends() {
        backend.node.ip(&DEVICES.replace("{v6}", &backend.v6.to_string()))?;
    }
    let mut document = network.configuration();
    let name = "as-clients".to_owned();
    document.pools.iter_mut().for_each(|pool| pool.checks = vec![name.clone()]);
    let check = Check {
        name: name.clone(),
        path: None,
        port: ECHO,
        interval_ms: 1_000,
        fall: 2,
        is_tunnelled: false,
    };
    document.checks = vec![check];
    let head = format!("[[health_check]]\nname = \"{name}\"\n");
    let text = document.text();
    ensure!(text.contains(&head), "no check to change: {text}");
    network.balancer.apply(&text.replace(&head, &format!("{head}via = \"tunnel\"\n")))?;
    network.balancer.wait_up(&network.ends(), LIMIT)?;
    let backend = network.backends().next().context("no backend")?;
    let vip = Tunnel::Ip6In4.vip();
    backend.node.ip(&format!("address del {vip}/128 dev lo"))?;
    let own = backend.v4.to_string();
    until("the check fails", LIMIT, || {
        let status = network.balancer.status()?;
        let reason = answers::reason(answers::backend(&status, &own)?);
        Ok(reason.starts_with(&format!("check {name} of {vip}: ")).then_some(()))
    })?;
    backend.node.ip(&format!("address add {vip}/128 dev lo nodad"))?;
    network.balancer.wait_up(&network.ends(), LIMIT)
}

/// A balancer that is told of all backends of the first region, behind four VIPs, one a form of tunnel.
pub(super) struct Network {
    pub(super) fabric: Fabric,
    pub(super) balancer: Balancer,
    echoes: Vec<Echo>,
}

impl Network {
    /// Builds it, with two backends in the region.
    pub(super) fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        Self::on(sandbox, Fabric::new(sandbox, name, 2)?)
    }

    /// The same on a fabric that has been made.
    pub(super) fn on(sandbox: &Sandbox, fabric: Fabric) -> Result<Self> {
        let binaries = Binaries::find()?;
        for tunnel in [Tunnel::Ip4In6, Tunnel::Ip6In4] {
            fabric.route_vip(tunnel.vip())?;
            fabric.backends.iter().try_for_each(|backend| backend.add_vip(tunnel.vip()))?;
        }
        let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
        balancer.more = ["--flows", "4096"].map(Into::into).to_vec();
        balancer.start()?;
        let vips = Tunnel::ALL.map(Tunnel::vip);
        let mut network = Self { fabric, balancer, echoes: Vec::new() };
        for backend in network.fabric.region_backends(REGIONS[0]) {
            network.echoes.push(Echo::start(&backend.node, &vips, ECHO)?);
        }
        network.balancer.apply(&network.configuration().text())?;
        network.balancer.wait_up(&network.ends(), LIMIT)?;
        Ok(network)
    }

    /// The backends that it is told of.
    pub(super) fn backends(&self) -> impl Iterator<Item = &Backend> {
        self.fabric.region_backends(REGIONS[0])
    }

    /// Their addresses.
    pub(super) fn ends(&self) -> Vec<IpAddr> {
        self.backends().flat_map(|b| [IpAddr::from(b.v4), b.v6.into()]).collect()
    }

    /// Where the echo of a tunnel's VIP is.
    pub(super) fn to(&self, tunnel: Tunnel) -> SocketAddr {
        tunnel.endpoint(ECHO)
    }

    /// Datagrams and long connections get through every tunnel, to every backend.
    pub(super) fn carry(&self) -> Result<()> {
        for tunnel in Tunnel::ALL {
            let name = name_over_udp(&self.fabric.client, any(tunnel), self.to(tunnel));
            name.with_context(|| format!("{tunnel:?}: a datagram"))?;
            let mut streams = Vec::new();
            let mut answered = Vec::new();
            while answered.len() < self.backends().count() {
                ensure!(streams.len() < 64, "{tunnel:?}: only {answered:?} answer");
                let stream = Stream::open(&self.fabric.client, self.to(tunnel), 1)
                    .with_context(|| format!("{tunnel:?}: stream {}", streams.len()))?;
                if !answered.contains(&stream.backend().to_owned()) {
                    answered.push(stream.backend().to_owned());
                }
                streams.push(stream);
            }
            Stream::all_go_on(&streams).with_context(|| format!("{tunnel:?}"))?;
            Stream::finish_all(streams).with_context(|| format!("{tunnel:?}"))?;
        }
        Ok(())
    }

    /// What it is told at first.
    pub(super) fn configuration(&self) -> Document {
        let pool = |name: &str, address: fn(&Backend) -> IpAddr| Pool {
            name: name.into(),
            checks: Vec::new(),
            members: self
                .backends()
                .map(|b| Member { address: address(b), region: b.region.into(), weight: 1 })
                .collect(),
        };
        let service = |tunnel: Tunnel, protocol: &'static str| {
            tunnel.service(format!("{}-{protocol}", tunnel.name()), ECHO, protocol)
        };
        Document {
            hash_key: Some(HASH_KEY),
            regions: vec![REGIONS[0].into()],
            checks: Vec::new(),
            pools: vec![pool("v4", |b| b.v4.into()), pool("v6", |b| b.v6.into())],
            services: Tunnel::ALL
                .into_iter()
                .flat_map(|tunnel| [service(tunnel, "tcp"), service(tunnel, "udp")])
                .collect(),
        }
    }
}

/// Any port of an address of the client's that speaks the VIP's version.
pub(super) fn any(tunnel: Tunnel) -> SocketAddr {
    let client = match tunnel.vip() {
        IpAddr::V4(_) => Fabric::CLIENT_V4.into(),
        IpAddr::V6(_) => IpAddr::from(Fabric::CLIENT_V6),
    };
    SocketAddr::new(client, 0)
}
