//! Keys of what is remembered by connection: whole words, so that they stand aligned on the stack.

use crate::flow_hash::FlowTuple;

/// A flow of IPv4 in two words: `{client 32, VIP 32}`, `{client port 16, service port 16,
/// protocol 8, 0}` from the low end, addresses and ports as they stand in the packet.
pub type FlowKeyV4 = [u64; 2];
/// A flow of IPv6 in five words: client, VIP, then as the second word of [`FlowKeyV4`].
pub type FlowKeyV6 = [u64; 5];

/// The key of an IPv4 flow.
#[inline(always)]
pub const fn flow_key_v4(flow: &FlowTuple) -> FlowKeyV4 {
    [pair(flow.client[3], flow.vip[3]), ports(flow)]
}

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
pub const fn flow_of_v4(key: &FlowKeyV4) -> FlowTuple {
    use super::service::{IPV4, V4_MAPPED};
    FlowTuple {
        client: [0, 0, V4_MAPPED, key[0] as u32],
        vip: [0, 0, V4_MAPPED, (key[0] >> 32) as u32],
        client_port: key[1] as u16,
        service_port: (key[1] >> 16) as u16,
        protocol: (key[1] >> 32) as u8,
        version: IPV4,
    }
}

/// The flow of a key.
pub const fn flow_of_v6(key: &FlowKeyV6) -> FlowTuple {
    FlowTuple {
        client: [key[0] as u32, (key[0] >> 32) as u32, key[1] as u32, (key[1] >> 32) as u32],
        vip: [key[2] as u32, (key[2] >> 32) as u32, key[3] as u32, (key[3] >> 32) as u32],
        client_port: key[4] as u16,
        service_port: (key[4] >> 16) as u16,
        protocol: (key[4] >> 32) as u8,
        version: super::service::IPV6,
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
    use crate::abi::service::{IPV4, IPV6, V4_MAPPED};

    proptest::proptest! {
        #[test]
        fn a_key_holds_the_whole_flow(
            client: [u32; 4], vip: [u32; 4], client_port: u16, service_port: u16, protocol: u8,
        ) {
            let v6 = FlowTuple { client, vip, client_port, service_port, protocol, version: IPV6 };
            proptest::prop_assert_eq!(flow_of_v6(&flow_key_v6(&v6)), v6);
            let v4 = FlowTuple {
                client: [0, 0, V4_MAPPED, client[3]],
                vip: [0, 0, V4_MAPPED, vip[3]],
                version: IPV4,
                ..v6
            };
            proptest::prop_assert_eq!(flow_of_v4(&flow_key_v4(&v4)), v4);
        }
    }
}
