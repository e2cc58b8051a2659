//! The guest that runs the balancer.

use std::net::{TcpListener, TcpStream};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, HASH_KEY, HTTP};
use lb_tests::{
    daemon::{Balancer, Binaries, Check, Document, Member, Pool, Service, XdpMode, xdp_mode},
    sandbox::Sandbox,
    topology::{Node, Topology},
};

use super::{BACKENDS, BALANCER_BACK, BALANCER_FRONT, CLIENT, DONE, LIMIT, REQUESTS, VIP};

/// The node that balances, with both cards.
pub(super) struct Site {
    _network: Topology,
    pub(super) node: Node,
    /// Where the neighbour says that it has done all.
    pub(super) done: TcpListener,
}

impl Site {
    pub(super) fn new(sandbox: &Sandbox) -> Result<Self> {
        let mut network = Topology::new(sandbox, "virtio")?;
        let node = network.node("balancer")?;
        for (card, address) in [("eth0", BALANCER_BACK), ("eth1", BALANCER_FRONT)] {
            network.adopt(card, &node)?;
            node.ip(&format!("address add {address}/24 dev {card}"))?;
        }
        node.sysctls(&[("net.ipv4.ip_forward", "1")])?;
        network.ready()?;
        let done = node.enter(|| TcpListener::bind((BALANCER_FRONT, DONE)))??;
        socket2::SockRef::from(&done).set_read_timeout(Some(LIMIT))?;
        Ok(Self { _network: network, node, done })
    }

    /// Waits until the neighbour says so; it waits until what is answered goes.
    pub(super) fn done(&self) -> Result<TcpStream> {
        let (stream, from) = self.done.accept().context("the neighbour does not get done")?;
        ensure!(from.ip() == CLIENT, "{from}");
        Ok(stream)
    }

    /// How programs are attached to both cards.
    pub(super) fn is_attached(&self, wanted: XdpMode) -> Result<()> {
        for card in ["eth0", "eth1"] {
            let mode = xdp_mode(&self.node, card)?;
            ensure!(mode == wanted, "{card}: {mode:?}, not {wanted:?}");
        }
        Ok(())
    }
}

/// A daemon for both cards, which does not run yet.
pub(super) fn daemon(sandbox: &Sandbox, node: &Node, mode: &str) -> Result<Balancer> {
    let mut balancer = Balancer::new(sandbox, &Binaries::find()?, node, "eu")?;
    let more = ["--interface", "eth1", "--xdp-mode", mode, "--flows", "4096"];
    balancer.more = more.map(Into::into).to_vec();
    Ok(balancer)
}

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let site = Site::new(sandbox)?;
    let mut balancer = daemon(sandbox, &site.node, "native")?;
    balancer.start()?;
    site.is_attached(XdpMode::Native)?;
    balancer.apply(&configuration().text())?;
    balancer.wait_up(&BACKENDS.map(Into::into), LIMIT)?;

    let _waits = site.done()?;
    judge(&balancer)
}

/// Both ways of leaving were gone, and every request was counted once.
fn judge(balancer: &Balancer) -> Result<()> {
    let stats = balancer.stats()?;
    ensure!(stats.packets("redirected")? > 2 * REQUESTS, "{stats:#?}");
    ensure!(stats.packets("answered_echo")? == 3, "{stats:#?}");
    // A client's full packet does not fit the tunnel.
    ensure!(stats.packets("answered_too_large")? > 0, "{stats:#?}");
    ensure!(stats.service("http")?.connections == REQUESTS, "{stats:#?}");
    let shares: Vec<_> = stats.backends.iter().map(|it| it.connections).collect();
    ensure!(shares.len() == 2 && shares.iter().all(|share| *share > 0), "{stats:#?}");
    Ok(())
}

pub(super) fn configuration() -> Document {
    let member = |address: std::net::Ipv4Addr| Member {
        address: address.into(),
        region: "eu".into(),
        weight: 1,
    };
    let service = |name: &str, port| Service {
        name: name.into(),
        address: VIP.into(),
        port,
        protocol: "tcp",
        pool: "web".into(),
    };
    Document {
        hash_key: Some(HASH_KEY),
        regions: vec!["eu".into()],
        checks: vec![Check {
            name: "tcp".into(),
            path: None,
            port: ECHO,
            interval_ms: 1000,
            fall: 20,
            is_tunnelled: false,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["tcp".into()],
            members: BACKENDS.map(member).to_vec(),
        }],
        services: vec![service("http", HTTP), service("echo", ECHO)],
    }
}
