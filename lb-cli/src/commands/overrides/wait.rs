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
    commands::fleet::spell_wait,
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
#[derive(Debug)]
struct Traffic {
    /// How long a backend must have had no packet.
    quiet: Duration,
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
    fn new(quiet: Duration) -> Self {
        let (backends, balancers, unanswered) = Default::default();
        Self { quiet, backends, balancers, unanswered }
    }

    /// Backends that are not known to have been without packets for long enough.
    fn busy(&self, now: Instant) -> Vec<&str> {
        let is_busy = |counters: &BTreeMap<String, Counter>| {
            let is_busy = |it: &Counter| now.duration_since(it.changed_at) < self.quiet;
            counters.is_empty() || !self.unanswered.is_empty() || counters.values().any(is_busy)
        };
        let busy = self.backends.iter().filter(|(_, counters)| is_busy(counters));
        busy.map(|(address, _)| address.as_str()).collect()
    }

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
        self.unanswered.is_empty() && self.busy(now).is_empty()
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
            let quiet = now.duration_since(last).min(self.quiet).as_secs();
            lines.push(format!("no packets for {quiet} s of {}", spell_wait(self.quiet)));
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
    /// Backends without packets for as long as they were asked to have none.
    drained: Vec<String>,
    #[serde(skip)]
    quiet: Duration,
}

impl Report for Drained {
    fn table(&self) -> String {
        let line = |address: &String| {
            format!("backend {address} has had no packet for {}\n", spell_wait(self.quiet))
        };
        self.drained.iter().map(line).collect()
    }
}

/// Waiting until drained backends have had no packet for [`QUIET`], or if the limit is shorter, for all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitForSilence {
    quiet: Duration,
    limit: Option<Duration>,
}

impl WaitForSilence {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self { quiet: limit.map_or(QUIET, |limit| limit.min(QUIET)), limit }
    }

    /// # Errors
    /// A drain that lasts this long ends before the silence that is waited for.
    pub(super) fn check(self, lasts: prost_types::Duration) -> Result<(), Failure> {
        let lasts = Duration::try_from(lasts).unwrap_or(Duration::MAX);
        if lasts > self.quiet {
            return Ok(());
        }
        let (lasts, quiet) = (spell_wait(lasts), spell_wait(self.quiet));
        let message = format!(
            "the drain would end after {lasts}, before --wait has seen {quiet} without packets"
        );
        Err(Failure::new(Exit::Usage, message).hint(
            "nothing was changed; give --for more time, or leave it out, or give --wait less, as in --wait=10s",
        ))
    }

    /// Waits for the backends of targets, for local overrides at this balancer.
    ///
    /// # Errors
    /// The limit passes or one of the overrides ends first, or the daemon does not answer.
    pub(super) async fn wait(
        self,
        daemon: &mut DaemonClient,
        targets: &[Target],
        (names, scope): (&[String], Scope),
        options: &Options,
    ) -> Result<(), Failure> {
        let mut traffic = Traffic::new(self.quiet);
        let mut reported = Instant::now();
        let mut deadline = None;
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
            let is_first = deadline.is_none();
            if is_first {
                warn_of_other_pools(targets, &status.backends);
            }
            let reading = match scope {
                Scope::Shared => read_packets(daemon, &addresses).await?,
                Scope::Local => read_own_packets(daemon).await?,
            };
            let now = Instant::now();
            // From the first reading on: without packets since then, a backend is quiet at the limit.
            let deadline =
                *deadline.get_or_insert_with(|| self.limit.map(|limit| (now + limit, limit)));
            for balancer in traffic.take(&addresses, reading, now) {
                print_stderr(&format!(
                    "warning: packets of balancer {balancer} are not counted any more: it is not alive"
                ));
            }
            if traffic.is_quiet(now) {
                let drained = addresses.into_iter().collect();
                return print(&Drained { drained, quiet: self.quiet }, options.output);
            }
            let rest = match deadline {
                Some((end, limit)) if now >= end => return Err(too_late(&traffic, limit, now)),
                Some((end, _)) => end - now,
                None => INTERVAL,
            };
            if now.duration_since(reported) >= REPORT_INTERVAL {
                reported = now;
                traffic.report(now).iter().for_each(|line| print_stderr(line));
            }
            sleep(INTERVAL.min(rest)).await;
        }
    }
}

/// That backends had packets until the limit.
fn too_late(traffic: &Traffic, limit: Duration, now: Instant) -> Failure {
    let (limit, quiet) = (spell_wait(limit), spell_wait(traffic.quiet));
    let message = match traffic.unanswered.first() {
        Some(unanswered) => {
            format!("after {limit}, the packets of a balancer are unknown: {unanswered}")
        }
        None => {
            let busy = traffic.busy(now).join(", ");
            format!("after {limit}, there were packets in the last {quiet} for {busy}")
        }
    };
    Failure::new(Exit::Failure, message).hint(
        "the drain stays; wait longer, or `spillway backend disable` moves the open connections",
    )
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
        let mut traffic = Traffic::new(QUIET);
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
        let mut traffic = Traffic::new(QUIET);
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
        let mut traffic = Traffic::new(QUIET);
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
    fn at_the_limit_the_backends_with_packets_are_named() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let limit = Duration::from_secs(20);
        let WaitForSilence { quiet, .. } = WaitForSilence::new(Some(limit));
        assert_eq!(quiet, limit, "there is no more time to be silent in");
        let mut traffic = Traffic::new(quiet);
        let both = addresses(&["a", "b"]);
        traffic.take(&both, reading(&[("", [5, 7])], &[]), at(0));
        assert!(!traffic.is_quiet(at(19)) && traffic.is_quiet(at(20)));
        traffic.take(&both, reading(&[("", [5, 8])], &[]), at(12));
        let failure = too_late(&traffic, limit, at(20));
        assert_eq!(failure.exit, Exit::Failure);
        assert_eq!(failure.message, "after 20 s, there were packets in the last 20 s for b");
        traffic.take(&both, reading(&[], &["lb-2: no answer"]), at(20));
        let unknown = too_late(&traffic, limit, at(20)).message;
        assert_eq!(unknown, "after 20 s, the packets of a balancer are unknown: lb-2: no answer");
        assert_eq!(WaitForSilence::new(Some(Duration::from_secs(90))).quiet, QUIET);
    }

    #[test]
    fn a_drain_that_ends_before_the_silence_is_refused() {
        let lasts = |seconds| prost_types::Duration { seconds, nanos: 0 };
        let without_limit = WaitForSilence::new(None);
        let failure = without_limit.check(lasts(20)).unwrap_err();
        assert_eq!(
            (failure.exit, &*failure.message),
            (
                Exit::Usage,
                "the drain would end after 20 s, before --wait has seen 30 s without packets"
            )
        );
        assert!(without_limit.check(lasts(30)).is_err());
        assert_eq!(without_limit.check(lasts(31)), Ok(()));
        let short = WaitForSilence::new(Some(Duration::from_secs(10)));
        assert_eq!(short.check(lasts(20)), Ok(()));
        assert!(short.check(lasts(10)).is_err());
    }

    #[test]
    fn before_any_balancer_answers_nothing_is_quiet() {
        let now = Instant::now();
        let mut traffic = Traffic::new(QUIET);
        traffic.take(&addresses(&["a"]), BackendPackets::default(), now);
        assert!(!traffic.is_quiet(now + QUIET));
        // If there is no backend, there is none to wait for.
        traffic.take(&addresses(&[]), BackendPackets::default(), now);
        assert!(traffic.is_quiet(now));
    }
}
