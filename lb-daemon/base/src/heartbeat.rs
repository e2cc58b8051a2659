use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

/// A loop's end: it beats at each round that it completes.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    rounds: Arc<AtomicU64>,
    pulse: Pulse,
    interval: Duration,
}

impl Heartbeat {
    /// A heartbeat that no watchdog listens to, for a loop that runs alone.
    pub fn unwatched(interval: Duration) -> Self {
        Pulse::default().register("unwatched", interval).0
    }

    /// A round is complete.
    pub fn beat(&self) {
        self.rounds.fetch_add(1, Ordering::Release);
        self.pulse.0.notify_one();
    }

    /// Longest time between two rounds: a loop that has nothing to do completes an empty one.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Rounds completed so far.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }
}

/// The watchdog's end of one loop.
#[derive(Debug)]
pub struct Beats {
    name: &'static str,
    rounds: Arc<AtomicU64>,
    seen: u64,
}

impl Beats {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a round was completed since [`Beats::forget`].
    pub fn came(&self) -> bool {
        self.rounds.load(Ordering::Acquire) != self.seen
    }

    /// Counts from now on.
    pub fn forget(&mut self) {
        self.seen = self.rounds.load(Ordering::Acquire);
    }
}

/// Wakes the watchdog at a beat of any loop.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Notify>);

impl Pulse {
    pub fn register(&self, name: &'static str, interval: Duration) -> (Heartbeat, Beats) {
        let rounds = Arc::new(AtomicU64::new(0));
        let heartbeat = Heartbeat { rounds: rounds.clone(), pulse: self.clone(), interval };
        (heartbeat, Beats { name, rounds, seen: 0 })
    }

    /// Ends at the next beat; at once if there was one since the last call.
    pub async fn next_beat(&self) {
        self.0.notified().await;
    }
}
