//! Flows that rows share.

use crate::packets::{
    frames::Flow,
    mx2::{self, Hash},
    scene::{HASH_KEY, Scene},
};

/// A client of the IPv4 service on port 80.
pub(crate) fn v4() -> Flow {
    Flow::new("192.0.2.9:4711", "198.51.100.1:80")
}

/// A client of the IPv6 service on port 80.
pub(crate) fn v6() -> Flow {
    Flow::new("[2001:db8:c::9]:4711", "[2001:db8:80::1]:80")
}

/// A client of the IPv4 service on UDP port 53.
pub(crate) fn v4_udp() -> Flow {
    Flow::new("192.0.2.9:4711", "198.51.100.1:53")
}

/// A client of the IPv6 service on UDP port 53.
pub(crate) fn v6_udp() -> Flow {
    Flow::new("[2001:db8:c::9]:4711", "[2001:db8:80::1]:53")
}

/// The hash of a TCP flow of a usual service.
pub(crate) fn tcp_hash(flow: &Flow) -> Hash {
    mx2::hash(flow, 6, false, HASH_KEY)
}

/// The hash of a UDP flow of a usual service.
pub(crate) fn udp_hash(flow: &Flow) -> Hash {
    mx2::hash(flow, 17, false, HASH_KEY)
}

/// One region with tunnels of a version; the slots of the four flows above say: 0, then 1, 2, 3.
pub(crate) fn scene(tunnel: u8) -> Scene {
    listed(Scene::new(tunnel), 0)
}

/// Fills the slots of the four flows in a region.
pub(crate) fn listed(scene: Scene, region: usize) -> Scene {
    let list = [0, 1, 2, 3];
    scene
        .list(region, tcp_hash(&v4()), list)
        .list(region, tcp_hash(&v6()), list)
        .list(region, udp_hash(&v4_udp()), list)
        .list(region, udp_hash(&v6_udp()), list)
}
