use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use axum::body::Bytes;
use tokio::{
    sync::Mutex,
    task::{JoinError, spawn_blocking},
    time::timeout,
};

use crate::metrics::{self, Facts, FleetFacts, Live};
use lb_base::error_chain;
use lb_control::command::{BackendHistory, Commands, Refusal, Stopping};
use lb_inspect::stats::Source;
use lb_maps::MapsError;
use lb_member::Membership;
use lb_model::Name;

/// Time for the state to answer: it may be busy with a large change.
const STATE_TIMEOUT: Duration = Duration::from_secs(10);
/// A snapshot is used for this many times the time that reading it took, which bounds the share of the state's time that
/// readers get.
const REUSE_FACTOR: u32 = 4;

/// Reads snapshots, one at a time, for all requests that wait.
#[derive(Debug)]
pub struct Reader {
    commands: Commands,
    counters: Source,
    live: Live,
    membership: Membership,
    packet_program: Option<u64>,
    last: Mutex<Option<LastRead>>,
}

#[derive(Debug)]
struct LastRead {
    snapshot: Arc<Snapshot>,
    until: Instant,
}

/// Facts of one moment, and what was made of them on request.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) facts: Arc<Facts>,
    metrics: OnceLock<Bytes>,
    /// Histories of the backends of requested pools.
    histories: Mutex<HashMap<Name, Arc<Vec<BackendHistory>>>>,
}

/// Why no snapshot can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Stopping(#[from] Stopping),
    #[error("state")]
    Refused(#[from] Refusal),
    #[error("the counters")]
    Counters(#[from] MapsError),
    #[error("the counters")]
    Ended(#[from] JoinError),
    #[error("status loop: no answer within {} s", STATE_TIMEOUT.as_secs())]
    Busy,
    #[error("exposition")]
    Format(#[from] fmt::Error),
}

impl ReadError {
    pub(super) fn line(&self) -> String {
        format!("{}\n", error_chain::message(self))
    }
}

impl Reader {
    pub fn new(
        commands: Commands,
        counters: Source,
        live: Live,
        membership: Membership,
        packet_program: Option<u64>,
    ) -> Self {
        Self { commands, counters, live, membership, packet_program, last: Mutex::default() }
    }

    /// A snapshot, read now or a moment ago.
    pub(super) async fn snapshot(&self) -> Result<Arc<Snapshot>, ReadError> {
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| Instant::now() < last.until) {
            return Ok(last.snapshot.clone());
        }
        let began = Instant::now();
        let facts = timeout(STATE_TIMEOUT, self.read()).await.map_err(|_| ReadError::Busy)??;
        let (metrics, histories) = (OnceLock::new(), Mutex::default());
        let snapshot = Arc::new(Snapshot { facts: Arc::new(facts), metrics, histories });
        let stands = began.elapsed() * REUSE_FACTOR;
        *last = Some(LastRead { snapshot: snapshot.clone(), until: Instant::now() + stands });
        Ok(snapshot)
    }

    /// The histories of a pool's backends, read once for each snapshot. Empty if the pool was removed meanwhile.
    pub(super) async fn history(
        &self,
        snapshot: &Snapshot,
        pool: &Name,
    ) -> Result<Arc<Vec<BackendHistory>>, Stopping> {
        let mut histories = snapshot.histories.lock().await;
        if let Some(there) = histories.get(pool) {
            return Ok(there.clone());
        }
        let asked = self.commands.history(pool.to_string(), None).await?;
        let history = Arc::new(asked.unwrap_or_default());
        histories.insert(pool.clone(), history.clone());
        Ok(history)
    }

    async fn read(&self) -> Result<Facts, ReadError> {
        let status = self.commands.status().await??;
        let regions = self.commands.regions(None).await??;
        let generations = self.commands.generations().await?;
        let counters = self.counters.clone();
        let stats = spawn_blocking(move || counters.read()).await??;
        let fleet = self.membership.member().map(|member| FleetFacts {
            fleet: member.fleet().clone(),
            balancer: member.name().clone(),
            status: member.status(),
        });
        let (live, packet_program, at) =
            (self.live.clone(), self.packet_program, SystemTime::now());
        Ok(Facts { stats, status, regions, generations, fleet, live, packet_program, at })
    }
}

impl Snapshot {
    /// The exposition of the metrics.
    pub(super) async fn metrics(self: Arc<Self>) -> Result<Bytes, ReadError> {
        let write = move || {
            if let Some(written) = self.metrics.get() {
                return Ok(written.clone());
            }
            let written = Bytes::from(metrics::balancer_exposition(self.facts.clone())?);
            Ok::<_, fmt::Error>(self.metrics.get_or_init(|| written).clone())
        };
        Ok(spawn_blocking(write).await??)
    }
}
