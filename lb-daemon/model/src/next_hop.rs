//! Where packets to a backend leave this host. `net` finds it out, `reconcile` writes it to the maps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Ipv4Prefix;

/// A resolved next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// The neighbour that takes the frames: the route's gateway, or the backend itself where it is
    /// on the link. Backends with the same gateway and interface share one next-hop word, so that
    /// a change of its MAC is one write.
    pub gateway: IpAddr,
    /// The neighbour's MAC.
    pub mac: [u8; 6],
    /// Index of the interface it is reached over.
    pub interface: u32,
    /// The VLAN, if that interface is one.
    pub vlan: Option<Vlan>,
    /// That interface's own MAC.
    pub interface_mac: [u8; 6],
    /// Largest IP packet of the route, bytes.
    pub mtu: u16,
    /// The address of this host that tunnels there come from, of the backend's IP version; `None`: it has none.
    pub source: Option<IpAddr>,
}

/// Why a backend has no next hop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNextHop {
    /// It is reached through a tunnel, which has no source address.
    #[error(
        "no source address for the tunnel: this host has no {} address that is not a service's",
        if .0.is_ipv4() { "IPv4" } else { "IPv6" }
    )]
    NoSource(IpAddr),
    #[error("{0}")]
    Other(String),
}

/// Source addresses of tunnels that the settings give, instead of those that the kernel would take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenSources {
    /// Of IPv4: also what answers to checks come to.
    pub v4: Option<Ipv4Addr>,
    /// Of IPv6.
    pub v6: Option<Ipv6Addr>,
    /// The prefix that each flow has a source of IPv4 tunnels from.
    pub prefix_v4: Option<Ipv4Prefix>,
}

impl GivenSources {
    /// The source that this host's own packets to addresses of an IP version are to have, if it is given.
    pub fn own(&self, v4: bool) -> Option<IpAddr> {
        if v4 { self.v4.map(IpAddr::V4) } else { self.v6.map(IpAddr::V6) }
    }

    /// The source of a tunnel to a backend, if it is given: of a prefix the first address.
    pub fn outer(&self, backend: IpAddr) -> Option<IpAddr> {
        let of_prefix = self.prefix_v4.filter(|_| backend.is_ipv4());
        let of_prefix = of_prefix.map(|prefix| prefix.first().into());
        of_prefix.or_else(|| self.own(backend.is_ipv4()))
    }
}

/// A VLAN interface (`eth0.20`). Its frames leave by the interface below it, tagged (802.1Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vlan {
    /// Index of the interface below (`eth0`).
    pub beneath: u32,
    /// Id, 1 to 4094.
    pub id: u16,
}
