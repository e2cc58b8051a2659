//! Queues whose length and waiting times are measured: tokio's channels, with an entry's time of arrival beside it. They
//! take no lock beyond those of the channel.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use tokio::sync::mpsc;

use crate::durations::Durations;

/// Measures of one or more queues. Clones share them.
#[derive(Clone, Debug)]
pub struct QueueCounters(Arc<Measures>);

#[derive(Debug)]
struct Measures {
    length: AtomicUsize,
    waiting: Durations,
}

impl Default for QueueCounters {
    fn default() -> Self {
        let waiting = Durations::up_to_13_seconds();
        Self(Arc::new(Measures { length: AtomicUsize::new(0), waiting }))
    }
}

impl QueueCounters {
    /// Entries that wait, also those whose senders wait for room.
    pub fn length(&self) -> usize {
        self.0.length.load(Ordering::Acquire)
    }

    /// How long entries waited until they were taken.
    pub fn waiting(&self) -> &Durations {
        &self.0.waiting
    }

    /// Counts an entry from now on until the result is dropped.
    pub fn enter(&self) -> Waiting {
        self.0.length.fetch_add(1, Ordering::AcqRel);
        Waiting { since: Instant::now(), counters: self.clone() }
    }
}

/// An entry's place in a queue. It is dropped with an entry that nobody takes.
#[derive(Debug)]
pub struct Waiting {
    since: Instant,
    counters: QueueCounters,
}

impl Waiting {
    /// Records how long the entry waited until `now`.
    pub fn end(self, now: Instant) {
        self.counters.0.waiting.record(now.saturating_duration_since(self.since));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.counters.0.length.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    waiting: Waiting,
}

impl<T> Entry<T> {
    fn take(self, now: Instant) -> T {
        self.waiting.end(now);
        self.value
    }
}

/// The receiver is gone; the entry comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed")]
pub struct Closed<T>(pub T);

/// A queue of so many entries at most.
pub fn bounded<T>(room: usize, counters: &QueueCounters) -> (Sender<T>, Receiver<T>) {
    let (entries_tx, entries) = mpsc::channel(room);
    let counters = counters.clone();
    (Sender { entries: entries_tx, counters }, Receiver { entries, taken: Vec::new() })
}

/// A queue without a limit.
pub fn unbounded<T>(counters: &QueueCounters) -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (entries_tx, entries) = mpsc::unbounded_channel();
    let counters = counters.clone();
    (UnboundedSender { entries: entries_tx, counters }, UnboundedReceiver(entries))
}

/// Adds entries to a queue of limited length. Clones share it.
#[derive(Debug)]
pub struct Sender<T> {
    entries: mpsc::Sender<Entry<T>>,
    counters: QueueCounters,
}

/// Adds entries to a queue without a limit. Clones share it.
#[derive(Debug)]
pub struct UnboundedSender<T> {
    entries: mpsc::UnboundedSender<Entry<T>>,
    counters: QueueCounters,
}

// Not derived: T need not be cloned.
impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), counters: self.counters.clone() }
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), counters: self.counters.clone() }
    }
}

impl<T> Sender<T> {
    /// Waits for room.
    ///
    /// # Errors
    /// The receiver is gone.
    pub async fn send(&self, value: T) -> Result<(), Closed<T>> {
        let entry = Entry { value, waiting: self.counters.enter() };
        self.entries.send(entry).await.map_err(|entry| Closed(entry.0.value))
    }

    /// Waits until the receiver is gone.
    pub async fn closed(&self) {
        self.entries.closed().await;
    }

    /// Measures of this queue, and of others that share them.
    pub fn counters(&self) -> &QueueCounters {
        &self.counters
    }
}

impl<T> UnboundedSender<T> {
    /// # Errors
    /// The receiver is gone.
    pub fn send(&self, value: T) -> Result<(), Closed<T>> {
        let entry = Entry { value, waiting: self.counters.enter() };
        self.entries.send(entry).map_err(|entry| Closed(entry.0.value))
    }
}

