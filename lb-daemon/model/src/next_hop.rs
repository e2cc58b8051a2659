//! Where packets to a backend leave this host. `net` finds it out, `reconcile` writes it to the maps.

use std::net::IpAddr;

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
}

/// A VLAN interface (`eth0.20`). Its frames leave by the interface below it, tagged (802.1Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vlan {
    /// Index of the interface below (`eth0`).
    pub beneath: u32,
    /// Id, 1 to 4094.
    pub id: u16,
}
