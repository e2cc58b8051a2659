//! What else a daemon of a large configuration has to do: configurations, dry runs, queries, watches and scrapes, all at
//! the same time, each kind one after the other.
//!
//! The daemon limits the watches of one user of its socket. The bench is one user, so it asks for as many watchers as it is
//! told to, and counts those over the limit.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use spillway_proto::v1::{Configuration, ListPoolsRequest, StatusRequest, WatchRequest};
use tokio::runtime::{Builder, Runtime};
use tonic::{Code, Status};

use lb_tests::daemon::get;
use lb_tests::process::{pause, until};
use lb_tests::topology::Node;

use super::daemon::{Daemon, PATIENCE, Stubs, apply_request};
use super::figures::{Row, Times};

/// From the end of a query to the next one.
const BETWEEN_QUERIES: Duration = Duration::from_millis(250);
/// From the end of a scrape to the next one: monitoring systems scrape less often.
const BETWEEN_SCRAPES: Duration = Duration::from_secs(1);
/// Streams that a connection has room for, less than the daemon's limit.
const STREAMS: usize = 50;

/// What was called so far.
#[derive(Debug, Default)]
struct Counts {
    applies: Mutex<Vec<Duration>>,
    dry_runs: Mutex<Vec<Duration>>,
    queries: Mutex<Vec<Duration>>,
    scrapes: Mutex<Vec<Duration>>,
    /// Why calls were refused, as a change is while numbers are in quarantine.
    refused: Mutex<Vec<String>>,
    /// Scrapes that were answered with an error, as they are where the daemon's state takes 10 seconds to answer.
    scrapes_failed: AtomicU64,
    /// Watchers that have their snapshot.
    watchers: AtomicU64,
    watchers_refused: AtomicU64,
    events: AtomicU64,
}

