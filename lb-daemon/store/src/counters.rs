use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use prometheus_client::metrics::counter::Counter;

use lb_base::durations::Durations;

/// Counters of writes of the store. Clones share them.
#[derive(Clone, Debug)]
pub struct StoreCounters {
    /// Of all writes, also those that failed, until the disk has said so.
    pub durations: Durations,
    pub failures: Counter,
    /// When the write began that is under way.
    began: Arc<Mutex<Option<Instant>>>,
}

/// Shortest bucket of writes, and the number of buckets: up to 16 s.
const SHORTEST_WRITE: Duration = Duration::from_millis(1);
const WRITE_BUCKETS: usize = 15;

impl Default for StoreCounters {
    fn default() -> Self {
        let durations = Durations::new(SHORTEST_WRITE, WRITE_BUCKETS);
        Self { durations, failures: Counter::default(), began: Arc::default() }
    }
}

impl StoreCounters {
    /// Measures a write.
    pub(crate) fn measure<T, E>(&self, write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let began = Instant::now();
        self.set_began(Some(began));
        let written = write();
        self.set_began(None);
        self.durations.record(began.elapsed());
        if written.is_err() {
            self.failures.inc();
        }
        written
    }

    /// How long the write has taken that is under way; zero: none is.
    pub fn under_way(&self) -> Duration {
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    fn set_began(&self, began: Option<Instant>) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_write_of_the_store_is_seen_while_it_waits_and_counted_once_it_ends() {
        let counters = StoreCounters::default();
        assert_eq!(counters.under_way(), Duration::ZERO);
        let (disk, answer) = mpsc::channel::<Result<(), ()>>();
        let began = Instant::now();
        let shared = counters.clone();
        let write = thread::spawn(move || shared.measure(|| answer.recv().unwrap()));
        while counters.under_way() < Duration::from_millis(20) {
            assert!(began.elapsed() < Duration::from_secs(20), "it is not seen");
            thread::yield_now();
        }
        assert_eq!(counters.durations.read().count, 0);
        disk.send(Ok(())).unwrap();
        write.join().unwrap().unwrap();
        let read = counters.durations.read();
        assert_eq!((read.count, counters.failures.get()), (1, 0));
        assert!(read.sum >= 0.02 && read.sum <= began.elapsed().as_secs_f64(), "{}", read.sum);
        assert_eq!(counters.under_way(), Duration::ZERO);

        counters.measure(|| Err::<(), ()>(())).unwrap_err();
        assert_eq!((counters.durations.read().count, counters.failures.get()), (2, 1));
        assert_eq!(counters.under_way(), Duration::ZERO);
    }
}
