//! Polls the daemon, and computes rates between two readings.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use spillway_proto::v1;
use tokio::{sync::mpsc, time::MissedTickBehavior};

use crate::{arguments::Options, client::DaemonClient, failure::Failure};

/// The daemon's answers at one moment.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) status: v1::StatusResponse,
    pub(super) regions: v1::RegionsResponse,
    pub(super) stats: v1::StatsResponse,
    /// The history, the newest first.
    pub(super) generations: Vec<v1::Generation>,
}

/// A reading, or why there is none.
pub(super) type ReadResult = Result<Box<Reading>, String>;

/// The history as it was when a generation was in force.
#[derive(Clone, Debug)]
pub(super) struct KnownHistory {
    generation: u64,
    /// A fleet's generation may have the number of this balancer's own.
    applied_at: Option<prost_types::Timestamp>,
    generations: Vec<v1::Generation>,
}

impl KnownHistory {
    fn of(reading: &Reading) -> Self {
        let (status, generations) = (&reading.status, reading.generations.clone());
        Self { generation: status.generation, applied_at: status.applied_at, generations }
    }
}

/// Asks for the history only if another generation is in force than in `known`.
///
/// # Errors
/// The daemon does not answer.
pub(super) async fn read(
    daemon: &mut DaemonClient,
    known: Option<KnownHistory>,
) -> Result<Reading, Failure> {
    let status = daemon.status().await?;
    let regions = daemon.regions(v1::RegionsRequest::default()).await?;
    let stats = daemon.stats().await?;
    let is_same = |known: &KnownHistory| {
        (known.generation, known.applied_at) == (status.generation, status.applied_at)
    };
    let generations = match known.filter(is_same) {
        Some(known) => known.generations,
        None => daemon.generations().await?.generations,
    };
    Ok(Reading { at: Instant::now(), status, regions, stats, generations })
}

/// Polls the daemon until the receiver is dropped. Reconnects after a failure.
pub(super) async fn poll(
    options: Options,
    daemon: DaemonClient,
    interval: Duration,
    readings_tx: mpsc::Sender<ReadResult>,
) {
    let (mut daemon, mut known) = (Some(daemon), None);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate, and the first reading was taken already.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let answer = reconnect_and_read(&options, &mut daemon, known.take()).await;
        match &answer {
            Ok(reading) => known = Some(KnownHistory::of(reading)),
            Err(_) => daemon = None,
        }
        let answer = answer.map(Box::new).map_err(|failure| failure.message);
        if readings_tx.send(answer).await.is_err() {
            return;
        }
    }
}

async fn reconnect_and_read(
    options: &Options,
    daemon: &mut Option<DaemonClient>,
    known: Option<KnownHistory>,
) -> Result<Reading, Failure> {
    let open = match daemon {
        Some(open) => open,
        None => daemon.insert(DaemonClient::connect(options).await?),
    };
    read(open, known).await
}

/// The last reading with the rates since the one before.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) reading: Reading,
    /// Time between the two readings; `None`: there is only one reading, and no rates.
    pub(super) seconds: Option<f64>,
    /// By endpoint and protocol.
    pub(super) services: HashMap<(String, String), TrafficRate>,
    /// By address.
    pub(super) backends: HashMap<String, TrafficRate>,
    /// Packets a second by verdict.
    pub(super) verdicts: HashMap<String, f64>,
    /// By pool and region.
    pub(super) regions: HashMap<(String, String), v1::GroupRates>,
    /// Why the daemon does not answer; `None`: it does.
    pub(super) error: Option<String>,
}

/// Traffic a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TrafficRate {
    pub(super) packets: f64,
    pub(super) bytes: f64,
    pub(super) connections: f64,
}

impl Snapshot {
    /// A snapshot without rates.
    pub(super) fn from_first(reading: Reading) -> Self {
        Self {
            reading,
            seconds: None,
            services: HashMap::new(),
            backends: HashMap::new(),
            verdicts: HashMap::new(),
            regions: HashMap::new(),
            error: None,
        }
    }

    /// Computes rates from the next reading. Without one, keeps the last rates and records the error.
    pub(super) fn update(&mut self, result: ReadResult) {
        let after = match result {
            Err(why) => {
                self.error = Some(why);
                return;
            }
            Ok(reading) => *reading,
        };
        let before = &self.reading;
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let per = |before: u64, after: u64| Some(after.checked_sub(before)? as f64 / seconds);
        let speed = |before: &v1::Traffic, after: &v1::Traffic| {
            Some(TrafficRate {
                packets: per(before.packets, after.packets)?,
                bytes: per(before.bytes, after.bytes)?,
                connections: per(before.connections, after.connections)?,
            })
        };
        let traffic = |before: &Option<v1::Traffic>, after: &Option<v1::Traffic>| {
            speed(before.as_ref()?, after.as_ref()?)
        };
        let next = Self {
            seconds: Some(seconds),
            services: rates_by_key(
                &before.stats.services,
                &after.stats.services,
                |s| (s.endpoint.clone(), s.protocol.clone()),
                |before, after| traffic(&before.traffic, &after.traffic),
            ),
            backends: rates_by_key(
                &before.stats.backends,
                &after.stats.backends,
                |b| b.backend.clone(),
                |before, after| traffic(&before.traffic, &after.traffic),
            ),
            verdicts: rates_by_key(
                &before.stats.verdicts,
                &after.stats.verdicts,
                |v| v.verdict.clone(),
                |before, after| per(before.packets, after.packets),
            ),
            regions: rates_by_key(
                &before.stats.groups,
                &after.stats.groups,
                |g| (g.pool.clone(), g.region.clone()),
                |before, after| {
                    let (before, after) = (before.counters.as_ref()?, after.counters.as_ref()?);
                    Some(v1::GroupRates {
                        offered: per(before.offered, after.offered)?,
                        admitted: per(before.admitted, after.admitted)?,
                        overflow_in: per(before.overflow_in, after.overflow_in)?,
                        overflow_out: per(before.overflow_out, after.overflow_out)?,
                        refused: per(before.refused, after.refused)?,
                        over_capacity: per(before.over_capacity, after.over_capacity)?,
                    })
                },
            ),
            error: None,
            reading: after,
        };
        *self = next;
    }
}

/// Rates between two lists, item by item. An item that is new, or whose counter was reset, has no rate yet.
fn rates_by_key<T, K: Hash + Eq, R>(
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> K,
    rate: impl Fn(&T, &T) -> Option<R>,
) -> HashMap<K, R> {
    let earlier: HashMap<K, &T> = before.iter().map(|item| (key(item), item)).collect();
    let keyed_rate = |item: &T| {
        let key = key(item);
        let rate = rate(earlier.get(&key)?, item)?;
        Some((key, rate))
    };
    after.iter().filter_map(keyed_rate).collect()
}
