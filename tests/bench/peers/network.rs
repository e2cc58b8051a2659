//! One network for all of them: the standard one, in which each has a node of its own on the router, with a link like
//! the balancer's.
//!
//! Spillway's backends are those of one region, which have receivers. All others have the backends of the other region,
//! as many on the same kind of links, so that no receiver costs them anything. Without a balancer the router spreads
//! connections over those of either region.

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

/// The subnet of the router in the balancer's place, and the table of routes for what comes back from it.
const HOP: u8 = 15;

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
        fabric.add_hop("peer15", HOP, Peer::RouterMore.vip())?;
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

/// Has the router spread VIPs over the backends of a region by itself, by address and port.
fn spread_by_router(fabric: &Fabric) -> Result<()> {
    // By addresses, protocol and ports as they stand in the packet (policy 3). Policy 1 takes the hash that the sending
    // socket left at the packet, which a retransmission changes.
    fabric.router.sysctls(&[
        ("net.ipv4.fib_multipath_hash_policy", "3"),
        ("net.ipv4.fib_multipath_hash_fields", "55"),
    ])?;
    let back = format!(" table {HOP}");
    for (peer, region, table) in [
        (Peer::Ecmp, OTHERS, ""),
        (Peer::EcmpToReceivers, SPILLWAYS, ""),
        (Peer::RouterMore, SPILLWAYS, &back),
    ] {
        let vip = peer.vip();
        let mut route = format!("route add {vip}{table}");
        for backend in fabric.region_backends(region) {
            backend.add_vip(IpAddr::from(vip))?;
            route += &format!(" nexthop via {}", backend.v4);
        }
        fabric.router.ip(&route)?;
    }
    Ok(())
}
