//! Heartbeats: loops count their rounds, and the watchdog checks that they advance.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

/// The loop's side. It beats after each round.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    rounds: Arc<AtomicU64>,
    pulse: Pulse,
    interval: Duration,
}

impl Heartbeat {
    /// A heartbeat without a watchdog, for tests.
    pub fn unwatched(interval: Duration) -> Self {
        Pulse::default().register("unwatched", interval).0
    }

    /// Counts a completed round.
    pub fn beat(&self) {
        self.rounds.fetch_add(1, Ordering::Release);
        self.pulse.0.notify_one();
    }

    /// Longest allowed time between two beats; an idle loop beats too.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Completed rounds.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }
}

/// The watchdog's side of one loop.
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

    /// Whether the loop beat since [`Beats::forget`].
    pub fn came(&self) -> bool {
        self.rounds.load(Ordering::Acquire) != self.seen
    }

    /// Starts counting again.
    pub fn forget(&mut self) {
        self.seen = self.rounds.load(Ordering::Acquire);
    }
}

/// Wakes the watchdog when any loop beats.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Notify>);

impl Pulse {
    pub fn register(&self, name: &'static str, interval: Duration) -> (Heartbeat, Beats) {
        let rounds = Arc::new(AtomicU64::new(0));
        let heartbeat = Heartbeat { rounds: rounds.clone(), pulse: self.clone(), interval };
        (heartbeat, Beats { name, rounds, seen: 0 })
    }

    /// Waits for a beat; returns at once if there was one since the last call.
    pub async fn next_beat(&self) {
        self.0.notified().await;
    }
}
