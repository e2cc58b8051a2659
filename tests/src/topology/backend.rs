//! Backends: regions of hosts that have the VIPs and answer past the balancers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;

use super::parts::{Host, Segment, add_segment};
use super::{Fabric, Node, Topology};

/// The regions, nearest to the balancer first.
pub const REGIONS: [&str; 2] = ["eu", "us"];

/// A backend of a fabric.
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

/// Adds the first `regions` of [`REGIONS`] with so many backends each (at most 89), which have the fabric's VIPs.
pub(super) fn add_regions(
    net: &mut Topology,
    router: &Node,
    regions: usize,
    per_region: u8,
) -> Result<Vec<Backend>> {
    let mut backends = Vec::new();
    for (region, number) in REGIONS.into_iter().take(regions).zip(1..) {
        let segment = Segment {
            name: region,
            v4: Ipv4Addr::new(10, number, 0, 0),
            v6: Ipv6Addr::new(0xfd00, number.into(), 0, 0, 0, 0, 0, 0),
            number,
        };
        for Host { node, v4, v6 } in add_segment(net, router, segment, per_region)? {
            let backend = Backend { node, region, v4, v6 };
            backend.add_vip(Fabric::VIP_V4.into())?;
            backend.add_vip(Fabric::VIP_V6.into())?;
            backends.push(backend);
        }
    }
    Ok(backends)
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
        self.host().unplug()
    }

    /// Undoes [`Self::unplug`]: what a host that starts again would configure.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn plug_in(&self) -> Result<()> {
        self.host().plug_in()
    }

    fn host(&self) -> Host {
        Host { node: self.node.clone(), v4: self.v4, v6: self.v6 }
    }
}
