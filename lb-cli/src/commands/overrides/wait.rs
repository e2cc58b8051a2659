//! Waiting until drained backends have no packets.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use lb_model::overrides::{Scope, Target};
use serde::Serialize;
use spillway_proto::v1;
use tokio::time::sleep;
use tonic::Code;

use crate::{
    arguments::Options,
    client::{BackendPackets, DaemonClient},
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
    /// By address, then by balancer. A counter of a balancer that does not answer for a while goes on where it was.
    backends: BTreeMap<String, BTreeMap<String, Counter>>,
    /// Balancers that were counted last.
    balancers: BTreeSet<String>,
    /// Live balancers whose packets are unknown now, each with the cause.
    unanswered: BTreeSet<String>,
}

/// What one balancer sends to one backend.
#[derive(Clone, Debug)]
struct Counter {
    packets: u64,
    changed_at: Instant,
    /// Packets since the last line.
    since_report: u64,
}

impl Traffic {
    /// Takes a reading. A backend that was not read at a balancer before may have had a packet just now. Returns the
    /// balancers that are not counted any more.
    fn take(
        &mut self,
        addresses: &BTreeSet<String>,
        reading: BackendPackets,
        now: Instant,
    ) -> Vec<String> {
        self.backends.retain(|address, _| addresses.contains(address));
        for address in addresses {
            let counters = self.backends.entry(address.clone()).or_default();
            for (balancer, packets) in &reading.balancers {
                let packets = packets.get(address).copied().unwrap_or_default();
                let new = Counter { packets, changed_at: now, since_report: 0 };
                let known = counters.entry(balancer.clone()).or_insert(new);
                if known.packets != packets {
                    known.since_report += packets.saturating_sub(known.packets);
                    (known.packets, known.changed_at) = (packets, now);
                }
            }
        }
        self.unanswered = reading.unanswered;
        let before = std::mem::take(&mut self.balancers);
        self.balancers = reading.balancers.into_keys().collect();
        let (missing, gone) = before
            .into_iter()
            .filter(|name| !self.balancers.contains(name))
            .partition(|name| is_among(name, &self.unanswered));
        self.balancers.extend::<Vec<_>>(missing);
        gone
    }

    fn counters(&self) -> impl Iterator<Item = &Counter> {
        self.backends.values().flat_map(BTreeMap::values)
    }

    /// Whether all have been without packets for long enough, at every balancer.
    fn is_quiet(&self, now: Instant) -> bool {
        let is_read = self.backends.values().all(|counters| !counters.is_empty());
        let is_quiet = |it: &Counter| now.duration_since(it.changed_at) >= QUIET;
        is_read && self.unanswered.is_empty() && self.counters().all(is_quiet)
    }

    /// Lines about those that have packets, and about balancers of which that is not known.
    fn report(&mut self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        for (address, counters) in &mut self.backends {
            let since_report = counters.values_mut().map(|it| std::mem::take(&mut it.since_report));
            let packets: u64 = since_report.sum();
            if packets > 0 {
                let (packets, seconds) = (count(packets, "packet"), REPORT_INTERVAL.as_secs());
                lines.push(format!("backend {address}: {packets} in the last {seconds} s"));
            }
        }
        if lines.is_empty() && !self.backends.is_empty() {
            let last = self.counters().map(|it| it.changed_at).max().unwrap_or(now);
            let quiet = now.duration_since(last).min(QUIET).as_secs();
            lines.push(format!("no packets for {quiet} s of {} s", QUIET.as_secs()));
        }
        let unanswered = self.unanswered.iter();
        lines.extend(unanswered.map(|it| format!("packets of a balancer are unknown: {it}")));
        lines
    }
}

