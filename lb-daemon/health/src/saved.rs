//! Streaks that outlive the daemon. Another task writes them down while the probes run, and the next daemon continues them.
//!
//! A probe that passes without a failure is not written down: its targets accept packets, which the maps say. So a probe
//! that is not found here is taken for one that passed, unless one of its targets waits for its first result.
//!
//! What was written down may be a second older than the maps. If they say that a target is up, none of its checks fails.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use xxhash_rust::xxh64::Xxh64;

use super::{ProbeKey, judge::Judge, probe_loop::ProbeState, streak::StreakCounts, targets::Start};
use lb_model::HealthCheck;

/// For how long streaks are continued after they were written down: so long, or so many intervals of the check if that is
/// more. After that nothing is known of what the backend did meanwhile.
const LONGEST_GAP: Duration = Duration::from_secs(60);
const LONGEST_GAP_INTERVALS: u32 = 3;

/// The streak of a probe, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStreak {
    /// The backend, for whoever reads the file.
    address: IpAddr,
    /// Digest of what is asked, which must be the same.
    question: u64,
    /// Digest of what is asked and of times, rise and fall: which of several probes that ask the same.
    definition: u64,
    #[serde(flatten)]
    counts: StreakCounts,
}

/// The streaks of the running probes, and those that an earlier daemon wrote down. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Streaks(Arc<Shared>);

type RunningProbe = (Arc<ProbeKey>, Arc<ProbeState>);

#[derive(Debug, Default)]
struct Shared {
    /// Until the prober takes them.
    restored: Mutex<Option<RestoredStreaks>>,
    /// `None` until the prober has its first targets.
    running: watch::Sender<Option<Arc<[RunningProbe]>>>,
}

impl Streaks {
    /// With the streaks that an earlier daemon wrote down at `saved_at`.
    pub fn restored(saved: Vec<SavedStreak>, saved_at: Instant) -> Self {
        let streaks = Self::default();
        streaks.lock().replace(RestoredStreaks::new(saved, saved_at));
        streaks
    }

    /// Those that a restart must not forget, at most `limit`. `None`: no probe has started yet, so what an earlier daemon
    /// wrote down is still the newest.
    pub fn now(&self, limit: usize) -> Option<Vec<SavedStreak>> {
        let running = self.0.running.borrow().clone()?;
        let saved = running.iter().filter_map(|(probed, state)| {
            let counts = state.counts()?;
            let (question, definition) = (digest(&probed.question()), digest(&**probed));
            Some(SavedStreak { address: probed.address, question, definition, counts })
        });
        Some(saved.take(limit).collect())
    }

    pub(super) fn take_restored(&self) -> Option<RestoredStreaks> {
        self.lock().take()
    }

    /// Shows the probes that run from now on.
    pub(super) fn show(&self, running: impl ExactSizeIterator<Item = RunningProbe>) {
        if running.len() > 0 || self.0.running.borrow().is_some() {
            self.0.running.send_replace(Some(running.collect()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<RestoredStreaks>> {
        self.0.restored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an earlier daemon wrote down.
#[derive(Debug)]
pub(super) struct RestoredStreaks {
    saved_at: Instant,
    /// By question; several if probes ask the same at other times.
    streaks: HashMap<u64, Vec<SavedStreak>>,
}

impl RestoredStreaks {
    fn new(saved: Vec<SavedStreak>, saved_at: Instant) -> Self {
        let mut streaks: HashMap<u64, Vec<SavedStreak>> = HashMap::new();
        for saved in saved {
            streaks.entry(saved.question).or_default().push(saved);
        }
        Self { saved_at, streaks }
    }

    /// Continues the results of a probe that starts; `None`: nothing is known of it.
    pub(super) fn judge(&self, start: &Start) -> Option<Judge> {
        let Start { probed, urgent, is_up, .. } = start;
        let check = &probed.check;
        if self.saved_at.elapsed() > longest_gap(check) {
            return None;
        }
        let Some(same) = self.streaks.get(&digest(&probed.question())) else {
            return (!urgent).then(|| Judge::restored(check, None));
        };
        let definition = digest(&**probed);
        let saved = same.iter().find(|it| it.definition == definition).or_else(|| same.first())?;
        let is_old = *is_up && saved.counts.fails();
        Some(Judge::restored(check, (!is_old).then_some(saved.counts)))
    }
}

fn longest_gap(check: &HealthCheck) -> Duration {
    LONGEST_GAP.max(check.interval.saturating_mul(LONGEST_GAP_INTERVALS))
}

/// A digest that is the same in each process.
fn digest(of: &impl Hash) -> u64 {
    let mut hasher = Xxh64::new(0);
    of.hash(&mut hasher);
    hasher.finish()
}
