//! The guest that balances.

use std::net::TcpListener;

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{Balancer, Binaries, Check, Document, Member, Pool, Service, XdpMode, xdp_mode},
    sandbox::Sandbox,
    scene::{ECHO, HASH_KEY, HTTP},
    topology::{Node, Topology},
};

use super::{BACKENDS, BALANCER_BACK, BALANCER_FRONT, CLIENT, DONE, LIMIT, REQUESTS, VIP};

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
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

    a_large_mtu_is_refused(&node)?;
    let mut balancer = Balancer::new(sandbox, &Binaries::find()?, &node, "eu")?;
    let more = ["--interface", "eth1", "--xdp-mode", "native", "--exceptions", "4096"];
    balancer.more = more.into_iter().chain(["--udp-flows", "4096"]).map(Into::into).collect();
    balancer.start()?;
    for card in ["eth0", "eth1"] {
        let mode = xdp_mode(&node, card)?;
        ensure!(mode == XdpMode::Native, "{card}: {mode:?}");
    }
    balancer.apply(&configuration().text())?;
    balancer.wait_up(&BACKENDS.map(Into::into), LIMIT)?;

    let (_, from) = done.accept().context("the neighbour does not get done")?;
    ensure!(from.ip() == CLIENT, "{from}");
    judge(&balancer)
}

/// A driver's buffer is a page; a frame in several is more than the programs read.
fn a_large_mtu_is_refused(node: &Node) -> Result<()> {
    node.ip("link set eth0 mtu 9000")?;
    let mut command = node.command("spillwayd");
    command.args(["balancer", "--interface", "eth0", "--region", "eu", "--xdp-mode", "native"]);
    command.args(["--exceptions", "4096", "--udp-flows", "4096"]);
    let output = command.output().context("start spillwayd")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.contains("eth0: no native XDP"), "{output:?}");
    node.ip("link set eth0 mtu 1500")
}

/// Both ways of leaving were gone, and every request was counted once.
fn judge(balancer: &Balancer) -> Result<()> {
    let stats = balancer.ask(&["stats"])?;
    ensure!(balancer.packets("redirected")? > 2 * REQUESTS, "{stats}");
    ensure!(balancer.packets("answered_echo")? == 3, "{stats}");
    // A client's full packet does not fit the tunnel.
    ensure!(balancer.packets("answered_too_large")? > 0, "{stats}");
    let services = stats["services"].as_array().into_iter().flatten();
    let of_http: Vec<_> = services
        .filter(|row| row["service"] == "http")
        .filter_map(|row| row["connections"].as_u64())
        .collect();
    ensure!(of_http == [REQUESTS], "{stats}");
    let backends = stats["backends"].as_array().into_iter().flatten();
    let shares: Vec<_> = backends.filter_map(|row| row["connections"].as_u64()).collect();
    ensure!(shares.len() == 2 && shares.iter().all(|share| *share > 0), "{stats}");
    Ok(())
}

fn configuration() -> Document {
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
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["tcp".into()],
            members: BACKENDS.map(member).to_vec(),
        }],
        services: vec![service("http", HTTP), service("echo", ECHO)],
    }
}
