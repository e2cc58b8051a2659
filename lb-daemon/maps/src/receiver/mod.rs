//! The receiver at work: its program, and what it lets through.

mod maps;
mod prefix;

use std::{collections::BTreeSet, net::IpAddr, num::NonZeroU16};

use lb_common::abi::limits;
pub use maps::ReceiverMaps;
pub use prefix::{Prefix, PrefixError};

use super::{Attached, Component, DataplaneError, Options};

/// What a receiver lets through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowLists {
    /// Where balancers send from.
    pub sources: BTreeSet<Prefix>,
    /// The VIPs that this host serves.
    pub vips: BTreeSet<IpAddr>,
    /// Addresses where tunnels end, none of them a VIP.
    pub endpoints: BTreeSet<IpAddr>,
    /// UDP port where GUE ends; `None`: nowhere.
    pub gue_port: Option<NonZeroU16>,
}

impl AllowLists {
    /// Where tunnels end on a host with these addresses: there and at the endpoints of the lists, which go first
    /// where there are more than the map holds, but at no VIP. The number is that of those left out.
    pub fn endpoints_on(&self, own: &BTreeSet<IpAddr>) -> (BTreeSet<IpAddr>, usize) {
        let all = self.endpoints.iter().chain(own.difference(&self.endpoints));
        let mut all = all.filter(|address| !self.vips.contains(address)).copied();
        let endpoints = all.by_ref().take(limits::MAX_ENDPOINTS as usize).collect();
        (endpoints, all.count())
    }
}

/// The receiver's program on its interfaces.
#[derive(Debug)]
pub struct Receiver {
    /// The program on its interfaces.
    pub attached: Attached,
    /// Its maps.
    pub maps: ReceiverMaps,
}

impl Receiver {
    /// Loads the receiver over its pinned maps, makes them equal the lists, and attaches it. What
    /// is allowed before and after is allowed all the time.
    ///
    /// # Errors
    /// [`DataplaneError`]: what ran before runs on.
    pub fn open(options: &Options, allowed: &AllowLists) -> Result<Self, DataplaneError> {
        let (attached, maps) = Attached::open(Component::Receiver, options, || {
            let mut maps = ReceiverMaps::open(&options.bpffs)?;
            maps.fill(allowed)?;
            Ok(maps)
        })?;
        Ok(Self { attached, maps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> BTreeSet<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn tunnels_end_at_own_and_listed_addresses_but_at_no_vip() {
        let lists = AllowLists {
            vips: set(&["203.0.113.1", "2001:db8:f::1"]),
            endpoints: set(&["10.9.0.1", "10.0.0.2"]),
            ..AllowLists::default()
        };
        let own = set(&["10.0.0.2", "203.0.113.1", "fd00::2", "2001:db8:f::1"]);
        let expected = set(&["10.0.0.2", "10.9.0.1", "fd00::2"]);
        assert_eq!(lists.endpoints_on(&own), (expected, 0));
        assert_eq!(lists.endpoints_on(&set(&[])), (set(&["10.9.0.1", "10.0.0.2"]), 0));
    }

    /// 16,384 have room.
    #[test]
    fn of_more_addresses_than_have_room_listed_ones_are_there() {
        let own: BTreeSet<_> =
            (0..20_000_u32).map(|n| IpAddr::from((0x0a00_0000 + n).to_be_bytes())).collect();
        let endpoints = set(&["fd00::9", "192.0.2.9"]);
        let lists = AllowLists { endpoints: endpoints.clone(), ..AllowLists::default() };
        let (there, left_out) = lists.endpoints_on(&own);
        assert_eq!((there.len(), left_out), (16_384, 20_002 - 16_384));
        assert!(there.is_superset(&endpoints));
    }
}
