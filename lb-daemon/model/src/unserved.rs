//! What becomes of packets for a VIP that no service of it takes: what the configuration says, and where it says `auto`, what
//! the VIP is to this host.
//!
//! A host that has the VIP as an address, or forwards packets, may be meant to get them: it serves the VIP itself,
//! or is a router to it. Any other host has nothing to do with them, so nothing is lost by a drop in the driver.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_base::{Prefix, longest_match};

use crate::Unserved;

/// What `auto` depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalHost {
    /// All addresses of all interfaces, `lo` and dummy ones included, but for loopback and link-local ones.
    pub addresses: BTreeSet<IpAddr>,
    /// Whether it forwards IPv4 packets that come in by any interface.
    pub forwards_v4: bool,
    /// Whether it forwards IPv6 packets that come in by any interface.
    pub forwards_v6: bool,
}

/// Nothing is known of it, so packets are left to it.
impl Default for LocalHost {
    fn default() -> Self {
        Self { addresses: BTreeSet::new(), forwards_v4: true, forwards_v6: true }
    }
}

impl LocalHost {
    fn forwards(&self, vip: IpAddr) -> bool {
        if vip.is_ipv4() { self.forwards_v4 } else { self.forwards_v6 }
    }
}

/// Why packets that no service takes are dropped or left to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnservedCause {
    /// The configuration says so for this prefix.
    Configured(Prefix),
    /// By `auto`: the VIP is an address of this host.
    OwnAddress,
    /// By `auto`: this host forwards packets of the IP version of the VIP.
    Forwards,
    /// By `auto`: the host has nothing to do with the VIP.
    NotOfHost,
}

/// Whether packets that no service takes are dropped, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnservedDecision {
    /// Whether they are dropped.
    pub drops: bool,
    pub cause: UnservedCause,
}

/// What a configuration says of a VIP; [`Unserved::Auto`]: nothing else.
pub fn configured(vips: &BTreeMap<Prefix, Unserved>, vip: IpAddr) -> Unserved {
    longest_match(vips, vip).map_or(Unserved::Auto, |(_, unserved)| *unserved)
}

/// Whether packets for a VIP that no service takes are dropped, by what the configuration says of it.
pub fn drops(unserved: Unserved, host: &LocalHost, vip: IpAddr) -> bool {
    match unserved {
        Unserved::Drop => true,
        Unserved::Pass => false,
        Unserved::Auto => by_host(host, vip) == UnservedCause::NotOfHost,
    }
}

/// What follows from a configuration and the host, and why.
pub fn decide(
    vips: &BTreeMap<Prefix, Unserved>,
    host: &LocalHost,
    vip: IpAddr,
) -> UnservedDecision {
    let found = longest_match(vips, vip);
    let unserved = found.map_or(Unserved::Auto, |(_, unserved)| *unserved);
    let cause = match found {
        Some((prefix, Unserved::Drop | Unserved::Pass)) => UnservedCause::Configured(prefix),
        _ => by_host(host, vip),
    };
    UnservedDecision { drops: drops(unserved, host, vip), cause }
}

fn by_host(host: &LocalHost, vip: IpAddr) -> UnservedCause {
    match vip {
        vip if host.addresses.contains(&vip) => UnservedCause::OwnAddress,
        vip if host.forwards(vip) => UnservedCause::Forwards,
        _ => UnservedCause::NotOfHost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vips(ranges: &[(&str, Unserved)]) -> BTreeMap<Prefix, Unserved> {
        ranges.iter().map(|(prefix, unserved)| (prefix.parse().unwrap(), *unserved)).collect()
    }

    #[test]
    fn packets_are_left_to_a_host_of_which_nothing_is_known() {
        for vip in ["203.0.113.1", "2001:db8:f::1"] {
            assert!(!drops(Unserved::Auto, &LocalHost::default(), vip.parse().unwrap()), "{vip}");
        }
    }

    #[test]
    fn auto_drops_only_what_the_host_has_nothing_to_do_with() {
        use UnservedCause::*;
        let own = ["203.0.113.1", "2001:db8:f::1"].map(|text| text.parse().unwrap());
        for (forwards_v4, forwards_v6, vip, cause) in [
            (false, false, "203.0.113.1", OwnAddress),
            (true, true, "2001:db8:f::1", OwnAddress),
            (false, false, "203.0.113.2", NotOfHost),
            (false, true, "203.0.113.2", NotOfHost),
            (true, false, "203.0.113.2", Forwards),
            (false, false, "2001:db8:f::2", NotOfHost),
            (true, false, "2001:db8:f::2", NotOfHost),
            (false, true, "2001:db8:f::2", Forwards),
        ] {
            let host = LocalHost { addresses: own.into(), forwards_v4, forwards_v6 };
            let expected = UnservedDecision { drops: cause == NotOfHost, cause };
            let vip = vip.parse().unwrap();
            assert_eq!(decide(&vips(&[]), &host, vip), expected, "{vip} {host:?}");
            // A range that says `auto` changes nothing.
            let auto = vips(&[("0.0.0.0/0", Unserved::Auto), ("2001:db8::/32", Unserved::Auto)]);
            assert_eq!(decide(&auto, &host, vip), expected, "{vip} {host:?}");
            assert_eq!(drops(configured(&auto, vip), &host, vip), expected.drops);
        }
    }

    #[test]
    fn the_longest_range_of_a_vip_says_what_becomes_of_packets() {
        let vips = vips(&[
            ("203.0.113.0/24", Unserved::Drop),
            ("203.0.113.128/25", Unserved::Auto),
            ("203.0.113.130", Unserved::Pass),
        ]);
        let host = LocalHost { addresses: BTreeSet::new(), forwards_v4: false, forwards_v6: false };
        let decided = |vip: &str, host: &LocalHost| decide(&vips, host, vip.parse().unwrap());
        let configured = |drops, prefix: &str| {
            let cause = UnservedCause::Configured(prefix.parse().unwrap());
            UnservedDecision { drops, cause }
        };
        for host in [&host, &LocalHost::default()] {
            assert_eq!(decided("203.0.113.1", host), configured(true, "203.0.113.0/24"));
            assert_eq!(decided("203.0.113.130", host), configured(false, "203.0.113.130"));
        }
        let by_host = |host| {
            let UnservedDecision { drops, cause } = decided("203.0.113.131", host);
            (drops, cause)
        };
        assert_eq!(by_host(&host), (true, UnservedCause::NotOfHost));
        assert_eq!(by_host(&LocalHost::default()), (false, UnservedCause::Forwards));
    }
}
