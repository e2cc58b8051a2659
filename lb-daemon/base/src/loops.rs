//! What the loops have in common: how they end, their ticks, and what is measured of them.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{durations::Durations, heartbeat::Heartbeat, queue::QueueCounters};

/// Time between two readings of the counters, and between two turns of a loop without work.
pub const SECOND: Duration = Duration::from_secs(1);

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// It was told to stop, or all senders of commands are gone.
    Stopped,
    /// A sensor ended, which is a defect.
    SensorEnded,
}

/// Ticks of a loop. Those that it missed are not made up for.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits for work, with heartbeats whenever the work itself waits.
pub async fn beating<T>(
    beat: &mut Interval,
    heartbeat: &Heartbeat,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            _ = beat.tick() => heartbeat.beat(),
            done = &mut work => return done,
        }
    }
}

/// What is measured of a loop. Clones share it. Nothing of it takes a lock, because changes of health pass here.
#[derive(Clone, Debug)]
pub struct LoopCounters(Arc<Measures>);

#[derive(Debug)]
struct Measures {
    queue: QueueCounters,
    service: Durations,
    made: Instant,
    /// When the last turn ended, nanoseconds after `made`.
    turned: AtomicU64,
}

impl Default for LoopCounters {
    fn default() -> Self {
        Self(Arc::new(Measures {
            queue: QueueCounters::default(),
            service: Durations::up_to_13_seconds(),
            made: Instant::now(),
            turned: AtomicU64::new(0),
        }))
    }
}

impl LoopCounters {
    /// All that waits for the loop.
    pub fn queue(&self) -> &QueueCounters {
        &self.0.queue
    }

    /// How long each turn took: what the loop does between two looks at its queues.
    pub fn service(&self) -> &Durations {
        &self.0.service
    }

    /// Time since the last turn ended. A loop without work turns every second.
    pub fn since_last_turn(&self) -> Duration {
        let turned = Duration::from_nanos(self.0.turned.load(Ordering::Acquire));
        self.0.made.elapsed().saturating_sub(turned)
    }

    /// Begins a turn, which ends when the result is dropped.
    pub fn turn(&self) -> Turn {
        Turn { counters: self.clone(), began: Instant::now() }
    }
}

/// A turn of a loop.
#[derive(Debug)]
pub struct Turn {
    counters: LoopCounters,
    began: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (now, measures) = (Instant::now(), &*self.counters.0);
        measures.service.record(now - self.began);
        let turned = u64::try_from((now - measures.made).as_nanos()).unwrap_or(u64::MAX);
        measures.turned.store(turned, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns once so much time has passed.
    fn pass(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_turn_is_measured_when_it_ends() {
        const A_WHILE: Duration = Duration::from_millis(20);
        let counters = LoopCounters::default();
        pass(A_WHILE);
        assert!(counters.since_last_turn() >= A_WHILE);
        let turn = counters.turn();
        pass(A_WHILE);
        assert_eq!(counters.service().read().count, 0);
        assert!(counters.since_last_turn() >= 2 * A_WHILE);
        drop(turn);
        let ended = Instant::now();
        let service = counters.service().read();
        assert_eq!(service.count, 1);
        assert!(service.sum >= A_WHILE.as_secs_f64(), "{}", service.sum);
        pass(A_WHILE);
        let since = counters.since_last_turn();
        assert!((A_WHILE..=ended.elapsed() + A_WHILE / 2).contains(&since), "{since:?}");
    }
}
