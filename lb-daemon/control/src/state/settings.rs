//! What the state loop is given at its start and shares with other parts of the daemon.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prometheus_client::metrics::{
    counter::Counter,
    gauge::Gauge,
    histogram::{Histogram, exponential_buckets},
};
use tokio::sync::watch;

use crate::store::Revision;
use lb_base::conditions::Conditions;
use lb_config::document::Document;
use lb_model::{Configuration, Name, map_memory::Budget, plan::Sources};

/// What the daemon is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Region it stands in.
    pub region: Option<Name>,
    /// Sources of tunnels.
    pub sources: Sources,
    /// Where the names of numbers are written for the command line.
    pub state_directory: PathBuf,
    /// What the maps take and may take.
    pub map_memory: Budget,
    /// What is wrong elsewhere in the daemon.
    pub conditions: Conditions,
    /// Changed settings that wait for the next start.
    pub waiting_settings: WaitingSettings,
    /// Where what it publishes is counted.
    pub publish_counters: PublishCounters,
    /// The file that the configuration is read from again.
    pub followed: FollowedFile,
    /// Its schema revision, which is [`Revision::CURRENT`] but in tests of a later one.
    pub schema: Revision,
    /// Whether the file that it reads may replace a configuration of a newer schema.
    pub any_schema: bool,
}

/// The file, if there is one. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub struct FollowedFile(Arc<Mutex<Option<PathBuf>>>);

impl FollowedFile {
    /// A file, or none.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self(Arc::new(Mutex::new(path)))
    }

    /// Its path.
    pub fn path(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It is another one from now on, or none.
    pub fn set(&self, path: Option<PathBuf>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Its path and what it says now; `None` for that: it cannot be read, or is wrong.
    pub fn read(&self) -> Option<(PathBuf, Option<Configuration>)> {
        let path = self.path()?;
        let text = fs::read_to_string(&path).ok();
        let document = text.and_then(|text| Document::parse(&text).ok());
        let configuration =
            document.and_then(|document| lb_config::validate(&document.into()).ok());
        Some((path, configuration))
    }
}

/// Names of changed settings that wait for the next start, as of the last reload. Clones are of the same ones.
#[derive(Clone, Debug, Default)]
pub struct WaitingSettings(watch::Sender<Vec<String>>);

impl WaitingSettings {
    /// These wait from now on, and no others.
    pub fn set(&self, names: Vec<String>) {
        if *self.0.borrow() == names {
            return;
        }
        if names.is_empty() {
            tracing::info!("no setting waits for the next start any more");
        } else {
            tracing::warn!("changed settings that wait for the next start: {}", names.join(", "));
        }
        self.0.send_replace(names);
    }

    /// Those there are now.
    pub fn now(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// A receiver that changes whenever they do.
    pub fn changes(&self) -> watch::Receiver<Vec<String>> {
        self.0.subscribe()
    }
}

/// Counts what brings the packet path to a plan. Clones count together.
#[derive(Clone, Debug)]
pub struct PublishCounters {
    /// How long it took, seconds.
    pub durations: Histogram,
    /// How often it failed.
    pub failures: Counter,
    /// When it last succeeded, seconds of the Unix epoch.
    pub last_at: Gauge<f64, AtomicU64>,
}

/// Bounds of the buckets of durations: 1 ms, doubled up to 16 s.
const SHORTEST: f64 = 0.001;
const BUCKETS: u16 = 15;

impl Default for PublishCounters {
    fn default() -> Self {
        Self {
            durations: Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS)),
            failures: Counter::default(),
            last_at: Gauge::default(),
        }
    }
}

impl PublishCounters {
    /// The packet path was brought to a plan, in this time.
    pub(crate) fn published(&self, took: Duration, now: SystemTime) {
        self.durations.observe(took.as_secs_f64());
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_at.set(since_epoch.as_secs_f64());
    }

    /// The packet path could not be brought to a plan.
    pub(crate) fn failed(&self) {
        self.failures.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_wait_until_they_are_as_they_were() {
        let waiting = WaitingSettings::default();
        let mut changes = waiting.changes();
        waiting.set(vec!["region".into()]);
        assert!(changes.has_changed().unwrap());
        assert_eq!(waiting.now(), ["region"]);
        changes.mark_unchanged();
        waiting.set(vec!["region".into()]);
        assert!(!changes.has_changed().unwrap());
        waiting.set(Vec::new());
        assert!(changes.has_changed().unwrap() && waiting.now().is_empty());
    }
}
