//! Every counter of a program, and what moved between two looks.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use aya::{Ebpf, Pod, maps::PerCpuArray};

/// A counter: its map and its index.
pub type Counter = (&'static str, u32);

/// Counters that are not zero: packets, bytes and (zero for verdicts) connections, of all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(pub BTreeMap<Counter, [u64; 3]>);

/// Map of the verdicts.
pub const VERDICTS: &str = "VERDICT_COUNTERS";
/// Map of the services.
pub const SERVICES: &str = "SERVICE_COUNTERS";
/// Map of the backends.
pub const BACKENDS: &str = "BACKEND_COUNTERS";

impl Counters {
    /// Reads the first `limit` counters of each map that the object has.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn read(bpf: &Ebpf, limit: u32) -> Result<Self> {
        let mut counters = Self::default();
        counters.read_map::<2>(bpf, VERDICTS, limit)?;
        for map in [SERVICES, BACKENDS] {
            if bpf.map(map).is_some() {
                counters.read_map::<3>(bpf, map, limit)?;
            }
        }
        Ok(counters)
    }

    fn read_map<const N: usize>(&mut self, bpf: &Ebpf, name: &'static str, limit: u32) -> Result<()>
    where
        [u64; N]: Pod,
    {
        let map = bpf.map(name).with_context(|| format!("{name}: no such map"))?;
        let map = PerCpuArray::<_, [u64; N]>::try_from(map).context(name)?;
        for index in 0..map.len().min(limit) {
            let mut total = [0; 3];
            for cpu in map.get(&index, 0).with_context(|| format!("{name} {index}"))?.iter() {
                for (sum, part) in total.iter_mut().zip(cpu) {
                    *sum += part;
                }
            }
            if total != [0; 3] {
                self.0.insert((name, index), total);
            }
        }
        Ok(())
    }

    /// What moved since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut moved = Self::default();
        for (&counter, now) in &self.0 {
            let then = before.0.get(&counter).copied().unwrap_or_default();
            moved.add(counter, std::array::from_fn(|i| now[i].wrapping_sub(then[i])));
        }
        moved
    }

    /// Counts on.
    pub fn add(&mut self, counter: Counter, by: [u64; 3]) {
        if by != [0; 3] {
            let sum = self.0.entry(counter).or_default();
            *sum = std::array::from_fn(|i| sum[i].wrapping_add(by[i]));
        }
    }

    /// Counts all of another on.
    pub fn add_all(&mut self, other: &Self) {
        for (&counter, &by) in &other.0 {
            self.add(counter, by);
        }
    }
}
