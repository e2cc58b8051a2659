//! Flows that rows share.

use lb_tests::packets::{
    fixture::{HASH_KEY, MapFixture},
    flow_hash::{self, Hash},
    frames::Flow,
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
    flow_hash::hash(flow, 6, false, HASH_KEY)
}

/// The hash of a UDP flow of a usual service.
pub(crate) fn udp_hash(flow: &Flow) -> Hash {
    flow_hash::hash(flow, 17, false, HASH_KEY)
}

/// One region with tunnels of a version; the slots of the four flows above say: 0, then 1, 2, 3.
pub(crate) fn fixture(tunnel: u8) -> MapFixture {
    listed(MapFixture::new(tunnel), 0)
}

/// Fills the slots of the four flows in a region.
pub(crate) fn listed(fixture: MapFixture, region: usize) -> MapFixture {
    let list = [0, 1, 2, 3];
    fixture
        .list(region, tcp_hash(&v4()), list)
        .list(region, tcp_hash(&v6()), list)
        .list(region, udp_hash(&v4_udp()), list)
        .list(region, udp_hash(&v6_udp()), list)
}
