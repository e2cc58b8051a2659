//! The standard network: a client, a router, a balancer on one arm, two regions of backends.
//!
//! ```text
//!                      ┌────────────┐ eth0
//!                      │  balancer  ├──────────┐ 10.0.0.0/24, fd00::/64
//!                      └────────────┘          │
//!  ┌────────┐ eth0                        ┌────┴───┐  10.1.0.0/24, fd00:1::/64  ┌────────────────┐
//!  │ client ├─────────────────────────────┤ router ├──────── switch "eu" ───────┤ eu1 eu2 eu3 …  │
//!  └────────┘ 198.51.100.0/24             └────┬───┘                            └────────────────┘
//!             2001:db8:c::/64                  │      10.2.0.0/24, fd00:2::/64  ┌────────────────┐
//!             MTU 1500                         └───────────── switch "us" ──────┤ us1 us2 us3 …  │
//!                                                     MTU 1600                  └────────────────┘
//! ```
//!
//! The router sends the VIPs to the balancer by static routes; every backend has them on `lo` and
//! answers through the router, past the balancer. The n-th backend of a region has the addresses
//! `.10+n` and `::10+n` (decimal digits) of its subnet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;

use super::backend::{REGIONS, add_regions};
use super::parts::{FABRIC_MTU, add_balancer, add_client, add_router};
use super::{Backend, Node, Topology};
use crate::sandbox::Sandbox;

/// The standard network.
#[derive(Debug)]
pub struct Fabric {
    /// All of it; it goes when this goes.
    pub net: Topology,
    /// Where requests come from, at [`Fabric::CLIENT_V4`] and [`Fabric::CLIENT_V6`]; any other
    /// address of [`Fabric::CLIENTS_V4`] and [`Fabric::CLIENTS_V6`] may be bound there too.
    pub client: Node,
    /// Joins all others. Its ends are named after what they lead to.
    pub router: Node,
    /// Where the balancer runs, on `eth0`.
    pub balancer: Node,
    /// The backends, region by region.
    pub backends: Vec<Backend>,
}

impl Fabric {
    /// The VIP, version 4.
    pub const VIP_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    /// The VIP, version 6.
    pub const VIP_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
    /// The client's address, version 4.
    pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
    /// The client's address, version 6.
    pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 2);
    /// A prefix that is the client's, whole.
    pub const CLIENTS_V4: (Ipv4Addr, u8) = (Ipv4Addr::new(100, 64, 0, 0), 10);
    /// A prefix that is the client's, whole.
    pub const CLIENTS_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0xdb8, 0xca, 0, 0, 0, 0, 0), 48);
    /// The balancer's address, version 4.
    pub const BALANCER_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    /// The balancer's address, version 6.
    pub const BALANCER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    /// The balancer's gateway, version 4.
    pub const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    /// Builds it with `per_region` backends in each region (at most 89), and waits until it is up.
    ///
    /// # Errors
    /// When a part cannot be made.
    pub fn new(sandbox: &Sandbox, name: &str, per_region: u8) -> Result<Self> {
        Self::with_regions(sandbox, name, REGIONS.len(), per_region)
    }

    /// The same with the first `regions` regions alone.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_regions(
        sandbox: &Sandbox,
        name: &str,
        regions: usize,
        per_region: u8,
    ) -> Result<Self> {
        let mut net = Topology::new(sandbox, name)?;
        let router = add_router(&mut net)?;
        let client = add_client(&mut net, &router)?;
        let addresses = (Self::BALANCER_V4, Self::BALANCER_V6);
        let balancer = add_balancer(&mut net, &router, "balancer", addresses)?.node;
        let mut fabric = Self { net, client, router, balancer, backends: Vec::new() };
        fabric.route_vip(Self::VIP_V4.into())?;
        fabric.route_vip(Self::VIP_V6.into())?;
        fabric.backends = add_regions(&mut fabric.net, &fabric.router, regions, per_region)?;
        fabric.net.ready()?;
        Ok(fabric)
    }

    /// The backends of one region.
    pub fn region_backends(&self, region: &str) -> impl Iterator<Item = &Backend> {
        self.backends.iter().filter(move |backend| backend.region == region)
    }

    /// Adds a node on an arm like the balancer's, which forwards, and to which the router sends a VIP. `number`, other
    /// than those of regions, makes its subnet, 10.`number`.0.0/24, of which it has the second address.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn add_arm(&mut self, name: &str, number: u8, vip: Ipv4Addr) -> Result<Node> {
        let node = self.net.node(name)?;
        self.net.link(&node, "eth0", &self.router, name, FABRIC_MTU)?;
        let [gateway, own] = [1, 2].map(|host| Ipv4Addr::new(10, number, 0, host));
        self.router
            .ip(&format!("address add {gateway}/24 dev {name}\nroute add {vip} via {own}"))?;
        node.ip(&format!("address add {own}/24 dev eth0\nroute add default via {gateway}"))?;
        node.sysctls(&[("net.ipv4.ip_forward", "1")])?;
        Ok(node)
    }

    /// Adds an arm whose node sends what comes for the VIP back to the router, which then routes it by its table
    /// `number`: the caller makes a route there. What it costs is what the way to a balancer and back costs at least: a
    /// balancer's link has a packet program at the router's end too, for which the kernel does more.
    ///
    /// # Errors
    /// As [`Self::add_arm`].
    pub fn add_hop(&mut self, name: &str, number: u8, vip: Ipv4Addr) -> Result<()> {
        let node = self.add_arm(name, number, vip)?;
        // The sender would be told of a shorter way.
        let silent = ["all", "eth0"].map(|of| format!("net.ipv4.conf.{of}.send_redirects"));
        node.sysctls(&[(silent[0].as_str(), "0"), (silent[1].as_str(), "0")])?;
        self.router.ip(&format!("rule add iif {name} table {number}"))
    }

    /// Has the router send a further VIP to the balancer; backends get it by [`Backend::add_vip`].
    ///
    /// # Errors
    /// When the route exists already.
    pub fn route_vip(&self, vip: IpAddr) -> Result<()> {
        match vip {
            IpAddr::V4(v4) => self.router.ip(&format!("route add {v4} via {}", Self::BALANCER_V4)),
            IpAddr::V6(v6) => self.router.ip(&format!("route add {v6} via {}", Self::BALANCER_V6)),
        }
    }
}
