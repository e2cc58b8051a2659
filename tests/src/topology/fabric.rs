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

use super::{Node, Topology};
use crate::sandbox::Sandbox;

/// The regions, nearest to the balancer first.
pub const REGIONS: [&str; 2] = ["eu", "us"];

/// Largest IP packet on the client's link.
const CLIENT_MTU: u32 = 1500;
/// Largest IP packet elsewhere: room for a client's packet and an outer IPv6 header.
const FABRIC_MTU: u32 = 1600;

/// A backend of the fabric.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Its namespace; the interface is `eth0`.
    pub node: Node,
    /// Its region, one of [`REGIONS`].
    pub region: &'static str,
    /// Its own IPv4 address.
    pub v4: Ipv4Addr,
    /// Its own IPv6 address.
    pub v6: Ipv6Addr,
}

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
        let mut net = Topology::new(sandbox, name)?;
        let router = net.node("router")?;
        router.sysctls(&[("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")])?;
        let client = net.node("client")?;
        net.link(&client, "eth0", &router, "client", CLIENT_MTU)?;
        let balancer = net.node("balancer")?;
        net.link(&balancer, "eth0", &router, "balancer", FABRIC_MTU)?;
        net.pass_all(&router, "balancer")?;
        let mut fabric = Self { net, client, router, balancer, backends: Vec::new() };
        fabric.address()?;
        for (region, number) in REGIONS.into_iter().zip(1..) {
            fabric.region(region, number, per_region)?;
        }
        fabric.net.ready()?;
        Ok(fabric)
    }

    /// The backends of one region.
    pub fn region_backends(&self, region: &str) -> impl Iterator<Item = &Backend> {
        self.backends.iter().filter(move |backend| backend.region == region)
    }

    fn address(&self) -> Result<()> {
        let (clients_v4, bits_v4) = Self::CLIENTS_V4;
        let (clients_v6, bits_v6) = Self::CLIENTS_V6;
        leaf(&self.client, Self::CLIENT_V4, Self::CLIENT_V6)?;
        // A local route is enough to bind an address of IPv4; of IPv6 it is not.
        self.client.sysctls(&[("net.ipv6.ip_nonlocal_bind", "1")])?;
        self.client.ip(&format!(
            "route add local {clients_v4}/{bits_v4} dev lo\n\
             route add local {clients_v6}/{bits_v6} dev lo"
        ))?;
        leaf(&self.balancer, Self::BALANCER_V4, Self::BALANCER_V6)?;
        self.router.ip(&format!(
            "address add {}/24 dev client\naddress add {}/64 dev client nodad\n\
             address add {}/24 dev balancer\naddress add {}/64 dev balancer nodad\n\
             route add {clients_v4}/{bits_v4} via {}\nroute add {clients_v6}/{bits_v6} via {}",
            gateway_v4(Self::CLIENT_V4),
            gateway_v6(Self::CLIENT_V6),
            gateway_v4(Self::BALANCER_V4),
            gateway_v6(Self::BALANCER_V6),
            Self::CLIENT_V4,
            Self::CLIENT_V6,
        ))?;
        self.route_vip(Self::VIP_V4.into())?;
        self.route_vip(Self::VIP_V6.into())
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

    fn region(&mut self, region: &'static str, number: u8, backends: u8) -> Result<()> {
        let v4 = |host| Ipv4Addr::new(10, number, 0, host);
        let v6 = |host| Ipv6Addr::new(0xfd00, number.into(), 0, 0, 0, 0, 0, host);
        // An address of its own: otherwise the bridge takes the lowest of its ports', and changes it when one with a lower
        // one joins, which the backends learn some time later.
        self.router.ip(&format!(
            "link add {region} address 02:00:00:00:{number:02x}:01 mtu {FABRIC_MTU} type bridge\n\
             address add {}/24 dev {region}\naddress add {}/64 dev {region} nodad",
            v4(1),
            v6(1),
        ))?;
        for n in 1..=backends {
            let name = format!("{region}{n}");
            let node = self.net.node(&name)?;
            self.net.link(&node, "eth0", &self.router, &name, FABRIC_MTU)?;
            self.router.ip(&format!("link set {name} master {region}"))?;
            let (tens, ones) = ((10 + n) / 10, (10 + n) % 10);
            let backend = Backend {
                node,
                region,
                v4: v4(10 + n),
                v6: v6(u16::from(tens) << 4 | u16::from(ones)),
            };
            leaf(&backend.node, backend.v4, backend.v6)?;
            backend.add_vip(Self::VIP_V4.into())?;
            backend.add_vip(Self::VIP_V6.into())?;
            self.backends.push(backend);
        }
        self.router.ip(&format!("link set {region} up"))
    }
}

impl Backend {
    /// Its name: the region and a number from 1.
    pub fn name(&self) -> &str {
        self.node.name()
    }

    /// Puts a VIP on `lo`, where packets for it are accepted and nobody is told of it.
    ///
    /// # Errors
    /// When it is there already.
    pub fn add_vip(&self, vip: IpAddr) -> Result<()> {
        let bits = if vip.is_ipv4() { 32 } else { 128 };
        // Without the flag an IPv6 address is there only after some other thread of the kernel had its turn.
        let at_once = if vip.is_ipv6() { " nodad" } else { "" };
        self.node.ip(&format!("address add {vip}/{bits} dev lo{at_once}"))
    }

    /// Takes the host off the network, as a pulled cable or a dead host would: no answer of any
    /// kind.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn unplug(&self) -> Result<()> {
        self.node.ip("link set eth0 down")
    }

    /// Undoes [`Self::unplug`]: what a host that starts again would configure.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn plug_in(&self) -> Result<()> {
        self.node.ip("link set eth0 up")?;
        // Routes go with the link.
        self.node.ip(&format!("route replace default via {}", gateway_v4(self.v4)))?;
        self.node.ip(&format!("route replace default via {}", gateway_v6(self.v6)))
    }
}

/// Addresses of a node with one interface, and its routes by the first host of each subnet.
fn leaf(node: &Node, v4: Ipv4Addr, v6: Ipv6Addr) -> Result<()> {
    node.sysctls(&[("net.ipv6.conf.eth0.keep_addr_on_down", "1")])?;
    node.ip(&format!(
        "address add {v4}/24 dev eth0\naddress add {v6}/64 dev eth0 nodad\n\
         route add default via {}\nroute add default via {}",
        gateway_v4(v4),
        gateway_v6(v6)
    ))
}

fn gateway_v4(host: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = host.octets();
    Ipv4Addr::new(a, b, c, 1)
}

fn gateway_v6(host: Ipv6Addr) -> Ipv6Addr {
    let [a, b, c, d, ..] = host.segments();
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1)
}
