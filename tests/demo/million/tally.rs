//! What backends counted.

use std::ops::{Range, Sub};

use anyhow::Result;
use aya::maps::{MapData, PerCpuArray};

/// Backends are told apart by the last byte of their address.
pub(crate) const MOST_BACKENDS: usize = 256;

/// Requests by backend.
pub(crate) type ByBackend = [u64; MOST_BACKENDS];

/// What backends got, since the beginning or between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tally {
    /// Packets of requests.
    pub(crate) packets: u64,
    /// Packets of requests whose SYN did not arrive.
    pub(crate) without_syn: u64,
    /// Requests whose SYN arrived, by the backend that got it.
    pub(crate) begun: ByBackend,
    /// Requests of which one backend got all packets, by that.
    pub(crate) complete: ByBackend,
    /// Requests of which a second backend got a packet, by the one that got the SYN.
    pub(crate) split: ByBackend,
    /// Packets of probes, and by the backend that got the one before those that went to another one.
    pub(crate) probes: u64,
    pub(crate) moved_from: ByBackend,
}

impl Tally {
    /// Reads the counters by their maps' names.
    pub(crate) fn read<'m>(
        map: impl Fn(&str) -> Result<PerCpuArray<&'m MapData, u64>>,
    ) -> Result<Self> {
        let sum = |name: &str| -> Result<u64> { Ok(map(name)?.get(&0, 0)?.iter().sum()) };
        let by_backend = |name: &str| by_backend(&map(name)?);
        Ok(Self {
            packets: sum("REQUEST_PACKETS")?,
            without_syn: sum("WITHOUT_SYN")?,
            begun: by_backend("BEGUN")?,
            complete: by_backend("COMPLETE")?,
            split: by_backend("SPLIT")?,
            probes: sum("PROBES")?,
            moved_from: by_backend("MOVED_FROM")?,
        })
    }
}

impl Sub for Tally {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        let less = |now: ByBackend, then: ByBackend| {
            std::array::from_fn(|backend| now[backend] - then[backend])
        };
        Self {
            packets: self.packets - earlier.packets,
            without_syn: self.without_syn - earlier.without_syn,
            begun: less(self.begun, earlier.begun),
            complete: less(self.complete, earlier.complete),
            split: less(self.split, earlier.split),
            probes: self.probes - earlier.probes,
            moved_from: less(self.moved_from, earlier.moved_from),
        }
    }
}

/// The counts of each backend, of all CPUs together.
pub(crate) fn by_backend(counters: &PerCpuArray<&MapData, u64>) -> Result<ByBackend> {
    let mut all = [0; MOST_BACKENDS];
    for (index, count) in (0..).zip(&mut all) {
        *count = counters.get(&index, 0)?.iter().sum();
    }
    Ok(all)
}

/// Requests of all backends.
pub(crate) fn total(counts: &ByBackend) -> u64 {
    counts.iter().sum()
}

/// Requests of some.
pub(crate) fn of(counts: &ByBackend, backends: Range<u8>) -> u64 {
    backends.map(|backend| counts[usize::from(backend)]).sum()
}

/// The most that one of these backends has, over what each would have if all had as many.
pub(crate) fn unevenness(counts: &ByBackend, backends: Range<u8>) -> f64 {
    let most = backends.clone().map(|backend| counts[usize::from(backend)]).max().unwrap_or(0);
    most as f64 * backends.len() as f64 / of(counts, backends) as f64
}