/// Takes entries out of a queue of limited length.
#[derive(Debug)]
pub struct Receiver<T> {
    entries: mpsc::Receiver<Entry<T>>,
    /// What [`Self::recv_many`] takes at once; kept for its memory.
    taken: Vec<Entry<T>>,
}

/// Takes entries out of a queue without a limit.
#[derive(Debug)]
pub struct UnboundedReceiver<T>(mpsc::UnboundedReceiver<Entry<T>>);

impl<T> Receiver<T> {
    /// The next entry; `None` once there is no sender. No entry is lost if this is cancelled.
    pub async fn recv(&mut self) -> Option<T> {
        let entry = self.entries.recv().await?;
        Some(entry.take(Instant::now()))
    }

    /// Adds up to `limit` entries to `values`, and returns how many; zero once there is no sender. No entry is lost if this
    /// is cancelled.
    pub async fn recv_many(&mut self, values: &mut Vec<T>, limit: usize) -> usize {
        let count = self.entries.recv_many(&mut self.taken, limit).await;
        let now = Instant::now();
        values.extend(self.taken.drain(..).map(|entry| entry.take(now)));
        count
    }

    /// Entries that wait, without those whose senders wait for room.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The next entry, if one waits.
    pub fn try_recv(&mut self) -> Option<T> {
        let entry = self.entries.try_recv().ok()?;
        Some(entry.take(Instant::now()))
    }
}

impl<T> UnboundedReceiver<T> {
    /// The next entry; `None` once there is no sender. No entry is lost if this is cancelled.
    pub async fn recv(&mut self) -> Option<T> {
        let entry = self.0.recv().await?;
        Some(entry.take(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns once so much time has passed.
    fn pass(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            std::thread::yield_now();
        }
    }

    const A_WHILE: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn entries_are_counted_until_they_are_taken() {
        let counters = QueueCounters::default();
        let (bounded_tx, mut bounded) = bounded(8, &counters);
        let (unbounded_tx, mut unbounded) = unbounded(&counters);
        for number in 1..=4 {
            bounded_tx.send(number).await.unwrap();
            unbounded_tx.clone().send(number).unwrap();
        }
        assert_eq!(counters.length(), 8);
        pass(A_WHILE);
        assert_eq!((bounded.recv().await, unbounded.recv().await), (Some(1), Some(1)));
        let mut values = vec![0];
        assert_eq!(bounded.recv_many(&mut values, 2).await, 2);
        assert_eq!((values, counters.length()), (vec![0, 2, 3], 4));
        assert_eq!((bounded.try_recv(), bounded.try_recv()), (Some(4), None));
        let waited = counters.waiting().read();
        assert_eq!(waited.count, 5);
        assert!(waited.sum >= 5.0 * A_WHILE.as_secs_f64(), "{}", waited.sum);
        drop(unbounded);
        assert_eq!(counters.length(), 0, "nobody takes the rest");
        assert_eq!(counters.waiting().read().count, 5);
        assert_eq!(unbounded_tx.send(5), Err(Closed(5)));
        assert_eq!(counters.length(), 0);
    }

    #[tokio::test]
    async fn one_that_waits_for_room_is_counted_until_it_gives_up() {
        let counters = QueueCounters::default();
        let (sender, mut receiver) = bounded(1, &counters);
        sender.send("first").await.unwrap();
        {
            let mut second = Box::pin(sender.send("second"));
            tokio::select! {
                biased;
                _ = &mut second => panic!("there is no room"),
                () = tokio::task::yield_now() => {}
            }
            assert_eq!(counters.length(), 2);
        }
        assert_eq!(counters.length(), 1);
        assert_eq!(receiver.recv().await, Some("first"));
        drop(sender);
        assert_eq!(receiver.recv().await, None);
        assert_eq!(receiver.recv_many(&mut Vec::new(), 3).await, 0);
    }
}
