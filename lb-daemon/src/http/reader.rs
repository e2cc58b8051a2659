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

use crate::metrics::{self, Facts, Live};
use lb_base::error_chain;
use lb_control::command::{BackendHistory, Commands, Refusal, Stopping};
use lb_inspect::stats::Source;
use lb_maps::MapsError;
use lb_model::Name;

/// Time that the state may take for its answers: it may be at a large change.
const PATIENCE: Duration = Duration::from_secs(10);
/// What was read stands for this many times the time that reading took, so that no more than a share of
/// the state's time goes to those who look.
const STANDS: u32 = 4;

/// Reads what is to be shown: one reading at a time, for all who wait for it.
#[derive(Debug)]
pub struct Reader {
    commands: Commands,
    counters: Source,
    live: Live,
    last: Mutex<Option<Last>>,
}

#[derive(Debug)]
struct Last {
    seen: Arc<Seen>,
    until: Instant,
}

/// What was read, and its exposition once somebody has asked for that.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) facts: Arc<Facts>,
    metrics: OnceLock<Bytes>,
    /// What has become of the backends of pools that somebody asked for.
    histories: Mutex<HashMap<Name, Arc<Vec<BackendHistory>>>>,
}

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unseen {
    #[error(transparent)]
    Stopping(#[from] Stopping),
    #[error("state")]
    Refused(#[from] Refusal),
    #[error("the counters")]
    Counters(#[from] MapsError),
    #[error("the counters")]
    Ended(#[from] JoinError),
    #[error("state: no answer within {} s", PATIENCE.as_secs())]
    Busy,
    #[error("exposition")]
    Format(#[from] fmt::Error),
}

impl Unseen {
    pub(super) fn line(&self) -> String {
        format!("{}\n", error_chain::message(self))
    }
}

impl Reader {
    /// Reads through these.
    pub fn new(commands: Commands, counters: Source, live: Live) -> Self {
        Self { commands, counters, live, last: Mutex::default() }
    }

    /// What there is to see, read now or a moment ago.
    pub(super) async fn seen(&self) -> Result<Arc<Seen>, Unseen> {
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| Instant::now() < last.until) {
            return Ok(last.seen.clone());
        }
        let began = Instant::now();
        let facts = timeout(PATIENCE, self.read()).await.map_err(|_| Unseen::Busy)??;
        let (metrics, histories) = (OnceLock::new(), Mutex::default());
        let seen = Arc::new(Seen { facts: Arc::new(facts), metrics, histories });
        let stands = began.elapsed() * STANDS;
        *last = Some(Last { seen: seen.clone(), until: Instant::now() + stands });
        Ok(seen)
    }

    /// What has become of a pool's backends, asked once for all who see the same. Of a pool that went
    /// meanwhile: nothing.
    pub(super) async fn history(
        &self,
        seen: &Seen,
        pool: &Name,
    ) -> Result<Arc<Vec<BackendHistory>>, Stopping> {
        let mut histories = seen.histories.lock().await;
        if let Some(there) = histories.get(pool) {
            return Ok(there.clone());
        }
        let asked = self.commands.history(pool.to_string(), None).await?;
        let history = Arc::new(asked.unwrap_or_default());
        histories.insert(pool.clone(), history.clone());
        Ok(history)
    }

    async fn read(&self) -> Result<Facts, Unseen> {
        let status = self.commands.status().await??;
        let regions = self.commands.regions(None).await??;
        let counters = self.counters.clone();
        let stats = spawn_blocking(move || counters.read()).await??;
        Ok(Facts { stats, status, regions, live: self.live.clone(), at: SystemTime::now() })
    }
}

impl Seen {
    /// Its exposition.
    pub(super) async fn metrics(self: Arc<Self>) -> Result<Bytes, Unseen> {
        let write = move || {
            if let Some(written) = self.metrics.get() {
                return Ok(written.clone());
            }
            let written = Bytes::from(metrics::of_balancer(self.facts.clone())?);
            Ok::<_, fmt::Error>(self.metrics.get_or_init(|| written).clone())
        };
        Ok(spawn_blocking(write).await??)
    }
}
