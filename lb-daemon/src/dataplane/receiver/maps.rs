use std::{collections::BTreeSet, fmt, net::IpAddr, num::NonZeroU16, path::Path};

use aya::maps::{Array, HashMap, LpmTrie, MapData, PerCpuArray, lpm_trie::Key};
use lb_common::abi::{
    counter::VerdictCounter,
    names,
    pod::{bytes_of, from_bytes},
    receiver::VipKey,
    service::{IPV4, IPV6, address_of, address_words},
    verdict::Verdict,
};

use super::{AllowLists, Prefix};
use crate::dataplane::{
    MapsError, Role,
    maps::{array, of, verdicts_of},
    opener::Opener,
};

const ADDRESS: usize = 16;
const VIP: usize = size_of::<VipKey>();

/// A value of the lists: only the key counts.
const PRESENT: u32 = 1;

/// The receiver's pinned maps: readable with the daemon dead.
pub struct ReceiverMaps {
    sources: LpmTrie<MapData, [u8; ADDRESS], u32>,
    vips: HashMap<MapData, [u8; VIP], u32>,
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
        let pins = Opener::new(bpffs, Role::Receiver);
        Ok(Self {
            sources: pins.typed(names::SOURCES)?,
            vips: pins.typed(names::VIPS)?,
            gue_port: pins.typed(names::GUE_PORT)?,
            verdict_counters: pins.typed(names::VERDICT_COUNTERS)?,
        })
    }

    /// What is let through.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn allowed(&self) -> Result<AllowLists, MapsError> {
        let source = |key: Key<[u8; ADDRESS]>| Prefix::of_key(key.prefix_len(), key.data());
        let vip = |key: [u8; VIP]| {
            from_bytes::<VipKey>(&key).map(|key| address_of(&key.address, key.version as u8))
        };
        let sources: Result<BTreeSet<_>, _> =
            self.sources.keys().map(|key| key.map(source)).collect();
        let vips: Result<Vec<_>, _> = self.vips.keys().map(|key| key.map(vip)).collect();
        let port = self.gue_port.get(&0, 0).map_err(of(names::GUE_PORT))?;
        Ok(AllowLists {
            sources: sources.map_err(of(names::SOURCES))?,
            vips: vips.map_err(of(names::VIPS))?.into_iter().flatten().collect(),
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

    /// Makes the lists equal others: first what is new comes in, then what is not wanted goes.
    ///
    /// # Errors
    /// What the kernel answers; the lists may then be on the way.
    pub fn fill(&mut self, wanted: &AllowLists) -> Result<(), MapsError> {
        let there = self.allowed()?;
        let port = wanted.gue_port.map_or(0, |port| port.get().into());
        self.gue_port.set(0, port, 0).map_err(of(names::GUE_PORT))?;
        for source in wanted.sources.difference(&there.sources) {
            self.sources.insert(&source_key(source), PRESENT, 0).map_err(of(names::SOURCES))?;
        }
        for vip in wanted.vips.difference(&there.vips) {
            self.vips.insert(vip_key(*vip), PRESENT, 0).map_err(of(names::VIPS))?;
        }
        for source in there.sources.difference(&wanted.sources) {
            self.sources.remove(&source_key(source)).map_err(of(names::SOURCES))?;
        }
        for vip in there.vips.difference(&wanted.vips) {
            self.vips.remove(&vip_key(*vip)).map_err(of(names::VIPS))?;
        }
        Ok(())
    }
}

fn source_key(source: &Prefix) -> Key<[u8; ADDRESS]> {
    let (bits, octets) = source.key();
    Key::new(bits, octets)
}

fn vip_key(vip: IpAddr) -> [u8; VIP] {
    let version = if vip.is_ipv4() { IPV4 } else { IPV6 };
    array(bytes_of(&VipKey { address: address_words(vip), version: u32::from(version) }))
}
