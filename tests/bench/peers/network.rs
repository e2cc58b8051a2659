//! One network for all of them: the standard one, in which each has a node of its own on the router, with a link like
//! the balancer's.
//!
//! Spillway's backends are those of one region, which have receivers. All others have the backends of the other region,
//! as many on the same kind of links, so that no receiver costs them anything.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;

use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node};
use lb_tests::traffic::{Nginx, UploadServer};

use super::Peer;

/// Backends of each.
const BACKENDS: u8 = 3;
/// The region of Spillway's backends.
pub(super) const SPILLWAYS: &str = "eu";
/// The region of the others' backends.
const OTHERS: &str = "us";

/// The network, with servers on all backends.
pub(super) struct Network {
    pub(super) fabric: Fabric,
    nodes: Vec<(Peer, Node)>,
    _servers: Vec<Nginx>,
    _uploads: UploadServer,
}

impl Network {
    /// Builds it and starts the servers.
    pub(super) fn new(sandbox: &Sandbox) -> Result<Self> {
        let mut fabric = Fabric::new(sandbox, "peers", BACKENDS)?;
        let mut nodes = Vec::new();
        for (peer, number) in
            [Peer::Nftables, Peer::Haproxy, Peer::NginxStream].into_iter().zip(11..)
        {
            nodes.push((peer, fabric.add_arm(&format!("peer{number}"), number, peer.vip())?));
        }
        spread_by_router(&fabric)?;
        fabric.net.ready()?;
        for node in [&fabric.client].into_iter().chain(nodes.iter().map(|(_, node)| node)) {
            // So many connections a second need more ports than there usually are.
            node.sysctls(&[("net.ipv4.ip_local_port_range", "1024 65535")])?;
        }
        let backends = || fabric.backends.iter().map(|backend| &backend.node);
        let servers = backends().map(Nginx::start).collect::<Result<_>>()?;
        let uploads = UploadServer::start(backends())?;
        Ok(Self { fabric, nodes, _servers: servers, _uploads: uploads })
    }

    /// Where requests come from.
    pub(super) fn client(&self) -> &Node {
        &self.fabric.client
    }

    /// The node of one that is neither Spillway nor the router.
    pub(super) fn node(&self, peer: Peer) -> Option<&Node> {
        self.nodes.iter().find(|(found, _)| *found == peer).map(|(_, node)| node)
    }

    /// The backends of all but Spillway.
    pub(super) fn backends(&self) -> Vec<Ipv4Addr> {
        self.fabric.region_backends(OTHERS).map(|backend| backend.v4).collect()
    }
}

/// Has the router spread a VIP over the backends by itself, by address and port.
fn spread_by_router(fabric: &Fabric) -> Result<()> {
    let vip = Peer::Ecmp.vip();
    let mut route = format!("route add {vip}");
    for backend in fabric.region_backends(OTHERS) {
        backend.add_vip(IpAddr::from(vip))?;
        route += &format!(" nexthop via {}", backend.v4);
    }
    // By addresses, protocol and ports as they stand in the packet (policy 3). Policy 1 takes the hash that the sending
    // socket left at the packet, which a retransmission changes.
    fabric.router.sysctls(&[
        ("net.ipv4.fib_multipath_hash_policy", "3"),
        ("net.ipv4.fib_multipath_hash_fields", "55"),
    ])?;
    fabric.router.ip(&route)
}
