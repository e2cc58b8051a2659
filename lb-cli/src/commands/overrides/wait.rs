//! Waiting until drained backends have no packets.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use lb_model::overrides::Target;
use serde::Serialize;
use spillway_proto::v1;
use tokio::time::sleep;

use crate::{
    arguments::Options,
    client::DaemonClient,
    failure::{Exit, Failure},
    output::{Report, count, print, print_stderr},
};

/// How long a backend must have had no packet.
const QUIET: Duration = Duration::from_secs(30);
/// Time between two readings of the counters.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two lines about what is left.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Packets of backends, and since when they have had none.
#[derive(Debug, Default)]
struct Traffic {
    backends: BTreeMap<String, Backend>,
}

#[derive(Clone, Debug)]
struct Backend {
    packets: u64,
    changed_at: Instant,
    /// Packets since the last line.
    since_report: u64,
}

impl Traffic {
    /// Takes a reading: packets by address. A backend that was not read before may have had one just now.
    fn take(
        &mut self,
        addresses: &BTreeSet<String>,
        packets: &BTreeMap<String, u64>,
        now: Instant,
    ) {
        self.backends.retain(|address, _| addresses.contains(address));
        for address in addresses {
            let packets = packets.get(address).copied().unwrap_or_default();
            let new = Backend { packets, changed_at: now, since_report: 0 };
            let known = self.backends.entry(address.clone()).or_insert(new);
            if known.packets != packets {
                known.since_report += packets.saturating_sub(known.packets);
                (known.packets, known.changed_at) = (packets, now);
            }
        }
    }

    /// Whether all have been without packets for long enough.
    fn is_quiet(&self, now: Instant) -> bool {
        self.backends.values().all(|it| now.duration_since(it.changed_at) >= QUIET)
    }

    /// Lines about those that have packets.
    fn report(&mut self, now: Instant) -> Vec<String> {
        let busy = self.backends.iter_mut().filter(|(_, it)| it.since_report > 0);
        let mut lines: Vec<_> = busy
            .map(|(address, it)| {
                let packets = std::mem::take(&mut it.since_report);
                let seconds = REPORT_INTERVAL.as_secs();
                format!("backend {address}: {} in the last {seconds} s", count(packets, "packet"))
            })
            .collect();
        if lines.is_empty() && !self.backends.is_empty() {
            let last = self.backends.values().map(|it| it.changed_at).max().unwrap_or(now);
            let quiet = now.duration_since(last).as_secs();
            lines.push(format!("no packets for {quiet} s of {} s", QUIET.as_secs()));
        }
        lines
    }
}

#[derive(Serialize)]
struct Drained {
    /// Backends without packets for the last 30 s.
    drained: Vec<String>,
}

impl Report for Drained {
    fn table(&self) -> String {
        let line = |address: &String| {
            format!("backend {address} has had no packet for {} s\n", QUIET.as_secs())
        };
        self.drained.iter().map(line).collect()
    }
}

/// Waits until the backends of targets have had no packet for [`QUIET`].
///
/// # Errors
/// One of the overrides ends meanwhile, or the daemon does not answer.
pub(super) async fn wait(
    daemon: &mut DaemonClient,
    targets: &[Target],
    names: &[String],
    options: &Options,
) -> Result<(), Failure> {
    let mut traffic = Traffic::default();
    let mut reported = Instant::now();
    let mut is_first = true;
    loop {
        let status = daemon.status().await?;
        let there: BTreeSet<_> = status.overrides.iter().map(|it| it.name.as_str()).collect();
        if let Some(ended) = names.iter().find(|name| !there.contains(name.as_str())) {
            let message =
                format!("override {ended} ended before the backends were without packets");
            return Err(Failure::new(Exit::Failure, message)
                .hint("`spillway status` shows the backends; drain them again to go on"));
        }
        let addresses = addresses(targets, &status.backends);
        if std::mem::take(&mut is_first) {
            warn_of_other_pools(targets, &status.backends);
        }
        let stats = daemon.stats().await?;
        let packets = stats.backends.into_iter().map(|it| {
            let packets = it.traffic.map_or(0, |traffic| traffic.packets);
            (it.backend, packets)
        });
        let now = Instant::now();
        traffic.take(&addresses, &packets.collect(), now);
        if traffic.is_quiet(now) {
            return print(&Drained { drained: addresses.into_iter().collect() }, options.output);
        }
        if now.duration_since(reported) >= REPORT_INTERVAL {
            reported = now;
            traffic.report(now).iter().for_each(|line| print_stderr(line));
        }
        sleep(INTERVAL).await;
    }
}

fn is_of(target: &Target, backend: &v1::BackendStatus) -> bool {
    match target {
        Target::Backend { address, pool } => {
            backend.address == address.to_string()
                && pool.as_ref().is_none_or(|pool| backend.pool == pool.as_str())
        }
        Target::Pool(pool) => backend.pool == pool.as_str(),
        Target::Group { pool, region } => {
            backend.pool == pool.as_str() && backend.region == region.as_str()
        }
        Target::Region(region) => backend.region == region.as_str(),
    }
}

fn addresses(targets: &[Target], backends: &[v1::BackendStatus]) -> BTreeSet<String> {
    let of = backends.iter().filter(|backend| targets.iter().any(|target| is_of(target, backend)));
    of.map(|backend| backend.address.clone()).collect()
}

/// Packets are counted by backend, not by pool.
fn warn_of_other_pools(targets: &[Target], backends: &[v1::BackendStatus]) {
    let drained = addresses(targets, backends);
    let others = backends.iter().filter(|backend| {
        drained.contains(&backend.address) && !targets.iter().any(|target| is_of(target, backend))
    });
    let others: BTreeMap<_, _> = others.map(|it| (it.address.as_str(), it.pool.as_str())).collect();
    for (address, pool) in others {
        print_stderr(&format!(
            "warning: backend {address} is in pool {pool} too, whose packets count as well"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_without_packets_once_its_counter_stands_for_half_a_minute() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let addresses: BTreeSet<String> = ["a".to_owned(), "b".to_owned()].into();
        let packets = |a, b| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        let mut traffic = Traffic::default();
        traffic.take(&addresses, &packets(1_000, 7), at(0));
        traffic.take(&addresses, &packets(1_040, 7), at(4));
        assert_eq!(traffic.report(at(5)), ["backend a: 40 packets in the last 5 s"]);
        traffic.take(&addresses, &packets(1_041, 7), at(10));
        assert_eq!(traffic.report(at(10)), ["backend a: 1 packet in the last 5 s"]);
        traffic.take(&addresses, &packets(1_041, 7), at(30));
        assert_eq!(traffic.report(at(30)), ["no packets for 20 s of 30 s"]);
        assert!(!traffic.is_quiet(at(39)));
        assert!(traffic.is_quiet(at(40)));
        // One that joins may have had a packet just now.
        let more: BTreeSet<String> = ["a".to_owned(), "c".to_owned()].into();
        traffic.take(&more, &packets(1_041, 7), at(41));
        assert!(!traffic.is_quiet(at(70)) && traffic.is_quiet(at(71)));
    }
}