/// The load; it ends with this.
#[derive(Debug)]
pub(crate) struct Load {
    runtime: Option<Runtime>,
    scraper: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

impl Load {
    /// Starts it: configurations by turns, and so many watchers, each with its snapshot.
    ///
    /// # Errors
    /// When the daemon does not answer, or refuses a watcher for another reason than its limit.
    pub(crate) fn start(
        daemon: &Daemon,
        configurations: [Configuration; 2],
        watchers: usize,
    ) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let counts = Arc::new(Counts::default());
        let socket = daemon.socket.clone();
        for part in 0..watchers.div_ceil(STREAMS) {
            let stubs = runtime.block_on(Stubs::connect(&socket))?;
            for _ in 0..STREAMS.min(watchers - part * STREAMS) {
                runtime.spawn(watch(stubs.clone(), counts.clone()));
            }
        }
        until("watchers have their snapshots", PATIENCE, || {
            let there = [&counts.watchers, &counts.watchers_refused];
            let there: u64 = there.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            Ok((there >= watchers as u64).then_some(()))
        })?;
        ensure!(
            watchers == 0 || counts.watchers.load(Ordering::Relaxed) > 0,
            "no watcher may watch"
        );
        let dry = configurations.clone();
        runtime.spawn(apply(socket.clone(), configurations, counts.clone(), false));
        runtime.spawn(apply(socket.clone(), dry, counts.clone(), true));
        runtime.spawn(query(socket, counts.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let (node, flag, shared) = (daemon.network.balancer.clone(), stop.clone(), counts.clone());
        let scraper = std::thread::spawn(move || scrape(&node, &flag, &shared));
        Ok(Self { runtime: Some(runtime), scraper: Some(scraper), stop, counts })
    }

    /// Ends it. Answers what it did, without the calls under way, and the last reason for a refusal.
    pub(crate) fn finish(mut self) -> (Row, Option<String>) {
        self.end();
        let times = |all: &Mutex<Vec<Duration>>| -> Times {
            all.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
        };
        let counts = &self.counts;
        let refused = counts.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row = Row::new("failover: the load beside it");
        for (what, worst, all) in [
            ("applies", "worst apply", &counts.applies),
            ("dry runs", "worst dry run", &counts.dry_runs),
            ("queries", "worst query", &counts.queries),
            ("scrapes", "worst scrape", &counts.scrapes),
        ] {
            let all = times(all);
            row = row.count(what, all.len() as u64).ms(worst, all.quantile(1000));
        }
        let row = row
            .count("failed scrapes", counts.scrapes_failed.load(Ordering::Relaxed))
            .count("refused calls", refused.len() as u64)
            .count("watchers", counts.watchers.load(Ordering::Relaxed))
            .count("watchers over the limit", counts.watchers_refused.load(Ordering::Relaxed))
            .count("events", counts.events.load(Ordering::Relaxed));
        (row, refused.last().cloned())
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(runtime) = self.runtime.take() {
            // Calls under way end with their connections.
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
        if let Some(scraper) = self.scraper.take() {
            // A panic there has been printed.
            let _ = scraper.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

impl Counts {
    fn add(times: &Mutex<Vec<Duration>>, since: Instant) {
        times.lock().unwrap_or_else(PoisonError::into_inner).push(since.elapsed());
    }

    fn refuse(&self, status: &Status) {
        let reason = format!("{}: {}", status.code(), status.message());
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(reason);
    }
}

/// Puts configurations in force one after the other, or asks for the difference.
async fn apply(
    socket: PathBuf,
    configurations: [Configuration; 2],
    counts: Arc<Counts>,
    dry_run: bool,
) {
    let Ok(mut stubs) = Stubs::connect(&socket).await else { return };
    let times = if dry_run { &counts.dry_runs } else { &counts.applies };
    for configuration in configurations.iter().cycle() {
        let request = apply_request(configuration.clone(), dry_run);
        let begin = Instant::now();
        match stubs.spillway.apply(request).await {
            Ok(_) => Counts::add(times, begin),
            Err(status) if status.code() == Code::Unavailable => return,
            Err(status) => {
                counts.refuse(&status);
                tokio::time::sleep(BETWEEN_QUERIES).await;
            }
        }
    }
}

/// Asks for the status and for all pools by turns.
async fn query(socket: PathBuf, counts: Arc<Counts>) {
    let Ok(Stubs { mut spillway, mut objects, .. }) = Stubs::connect(&socket).await else { return };
    for asks_pools in [false, true].into_iter().cycle() {
        let begin = Instant::now();
        let answer = if asks_pools {
            objects.list_pools(ListPoolsRequest::default()).await.map(drop)
        } else {
            spillway.status(StatusRequest::default()).await.map(drop)
        };
        match answer {
            Ok(()) => Counts::add(&counts.queries, begin),
            Err(status) if status.code() == Code::Unavailable => return,
            Err(status) => counts.refuse(&status),
        }
        tokio::time::sleep(BETWEEN_QUERIES).await;
    }
}

/// Reads events until the daemon stops or refuses.
async fn watch(mut stubs: Stubs, counts: Arc<Counts>) {
    let mut is_counted = false;
    let ended: Result<(), Status> = async {
        let mut events = stubs.spillway.watch(WatchRequest::default()).await?.into_inner();
        while events.message().await?.is_some() {
            counts.events.fetch_add(1, Ordering::Relaxed);
            if !is_counted {
                is_counted = true;
                counts.watchers.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
    .await;
    if !is_counted {
        counts.watchers_refused.fetch_add(1, Ordering::Relaxed);
    }
    if let Err(status) = ended
        && status.code() != Code::ResourceExhausted
        && status.code() != Code::Unavailable
    {
        counts.refuse(&status);
    }
}

/// Reads the metrics.
fn scrape(node: &Node, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        match get(node, "/metrics") {
            Ok((head, _)) if head.starts_with("HTTP/1.1 200 ") => {
                Counts::add(&counts.scrapes, begin)
            }
            _ => {
                counts.scrapes_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        pause(BETWEEN_SCRAPES);
    }
}
