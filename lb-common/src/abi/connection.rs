//! Where a connection is, and a flow in whole words.

use super::service::IPV6;
use crate::flow_hash::FlowTuple;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index of the backend.
    pub backend: u32,
    /// Incarnation of that index.
    pub incarnation: u8,
}

/// A flow in five words, addresses and ports as they stand in the packet: client, VIP, then
/// `{client port 16, service port 16, protocol 8, 0}` from the low end.
pub type FlowKeyV6 = [u64; 5];

/// The key of an IPv6 flow.
#[inline(always)]
pub const fn flow_key_v6(flow: &FlowTuple) -> FlowKeyV6 {
    let (client, vip) = (&flow.client, &flow.vip);
    [
        pair(client[0], client[1]),
        pair(client[2], client[3]),
        pair(vip[0], vip[1]),
        pair(vip[2], vip[3]),
        ports(flow),
    ]
}

/// The flow of a key.
pub const fn flow_of_v6(key: &FlowKeyV6) -> FlowTuple {
    FlowTuple {
        client: [key[0] as u32, (key[0] >> 32) as u32, key[1] as u32, (key[1] >> 32) as u32],
        vip: [key[2] as u32, (key[2] >> 32) as u32, key[3] as u32, (key[3] >> 32) as u32],
        client_port: key[4] as u16,
        service_port: (key[4] >> 16) as u16,
        protocol: (key[4] >> 32) as u8,
        version: IPV6,
    }
}

#[inline(always)]
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

#[inline(always)]
const fn ports(flow: &FlowTuple) -> u64 {
    flow.client_port as u64 | (flow.service_port as u64) << 16 | (flow.protocol as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_key_holds_the_whole_flow(
            client: [u32; 4], vip: [u32; 4], client_port: u16, service_port: u16, protocol: u8,
        ) {
            let v6 = FlowTuple { client, vip, client_port, service_port, protocol, version: IPV6 };
            proptest::prop_assert_eq!(flow_of_v6(&flow_key_v6(&v6)), v6);
        }
    }
}
