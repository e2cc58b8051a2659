//! The prefix that a balancer's IPv4 tunnels come from, and addresses of a configuration that may not be in it.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
};

use crate::{Configuration, Name};

/// The addresses that begin with the same bits: `10.64.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Prefix {
    address: Ipv4Addr,
    bits: u8,
}

impl Ipv4Prefix {
    /// Fewest bits of a prefix that tunnels may come from: a host part has three bytes at most
    /// ([`lb_common::abi::pool::Descriptor::source_hosts_v4`]).
    pub const LEAST_BITS: u8 = 8;

    /// `None`: it has fewer than [`Self::LEAST_BITS`] bits, or more than an address.
    pub fn new(address: Ipv4Addr, bits: u8) -> Option<Self> {
        let prefix = Self { address, bits };
        let is_prefix = (Self::LEAST_BITS..=32).contains(&bits);
        is_prefix.then(|| Self { address: prefix.first_of(address), ..prefix })
    }

    /// The prefix of one address.
    pub const fn single(address: Ipv4Addr) -> Self {
        Self { address, bits: 32 }
    }

    /// Its first address.
    pub const fn first(&self) -> Ipv4Addr {
        self.address
    }

    /// Its last address.
    pub fn last(&self) -> Ipv4Addr {
        self.address | self.hosts()
    }

    /// The bits that differ between its addresses, in the form of an address.
    pub fn hosts(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX.checked_shr(self.bits.into()).unwrap_or(0))
    }

    /// Whether it is more than one address.
    pub const fn is_many(&self) -> bool {
        self.bits < 32
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        matches!(address.to_canonical(), IpAddr::V4(v4) if self.first_of(v4) == self.address)
    }

    fn first_of(&self, address: Ipv4Addr) -> Ipv4Addr {
        address & !self.hosts()
    }
}

/// As operators write it: a prefix of one address is that address.
impl fmt::Display for Ipv4Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_many() {
            true => write!(f, "{}/{}", self.address, self.bits),
            false => self.address.fmt(f),
        }
    }
}

/// An address of a configuration that is in the prefix. The prefix is routed to the balancer, and receivers pass no
/// packets on that come from a VIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceClash {
    Vip { service: Name, vip: IpAddr, prefix: Ipv4Prefix },
    Backend { pool: Name, backend: IpAddr, prefix: Ipv4Prefix },
}

impl SourceClash {
    /// The first one in the order of names; `None`: there is none.
    pub fn find(prefix: Ipv4Prefix, configuration: &Configuration) -> Option<Self> {
        let services = &configuration.services;
        let service = services.iter().find(|(_, service)| prefix.contains(service.address));
        if let Some((name, service)) = service {
            return Some(Self::Vip { service: name.clone(), vip: service.address, prefix });
        }
        configuration.pools.iter().find_map(|(pool, members)| {
            let backend = *members.backends.keys().find(|address| prefix.contains(**address))?;
            Some(Self::Backend { pool: pool.clone(), backend, prefix })
        })
    }
}

impl fmt::Display for SourceClash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name, address, prefix) = match self {
            Self::Vip { service, vip, prefix } => ("service", service, vip, prefix),
            Self::Backend { pool, backend, prefix } => ("pool", pool, backend, prefix),
        };
        write!(f, "{what} {name}: {address} is in this balancer's tunnel-source-prefix {prefix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AdminState, Affinity, Backend, Fragments, Pool, Ports, Protocol, Service, WhenFull,
    };

    fn prefix(address: [u8; 4], bits: u8) -> Ipv4Prefix {
        Ipv4Prefix::new(address.into(), bits).unwrap()
    }

    #[test]
    fn a_prefix_has_the_addresses_that_begin_with_its_bits() {
        for (address, bits, text, last) in [
            ([10, 64, 0, 77], 24, "10.64.0.0/24", [10, 64, 0, 255]),
            ([10, 64, 23, 1], 20, "10.64.16.0/20", [10, 64, 31, 255]),
            ([10, 64, 0, 7], 31, "10.64.0.6/31", [10, 64, 0, 7]),
            ([10, 64, 0, 7], 32, "10.64.0.7", [10, 64, 0, 7]),
            ([10, 1, 2, 3], 8, "10.0.0.0/8", [10, 255, 255, 255]),
        ] {
            let prefix = prefix(address, bits);
            assert_eq!((prefix.to_string(), prefix.last()), (text.to_owned(), last.into()));
            assert_eq!(prefix.is_many(), bits < 32);
            let (first, last) = (u32::from(prefix.first()), u32::from(prefix.last()));
            for (number, is_in) in
                [(first, true), (last, true), (first - 1, false), (last + 1, false)]
            {
                let address = Ipv4Addr::from(number);
                assert_eq!(prefix.contains(address.into()), is_in, "{address} in {text}");
                assert_eq!(prefix.contains(address.to_ipv6_mapped().into()), is_in);
            }
            assert!(!prefix.contains("fd00::1".parse().unwrap()));
        }
        assert_eq!(prefix([10, 64, 0, 0], 24).hosts(), Ipv4Addr::new(0, 0, 0, 255));
        assert_eq!(Ipv4Prefix::single([10, 0, 0, 2].into()), prefix([10, 0, 0, 2], 32));
    }

    #[test]
    fn a_prefix_has_8_to_32_bits() {
        assert_eq!(Ipv4Prefix::new([10, 0, 0, 0].into(), 7), None);
        assert_eq!(Ipv4Prefix::new([10, 0, 0, 0].into(), 33), None);
    }

    #[test]
    fn a_vip_or_a_backend_in_the_prefix_clashes() {
        let name = |text: &str| Name::new(text).unwrap();
        let mut configuration = Configuration::default();
        let backend = |region| Backend {
            region,
            weight: 1,
            admin_state: AdminState::Active,
            mtu: None,
            max_connection_rate: None,
        };
        let mut pool = Pool::default();
        for address in ["10.1.0.11", "10.1.0.12", "fd00::1"] {
            pool.backends.insert(address.parse().unwrap(), backend(name("eu")));
        }
        configuration.pools.insert(name("web"), pool.into());
        let service = Service {
            address: "203.0.113.1".parse().unwrap(),
            ports: Ports::Any,
            protocol: Protocol::Tcp,
            pool: name("web"),
            affinity: Affinity::Connection,
            when_full: WhenFull::Nearest,
            idle_timeout: None,
            fragments: Fragments::Dropped,
        };
        configuration.services.insert(name("site"), service);
        let clash = |address, bits| {
            let found = SourceClash::find(prefix(address, bits), &configuration);
            found.map(|found| found.to_string())
        };
        assert_eq!(clash([10, 64, 0, 0], 24), None);
        let of = |what: &str| Some(format!("{what} is in this balancer's tunnel-source-prefix"));
        let with = |what: &str, prefix: &str| of(what).map(|text| format!("{text} {prefix}"));
        assert_eq!(clash([10, 1, 0, 12], 32), with("pool web: 10.1.0.12", "10.1.0.12"));
        assert_eq!(clash([10, 0, 0, 0], 8), with("pool web: 10.1.0.11", "10.0.0.0/8"));
        let vip = with("service site: 203.0.113.1", "203.0.113.0/28");
        assert_eq!(clash([203, 0, 113, 0], 28), vip);
    }
}
