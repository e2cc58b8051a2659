//! Starts each of them, as plain as its manual shows it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use lb_tests::daemon::{
    Balancer, Binaries, Check, Document, Member, Pool, Receiver, Service, XdpMode, xdp_mode,
};
use lb_tests::process::{PATIENCE, Running, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node};
use lb_tests::traffic::{Front, UPLOAD_PORT, haproxy, nginx_stream};

use super::Peer;
use super::network::{Network, SPILLWAYS};

/// Ports of each VIP.
const PORTS: [u16; 2] = [80, UPLOAD_PORT];

/// What runs; it ends with this.
pub(super) struct Balancers {
    _spillway: Balancer,
    _receivers: Vec<Receiver>,
    _proxies: Vec<Running>,
}

/// Starts all and waits until each lets connections through.
pub(super) fn start(
    sandbox: &Sandbox,
    binaries: &Binaries,
    network: &Network,
) -> Result<Balancers> {
    let (spillway, receivers) = spillway(sandbox, binaries, &network.fabric)?;
    let node = |peer| network.node(peer).context("it has no node");
    let backends = network.backends();
    nftables(node(Peer::Nftables)?, &backends).context("nftables")?;
    let front = |peer: Peer| Front { vip: peer.vip(), ports: &PORTS, backends: &backends };
    let mut proxies = vec![
        haproxy(node(Peer::Haproxy)?, &front(Peer::Haproxy)).context("haproxy")?,
        nginx_stream(node(Peer::NginxStream)?, &front(Peer::NginxStream)).context("nginx")?,
    ];
    for peer in Peer::ALL {
        for port in PORTS {
            let what = format!("{}: a connection to port {port}", peer.name());
            let to = (peer.vip(), port).into();
            let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(1));
            until(&what, PATIENCE, || {
                proxies.iter_mut().try_for_each(Running::check)?;
                Ok(network.client().enter(connect)?.ok().map(drop))
            })?;
        }
    }
    Ok(Balancers { _spillway: spillway, _receivers: receivers, _proxies: proxies })
}

fn spillway(
    sandbox: &Sandbox,
    binaries: &Binaries,
    fabric: &Fabric,
) -> Result<(Balancer, Vec<Receiver>)> {
    let vip = IpAddr::from(Peer::Spillway.vip());
    let mut receivers = Vec::new();
    let mut members = Vec::new();
    for backend in fabric.region_backends(SPILLWAYS) {
        let sources = [Fabric::BALANCER_V4.into()];
        receivers.push(Receiver::start(sandbox, binaries, &backend.node, &sources, &[vip])?);
        let (address, region) = (backend.v4.into(), SPILLWAYS.into());
        members.push(Member { address, region, weight: 1 });
    }
    let addresses: Vec<_> = members.iter().map(|member| member.address).collect();
    let balancer = Balancer::started(sandbox, binaries, &fabric.balancer, SPILLWAYS)?;
    let mode = xdp_mode(&fabric.balancer, "eth0")?;
    ensure!(mode == XdpMode::Native, "the balancer's link is {mode:?}");
    balancer.apply(&document(vip, members).text())?;
    balancer.wait_up(&addresses, PATIENCE)?;
    Ok((balancer, receivers))
}

fn document(vip: IpAddr, members: Vec<Member>) -> Document {
    let service = |name: &str, port| Service {
        name: name.into(),
        address: vip,
        port,
        protocol: "tcp",
        pool: "web".into(),
    };
    Document {
        hash_key: None,
        regions: vec![SPILLWAYS.into()],
        checks: vec![Check {
            name: "web".into(),
            path: Some("/healthz".into()),
            port: 80,
            interval_ms: 1000,
            fall: 3,
            is_tunnelled: false,
        }],
        pools: vec![Pool { name: "web".into(), checks: vec!["web".into()], members }],
        services: vec![service("web", 80), service("upload", UPLOAD_PORT)],
    }
}

/// Destination NAT by a hash of the client, and answers back by masquerading.
fn nftables(node: &Node, backends: &[Ipv4Addr]) -> Result<()> {
    let file = node.directory().join("rules.nft");
    fs::write(&file, rules(Peer::Nftables.vip(), backends)).context("write the rules")?;
    node.run("nft", ["-f".as_ref(), file.as_os_str()])?;
    // The table of connections, whose size belongs to the machine, would be full after a few rounds.
    node.sysctls(&[
        ("net.netfilter.nf_conntrack_tcp_timeout_time_wait", "1"),
        ("net.netfilter.nf_conntrack_tcp_timeout_last_ack", "1"),
        ("net.netfilter.nf_conntrack_tcp_timeout_close", "1"),
    ])
}

fn rules(vip: Ipv4Addr, backends: &[Ipv4Addr]) -> String {
    let numbered: Vec<_> =
        (0..).zip(backends).map(|(n, backend): (u32, _)| format!("{n} : {backend}")).collect();
    format!(
        "table ip balancer {{
    chain prerouting {{
        type nat hook prerouting priority dstnat;
        ip daddr {vip} tcp dport {{ 80, {} }} dnat to jhash ip saddr . tcp sport mod {} map {{ {} }}
    }}
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        ip daddr {{ {} }} masquerade
    }}
}}
",
        UPLOAD_PORT,
        backends.len(),
        numbered.join(", "),
        backends.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_name_each_backend_by_a_value_of_the_hash() {
        let backends = [Ipv4Addr::new(10, 2, 0, 11), Ipv4Addr::new(10, 2, 0, 12)];
        let rules = rules(Ipv4Addr::new(203, 0, 113, 11), &backends);
        let map = "mod 2 map { 0 : 10.2.0.11, 1 : 10.2.0.12 }";
        assert!(rules.contains(map), "{rules}");
        assert!(rules.contains("ip daddr 203.0.113.11 tcp dport { 80, 5001 }"), "{rules}");
    }
}