/// Whether a balancer is among those that did not answer, which stand there with the cause.
fn is_among(name: &str, unanswered: &BTreeSet<String>) -> bool {
    let is_it = |text: &String| {
        text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    unanswered.iter().any(is_it)
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

/// Waits until the backends of targets have had no packet for [`QUIET`], for local overrides at this balancer.
///
/// # Errors
/// One of the overrides ends meanwhile, or the daemon does not answer.
pub(super) async fn wait(
    daemon: &mut DaemonClient,
    targets: &[Target],
    (names, scope): (&[String], Scope),
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
        let reading = match scope {
            Scope::Shared => read_packets(daemon, &addresses).await?,
            Scope::Local => read_own_packets(daemon).await?,
        };
        let now = Instant::now();
        for balancer in traffic.take(&addresses, reading, now) {
            print_stderr(&format!(
                "warning: packets of balancer {balancer} are not counted any more: it is not alive"
            ));
        }
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

/// The packets of the backends at all live balancers of the fleet; outside of one, at this balancer.
///
/// # Errors
/// The daemon does not answer.
async fn read_packets(
    daemon: &mut DaemonClient,
    addresses: &BTreeSet<String>,
) -> Result<BackendPackets, Failure> {
    match daemon.count_backend_packets(addresses).await {
        // A daemon that knows no fleets.
        Err(failure) if failure.code == Some(Code::Unimplemented) => {}
        reading => return reading,
    }
    read_own_packets(daemon).await
}

/// The packets of the backends at this balancer.
///
/// # Errors
/// The daemon does not answer.
async fn read_own_packets(daemon: &mut DaemonClient) -> Result<BackendPackets, Failure> {
    let packets = daemon.stats().await?.backends.into_iter().map(|it| {
        let packets = it.traffic.map_or(0, |traffic| traffic.packets);
        (it.backend, packets)
    });
    let balancers = [(String::new(), packets.collect())].into();
    Ok(BackendPackets { balancers, ..BackendPackets::default() })
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

    /// Packets that balancers sent to the backends `a` and `b`, and balancers that did not answer.
    fn reading(balancers: &[(&str, [u64; 2])], unanswered: &[&str]) -> BackendPackets {
        let packets = |[a, b]: [u64; 2]| [("a".to_owned(), a), ("b".to_owned(), b)].into();
        BackendPackets {
            balancers: balancers.iter().map(|(it, both)| ((*it).into(), packets(*both))).collect(),
            unanswered: unanswered.iter().map(ToString::to_string).collect(),
        }
    }

    fn addresses(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_backend_is_without_packets_once_its_counter_stands_for_half_a_minute() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let both = addresses(&["a", "b"]);
        let packets = |a| reading(&[("", [a, 7])], &[]);
        let mut traffic = Traffic::default();
        traffic.take(&both, packets(1_000), at(0));
        traffic.take(&both, packets(1_040), at(4));
        assert_eq!(traffic.report(at(5)), ["backend a: 40 packets in the last 5 s"]);
        traffic.take(&both, packets(1_041), at(10));
        assert_eq!(traffic.report(at(10)), ["backend a: 1 packet in the last 5 s"]);
        traffic.take(&both, packets(1_041), at(30));
        assert_eq!(traffic.report(at(30)), ["no packets for 20 s of 30 s"]);
        assert!(!traffic.is_quiet(at(39)));
        assert!(traffic.is_quiet(at(40)));
        // One that joins may have had a packet just now.
        traffic.take(&addresses(&["a", "c"]), packets(1_041), at(41));
        assert!(!traffic.is_quiet(at(70)) && traffic.is_quiet(at(71)));
    }

    #[test]
    fn all_balancers_count_and_one_that_does_not_answer_may_have_packets() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let both = addresses(&["a", "b"]);
        let mut traffic = Traffic::default();
        let gone = traffic.take(&both, reading(&[("lb-1", [5, 0]), ("lb-2", [9, 0])], &[]), at(0));
        assert_eq!(gone, [""; 0]);
        // What one loses is not what another one gains.
        traffic.take(&both, reading(&[("lb-1", [9, 0]), ("lb-2", [5, 0])], &[]), at(20));
        assert_eq!(traffic.report(at(20)), ["backend a: 4 packets in the last 5 s"]);
        assert!(!traffic.is_quiet(at(49)) && traffic.is_quiet(at(50)));

        let refused = "lb-2: connection refused";
        let gone = traffic.take(&both, reading(&[("lb-1", [9, 0])], &[refused]), at(60));
        assert_eq!(gone, [""; 0]);
        let expected = [
            "no packets for 30 s of 30 s",
            "packets of a balancer are unknown: lb-2: connection refused",
        ];
        assert_eq!(traffic.report(at(60)), expected);
        assert!(!traffic.is_quiet(at(1_000)));
        // It had none meanwhile.
        traffic.take(&both, reading(&[("lb-1", [9, 0]), ("lb-2", [5, 0])], &[]), at(70));
        assert!(traffic.is_quiet(at(70)));
        // It had some.
        traffic.take(&both, reading(&[("lb-1", [9, 0])], &[refused]), at(71));
        traffic.take(&both, reading(&[("lb-1", [9, 0]), ("lb-2", [6, 0])], &[]), at(80));
        assert!(!traffic.is_quiet(at(109)) && traffic.is_quiet(at(110)));
        // A balancer that joins may have sent some just now.
        let three = [("lb-1", [9, 0]), ("lb-2", [6, 0]), ("lb-3", [0, 0])];
        traffic.take(&both, reading(&three, &[]), at(120));
        assert!(!traffic.is_quiet(at(149)) && traffic.is_quiet(at(150)));
    }

    #[test]
    fn a_balancer_that_is_not_counted_any_more_is_named_once() {
        let start = Instant::now();
        let both = addresses(&["a", "b"]);
        let mut traffic = Traffic::default();
        let (one, two) = (("lb-1", [5, 0]), ("lb-1-b", [9, 0]));
        traffic.take(&both, reading(&[one, two], &[]), start);
        // A name that begins like that of another one is not taken for it.
        assert_eq!(traffic.take(&both, reading(&[one], &["lb-1: x"]), start), ["lb-1-b"]);
        assert_eq!(traffic.take(&both, reading(&[one], &[]), start), [""; 0]);
        traffic.take(&both, reading(&[one, two], &[]), start);
        assert_eq!(traffic.take(&both, reading(&[two], &["lb-1"]), start), [""; 0]);
        assert_eq!(traffic.take(&both, reading(&[two], &[]), start), ["lb-1"]);
    }

    #[test]
    fn before_any_balancer_answers_nothing_is_quiet() {
        let now = Instant::now();
        let mut traffic = Traffic::default();
        traffic.take(&addresses(&["a"]), BackendPackets::default(), now);
        assert!(!traffic.is_quiet(now + QUIET));
        // If there is no backend, there is none to wait for.
        traffic.take(&addresses(&[]), BackendPackets::default(), now);
        assert!(traffic.is_quiet(now));
    }
}
