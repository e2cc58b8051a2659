//! What holds after each event, and does not grow.

use std::{collections::BTreeSet, fmt, fs, time::Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{daemon::scrape, process::until};

use super::{Month, events::LOOKED_FOR};

/// Keys that etcd may have: twenty generations and those of a settle time, with their pieces, and what balancers say.
const MOST_KEYS: u64 = 1500;
/// Bytes that etcd's data may take; etcd itself compacts and keeps some past.
const MOST_BYTES: u64 = 8 << 20;
/// Memory of a daemon of its own, bytes, also in a debug build.
const MOST_MEMORY: u64 = 128 << 20;
/// Series of a balancer's metrics.
const MOST_SERIES: usize = 1000;

/// The largest of each that there was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    keys: u64,
    bytes: u64,
    memory: u64,
    series: usize,
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let Self { keys, bytes, memory, series } = self;
        let (bytes, memory) = (mib(*bytes), mib(*memory));
        write!(
            f,
            "at most {keys} keys and {bytes:.1} MiB in etcd, {memory:.0} MiB and {series} series a daemon"
        )
    }
}

impl Month {
    /// See the module. All balancers have the same in force.
    pub(super) fn ensure_invariants(&mut self) -> Result<()> {
        let (_, configuration) = self.fleet.balancers[0].client()?.export()?;
        self.pipeline.ensure_kept(&configuration)?;
        self.wait_for_overrides()?;
        let sizes = self.measure()?;
        let Sizes { keys, bytes, memory, series } = sizes;
        self.note(sizes.to_string());
        ensure!(
            keys <= MOST_KEYS
                && bytes <= MOST_BYTES
                && memory <= MOST_MEMORY
                && series <= MOST_SERIES,
            "more than is allowed: {sizes}"
        );
        let largest = &mut self.sizes;
        largest.keys = largest.keys.max(keys);
        largest.bytes = largest.bytes.max(bytes);
        largest.memory = largest.memory.max(memory);
        largest.series = largest.series.max(series);
        Ok(())
    }

    /// Overrides are those that were asked for and whose time is not over, and whose backend has not been gone for an hour.
    fn wait_for_overrides(&mut self) -> Result<()> {
        let now = Instant::now();
        let drains = self.pipeline.drains();
        // What ends about now may be there or not.
        drains.retain(|_, drain| drain.ends.is_none_or(|ends| ends > now));
        let expected: BTreeSet<_> = drains.keys().cloned().collect();
        for balancer in &self.fleet.balancers {
            until("there are the overrides that were asked for", LOOKED_FOR, || {
                let overrides = balancer.overrides()?.overrides;
                let has: BTreeSet<_> = overrides.into_iter().map(|it| it.name).collect();
                let lost: Vec<_> = expected.difference(&has).collect();
                ensure!(lost.is_empty(), "{lost:?} ended by themselves");
                Ok((has == expected).then_some(()))
            })
            .with_context(|| format!("{expected:?}, and not {:?}", balancer.overrides()))?;
        }
        Ok(())
    }

    fn measure(&mut self) -> Result<Sizes> {
        let etcd = self.etcd()?;
        let (keys, mut bytes) = (etcd.keys()?, 0);
        for server in 0..etcd.size() {
            bytes = bytes.max(etcd.size_in_use(server)?);
        }
        let mut sizes = Sizes { keys, bytes, memory: 0, series: 0 };
        for balancer in &mut self.fleet.balancers {
            let id = balancer.running().context("the daemon does not run")?.id();
            sizes.memory = sizes.memory.max(own_memory(id)?);
            sizes.series = sizes.series.max(scrape(balancer.node())?.len());
        }
        Ok(sizes)
    }
}

/// Memory of a process that belongs to no file, and so to no map of the packet path, bytes.
fn own_memory(id: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no RssAnon")?;
    Ok(kib.parse::<u64>()? << 10)
}
