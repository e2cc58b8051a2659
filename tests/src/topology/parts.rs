//! What every network here is made of: a router, a client, arms and switched segments of hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::Result;

use super::{Fabric, Node, Topology};

/// Largest IP packet on the client's link.
const CLIENT_MTU: u32 = 1500;
/// Largest IP packet elsewhere: room for a client's packet and an outer IPv6 header.
pub(super) const FABRIC_MTU: u32 = 1600;

/// A host with one interface, `eth0`, and a default route by the first host of each of its subnets.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its namespace.
    pub node: Node,
    /// Its IPv4 address, in a subnet of 24 bits.
    pub v4: Ipv4Addr,
    /// Its IPv6 address, in a subnet of 64 bits.
    pub v6: Ipv6Addr,
}

impl Host {
    /// Its name.
    pub fn name(&self) -> &str {
        self.node.name()
    }

    /// Takes it off the network, as a pulled cable would: no answer of any kind, and no carrier.
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

    /// Gives it its addresses and routes.
    fn configure(&self) -> Result<()> {
        let Self { node, v4, v6 } = self;
        node.sysctls(&[("net.ipv6.conf.eth0.keep_addr_on_down", "1")])?;
        node.ip(&format!(
            "address add {v4}/24 dev eth0\naddress add {v6}/64 dev eth0 nodad\n\
             route add default via {}\nroute add default via {}",
            gateway_v4(*v4),
            gateway_v6(*v6)
        ))
    }
}

/// Adds the router, which joins all others. Its ends are named after what they lead to.
pub(super) fn add_router(net: &mut Topology) -> Result<Node> {
    let router = net.node("router")?;
    router.sysctls(&[("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")])?;
    Ok(router)
}

/// Adds the client with the prefixes that are its own.
pub(super) fn add_client(net: &mut Topology, router: &Node) -> Result<Node> {
    let (clients_v4, bits_v4) = Fabric::CLIENTS_V4;
    let (clients_v6, bits_v6) = Fabric::CLIENTS_V6;
    let client = Host { node: net.node("client")?, v4: Fabric::CLIENT_V4, v6: Fabric::CLIENT_V6 };
    net.link(&client.node, "eth0", router, "client", CLIENT_MTU)?;
    client.configure()?;
    // A local route is enough to bind an address of IPv4; of IPv6 it is not.
    client.node.sysctls(&[("net.ipv6.ip_nonlocal_bind", "1")])?;
    client.node.ip(&format!(
        "route add local {clients_v4}/{bits_v4} dev lo\n\
         route add local {clients_v6}/{bits_v6} dev lo"
    ))?;
    add_gateway(router, "client", &client)?;
    router.ip(&format!(
        "route add {clients_v4}/{bits_v4} via {}\nroute add {clients_v6}/{bits_v6} via {}",
        client.v4, client.v6
    ))?;
    Ok(client.node)
}

/// Adds a balancer on an arm of its own.
pub(super) fn add_balancer(
    net: &mut Topology,
    router: &Node,
    name: &str,
    (v4, v6): (Ipv4Addr, Ipv6Addr),
) -> Result<Host> {
    let balancer = Host { node: net.node(name)?, v4, v6 };
    net.link(&balancer.node, "eth0", router, name, FABRIC_MTU)?;
    net.pass_all(router, name)?;
    balancer.configure()?;
    add_gateway(router, name, &balancer)?;
    Ok(balancer)
}

/// A switch of the router's, and the subnets behind it by their first addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub(super) name: &'a str,
    pub(super) v4: Ipv4Addr,
    pub(super) v6: Ipv6Addr,
    /// Last but one byte of its Ethernet address, other than those of other segments.
    pub(super) number: u8,
}

/// Adds a segment with hosts (at most 89) that are named after it, numbered from 1. The n-th has the addresses `.10+n` and
/// `::10+n` (decimal digits) of its subnets.
pub(super) fn add_segment(
    net: &mut Topology,
    router: &Node,
    segment: Segment<'_>,
    hosts: u8,
) -> Result<Vec<Host>> {
    let Segment { name, v4, v6, number } = segment;
    // An address of its own: otherwise the bridge takes the lowest of its ports', and changes it when one with a lower
    // one joins, which the hosts learn some time later.
    router.ip(&format!(
        "link add {name} address 02:00:00:00:{number:02x}:01 mtu {FABRIC_MTU} type bridge\n\
         address add {}/24 dev {name}\naddress add {}/64 dev {name} nodad",
        gateway_v4(v4),
        gateway_v6(v6),
    ))?;
    let mut all = Vec::new();
    for n in 1..=hosts {
        let host = format!("{name}{n}");
        let node = net.node(&host)?;
        net.link(&node, "eth0", router, &host, FABRIC_MTU)?;
        router.ip(&format!("link set {host} master {name}"))?;
        let (tens, ones) = ((10 + n) / 10, (10 + n) % 10);
        let host = Host {
            node,
            v4: Ipv4Addr::from_bits(v4.to_bits() | u32::from(10 + n)),
            v6: Ipv6Addr::from_bits(v6.to_bits() | u128::from(tens << 4 | ones)),
        };
        host.configure()?;
        all.push(host);
    }
    router.ip(&format!("link set {name} up"))?;
    Ok(all)
}

/// Gives the router's end of a host's link the addresses that the host routes by.
fn add_gateway(router: &Node, end: &str, host: &Host) -> Result<()> {
    router.ip(&format!(
        "address add {}/24 dev {end}\naddress add {}/64 dev {end} nodad",
        gateway_v4(host.v4),
        gateway_v6(host.v6)
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
