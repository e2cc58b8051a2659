//! Encapsulation of probes: the headers that bring a packet of this host to a backend as a client's packet gets there.

use super::encapsulate::{Shim, outer_payload, shim};
use crate::{
    abi::{
        form::{Form, ProbeRoute},
        service::{IPV4, IPV6},
    },
    flow_hash::FlowHash,
    wire::{ipv4, ipv6},
};

/// The outer IP header of a probe's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuterIp {
    /// Of an IPv4 tunnel.
    V4([u8; ipv4::LENGTH]),
    /// Of an IPv6 tunnel.
    V6([u8; ipv6::LENGTH]),
}

impl ProbeRoute {
    /// How packets get to the backend.
    #[inline(always)]
    pub const fn form(&self) -> Form {
        Form::from_flags(self.form)
    }

    /// Bytes that encapsulation adds to a packet.
    #[inline(always)]
    pub const fn overhead(&self) -> u16 {
        self.form().overhead(self.is_v4())
    }

    /// Whether the backend, and so the tunnel, is of IPv4.
    #[inline(always)]
    pub const fn is_v4(&self) -> bool {
        self.version == IPV4 as u32
    }

    /// The outer IP header of a packet of an IP version and length. All packets of a route, by its number, look like one
    /// flow.
    #[inline(always)]
    pub fn outer(&self, number: u32, version: u8, packet: u16) -> OuterIp {
        let (protocol, payload) = outer_payload(self.form(), version, packet);
        if self.is_v4() {
            OuterIp::V4(
                ipv4::Outer {
                    source: self.source[3],
                    destination: self.backend[3],
                    traffic_class: 0,
                    protocol,
                    payload,
                }
                .emit(),
            )
        } else {
            OuterIp::V6(
                ipv6::Outer {
                    source: self.source,
                    destination: self.backend,
                    traffic_class: 0,
                    flow_label: hash(number).flow_label(),
                    next_header: protocol,
                    payload,
                }
                .emit(),
            )
        }
    }

    /// The UDP and GUE headers behind the outer IP header.
    #[inline(always)]
    pub fn shim(&self, number: u32, version: u8, packet: u16) -> Shim {
        shim(self.form(), hash(number), version, packet)
    }
}

/// Stands in for a flow's hash.
#[inline(always)]
const fn hash(number: u32) -> FlowHash {
    FlowHash(number as u64)
}

/// IP version of an ethertype as it stands in a frame; `None`: it is no IP.
#[inline(always)]
pub const fn version(ether_type: [u8; 2]) -> Option<u8> {
    match ether_type {
        crate::wire::ethernet::IPV4 => Some(IPV4),
        crate::wire::ethernet::IPV6 => Some(IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;
    use crate::abi::service::address_words;

    fn route(backend: &str, source: &str, form: Form) -> ProbeRoute {
        let backend: IpAddr = backend.parse().unwrap();
        ProbeRoute {
            backend: address_words(backend),
            source: address_words(source.parse().unwrap()),
            version: if backend.is_ipv4() { IPV4 } else { IPV6 }.into(),
            form: form.flags(),
            interface: 2,
            reserved: 0,
        }
    }

    #[test]
    fn an_ipv4_tunnel_by_hand() {
        let route = route("10.1.0.11", "10.0.0.2", Form::IP_IN_IP);
        // 60 bytes of IPv4: total length 80, DF, TTL 64, protocol 4; 0x4500 + 0x50 + 0x4000 + 0x4004
        // + 0x0a00 + 0x0002 + 0x0a01 + 0x000b = 0xd962; its complement is 0x269d.
        let by_hand = [0x45, 0, 0, 80, 0, 0, 0x40, 0, 64, 4, 0x26, 0x9d, 10, 0, 0, 2, 10, 1, 0, 11];
        assert_eq!(route.outer(7, IPV4, 60), OuterIp::V4(by_hand));
        assert_eq!(route.overhead(), 20);
    }

    #[test]
    fn gue_over_ipv6_by_hand() {
        let route = route("2001:db8:1::b", "2001:db8::2", Form::gue(6_080));
        let OuterIp::V6(outer) = route.outer(7, IPV4, 60) else { panic!() };
        // 60 bytes, 4 of GUE and 8 of UDP.
        assert_eq!(outer[4..8], [0, 72, 17, 64]);
        assert_eq!(outer[8..24], "2001:db8::2".parse::<core::net::Ipv6Addr>().unwrap().octets());
        assert_eq!(outer[24..], "2001:db8:1::b".parse::<core::net::Ipv6Addr>().unwrap().octets());
        // From port 0xc007, to 6080; 72 bytes, no checksum; IPv4 inside.
        assert_eq!(route.shim(7, IPV4, 60), [0xc0, 7, 0x17, 0xc0, 0, 72, 0, 0, 0, 4, 0, 0]);
        assert_eq!(route.overhead(), 52);
    }

    #[test]
    fn only_ip_packets_are_probes() {
        assert_eq!([[8, 0], [0x86, 0xdd], [8, 6]].map(version), [Some(IPV4), Some(IPV6), None]);
    }
}
