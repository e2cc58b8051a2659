//! The receiver at work: its program, and what it lets through.

use std::{collections::BTreeSet, fmt, net::IpAddr, num::NonZeroU16, path::Path};

use aya::maps::{Array, HashMap, LpmTrie, MapData, MapError, PerCpuArray, lpm_trie::Key};
use lb_common::abi::{
    counter::VerdictCounter,
    limits, names,
    pod::{bytes_of, from_bytes},
    service::VipKey,
    service::address_of,
    verdict::Verdict,
};

use crate::{
    Attached, Component, DataplaneError, MapsError, Options,
    maps::{array, map_error, verdicts_of},
    opener::Opener,
};

pub use lb_base::{Prefix, PrefixError};

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

const ADDRESS: usize = 16;
const VIP: usize = size_of::<VipKey>();

/// A value of the lists: only the key counts.
const PRESENT: u32 = 1;

/// The receiver's pinned maps: readable with the daemon dead.
pub struct ReceiverMaps {
    sources: LpmTrie<MapData, [u8; ADDRESS], u32>,
    vips: HashMap<MapData, [u8; VIP], u32>,
    endpoints: HashMap<MapData, [u8; VIP], u32>,
    gue_port: Array<MapData, u64>,
    verdict_counters: PerCpuArray<MapData, [u64; size_of::<VerdictCounter>() / 8]>,
}

impl fmt::Debug for ReceiverMaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverMaps").finish_non_exhaustive()
    }
}

impl ReceiverMaps {
    /// Opens the receiver's maps under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Component::Receiver)?;
        Ok(Self {
            sources: pins.typed(names::SOURCES)?,
            vips: pins.typed(names::VIPS)?,
            endpoints: pins.typed(names::ENDPOINTS)?,
            gue_port: pins.typed(names::GUE_PORT)?,
            verdict_counters: pins.typed(names::VERDICT_COUNTERS)?,
        })
    }

    /// What is let through.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn allowed(&self) -> Result<AllowLists, MapsError> {
        let source = |key: Key<[u8; ADDRESS]>| Prefix::from_key(key.prefix_len(), key.data());
        let sources: Result<BTreeSet<_>, _> =
            self.sources.keys().map(|key| key.map(source)).collect();
        let port = self.gue_port.get(&0, 0).map_err(map_error(names::GUE_PORT))?;
        Ok(AllowLists {
            sources: sources.map_err(map_error(names::SOURCES))?,
            vips: addresses(&self.vips).map_err(map_error(names::VIPS))?,
            endpoints: addresses(&self.endpoints).map_err(map_error(names::ENDPOINTS))?,
            gue_port: NonZeroU16::new(port as u16),
        })
    }

    /// Packets under each verdict, summed over the CPUs, by number.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn verdicts(&self) -> Result<Vec<(Verdict, VerdictCounter)>, MapsError> {
        verdicts_of(&self.verdict_counters)
    }

    /// Makes the lists equal others: first what is new comes in, then what is not wanted goes. Of endpoints
    /// it is the other way round, so that none of them is a VIP meanwhile.
    ///
    /// # Errors
    /// What the kernel answers; the lists may then be on the way.
    pub fn fill(&mut self, wanted: &AllowLists) -> Result<(), MapsError> {
        let there = self.allowed()?;
        self.remove_endpoints(there.endpoints.difference(&wanted.endpoints))?;
        let port = wanted.gue_port.map_or(0, |port| port.get().into());
        self.gue_port.set(0, port, 0).map_err(map_error(names::GUE_PORT))?;
        for source in wanted.sources.difference(&there.sources) {
            self.sources
                .insert(&source_key(source), PRESENT, 0)
                .map_err(map_error(names::SOURCES))?;
        }
        for vip in wanted.vips.difference(&there.vips) {
            self.vips.insert(vip_key(*vip), PRESENT, 0).map_err(map_error(names::VIPS))?;
        }
        for source in there.sources.difference(&wanted.sources) {
            self.sources.remove(&source_key(source)).map_err(map_error(names::SOURCES))?;
        }
        for vip in there.vips.difference(&wanted.vips) {
            self.vips.remove(&vip_key(*vip)).map_err(map_error(names::VIPS))?;
        }
        self.insert_endpoints(wanted.endpoints.difference(&there.endpoints))
    }

    /// Makes the endpoints equal others, of which none is a VIP.
    ///
    /// # Errors
    /// What the kernel answers; they may then be on the way.
    pub fn fill_endpoints(&mut self, wanted: &BTreeSet<IpAddr>) -> Result<(), MapsError> {
        let there = addresses(&self.endpoints).map_err(map_error(names::ENDPOINTS))?;
        self.remove_endpoints(there.difference(wanted))?;
        self.insert_endpoints(wanted.difference(&there))
    }

    fn remove_endpoints<'a>(
        &mut self,
        mut endpoints: impl Iterator<Item = &'a IpAddr>,
    ) -> Result<(), MapsError> {
        let removed = endpoints.try_for_each(|it| self.endpoints.remove(&vip_key(*it)));
        removed.map_err(map_error(names::ENDPOINTS))
    }

    fn insert_endpoints<'a>(
        &mut self,
        mut endpoints: impl Iterator<Item = &'a IpAddr>,
    ) -> Result<(), MapsError> {
        let inserted = endpoints.try_for_each(|it| self.endpoints.insert(vip_key(*it), PRESENT, 0));
        inserted.map_err(map_error(names::ENDPOINTS))
    }
}

/// The addresses in a set.
fn addresses(set: &HashMap<MapData, [u8; VIP], u32>) -> Result<BTreeSet<IpAddr>, MapError> {
    let address = |key: [u8; VIP]| {
        from_bytes::<VipKey>(&key).map(|key| address_of(&key.address, key.version as u8))
    };
    set.keys().filter_map(|key| key.map(address).transpose()).collect()
}

fn source_key(source: &Prefix) -> Key<[u8; ADDRESS]> {
    let (bits, octets) = source.key();
    Key::new(bits, octets)
}

fn vip_key(vip: IpAddr) -> [u8; VIP] {
    array(bytes_of(&VipKey::of(vip)))
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
