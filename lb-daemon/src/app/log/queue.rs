//! Entries that wait to be written.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

use tokio::sync::Notify;

use super::journal::JournalEntry;
use lb_observe::metrics::Counter;

/// Bytes that waiting entries may take in memory.
const CAPACITY: usize = 4 << 20;
/// Bytes that an entry takes besides its own: this bounds the number of entries too.
const OVERHEAD: usize = 64 + size_of::<Entry>();

#[derive(Debug)]
pub(super) enum Entry {
    /// For stderr.
    Text(Vec<u8>),
    Journal(JournalEntry),
}

impl Entry {
    fn size(&self) -> usize {
        let bytes = match self {
            Self::Text(text) => text.len(),
            Self::Journal(entry) => entry.bytes().len(),
        };
        OVERHEAD + bytes
    }
}

/// What the thread that writes does next.
#[derive(Debug)]
pub(super) enum Next {
    Write(Entry),
    /// Log that so many entries were dropped, and call [`Queue::reported`].
    Report(u64),
}

/// A queue that never blocks those who add to it. If it is full, it drops new entries until all that wait are written:
/// so what is missing is in one place, and the line that says how much stands there.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    added: Condvar,
    idle: Condvar,
    dropped: Counter,
    /// Notified when entries begin to be dropped, and when the last of them is reported.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    /// The size of all entries.
    bytes: usize,
    /// Whether new entries are dropped.
    is_full: bool,
    /// Whether the last entry could not be written.
    is_failing: bool,
    /// Dropped entries that no line of the log reports yet.
    unreported: u64,
    /// The thread that writes. What it logs itself always fits.
    writer: Option<ThreadId>,
    /// Whether that thread waits for entries.
    is_idle: bool,
}

impl State {
    fn add(&mut self, entry: Entry) {
        self.bytes += entry.size();
        self.entries.push_back(entry);
        self.is_idle = false;
    }

    fn has_room(&self, size: usize) -> bool {
        // An entry of any size fits an empty queue.
        !self.is_full && (self.bytes == 0 || self.bytes + size <= CAPACITY)
    }

    fn is_writer(&self) -> bool {
        self.writer == Some(thread::current().id())
    }
}

impl Queue {
    /// Adds an entry, or drops it if the queue is full.
    pub(super) fn push(&self, entry: Entry) {
        let mut state = self.lock();
        if state.is_writer() || state.has_room(entry.size()) {
            state.add(entry);
            self.added.notify_one();
        } else {
            state.is_full = true;
            self.count_dropped(state);
        }
    }

    /// Adds an entry even if the queue is full.
    pub(super) fn push_always(&self, entry: Entry) {
        self.lock().add(entry);
        self.added.notify_one();
    }

    /// Waits for something to do, for the thread that writes.
    pub(super) fn next(&self) -> Next {
        let mut state = self.lock();
        state.writer = Some(thread::current().id());
        loop {
            if let Some(entry) = state.entries.pop_front() {
                state.bytes -= entry.size();
                return Next::Write(entry);
            }
            if state.unreported > 0 && !state.is_failing {
                return Next::Report(state.unreported);
            }
            state.is_full = false;
            state.is_idle = true;
            self.idle.notify_all();
            state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The last entry of [`Self::next`] was written, or could not be and is lost.
    pub(super) fn written(&self, is_written: bool) {
        let mut state = self.lock();
        state.is_failing = !is_written;
        if !is_written {
            self.count_dropped(state);
        }
    }

    /// So many dropped entries were reported. If none were dropped meanwhile, new entries are accepted again.
    pub(super) fn reported(&self, entries: u64) {
        let mut state = self.lock();
        state.unreported -= entries;
        if state.unreported == 0 {
            state.is_full = false;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits until nothing waits, for `limit` at most.
    pub(super) fn flush(&self, limit: Duration) {
        let busy = |state: &mut State| !state.is_idle;
        drop(self.idle.wait_timeout_while(self.lock(), limit, busy));
    }

    /// Whether entries were dropped that no line of the log reports yet.
    pub(super) fn is_dropping(&self) -> bool {
        self.lock().unreported > 0
    }

    /// Waits until [`Self::is_dropping`] may have changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn is_writer(&self) -> bool {
        self.lock().is_writer()
    }

    /// Counts dropped entries.
    pub(super) fn dropped(&self) -> &Counter {
        &self.dropped
    }

    fn count_dropped(&self, mut state: MutexGuard<'_, State>) {
        self.dropped.inc();
        state.unreported += 1;
        let is_first = state.unreported == 1;
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Instant};

    use super::*;

    /// Size of an entry of which 16 fit.
    const SIXTEENTH: usize = CAPACITY / 16 - OVERHEAD;

    fn text(first: u8, size: usize) -> Entry {
        let mut text = vec![b'x'; size];
        text[0] = first;
        Entry::Text(text)
    }

    /// The next entry's first byte, which is then written.
    fn write(queue: &Queue) -> u8 {
        let Next::Write(Entry::Text(text)) = queue.next() else { panic!("a report") };
        queue.written(true);
        text[0]
    }

    /// Adds as others than the thread that writes.
    fn push(queue: &Queue, entry: Entry) {
        thread::scope(|scope| scope.spawn(|| queue.push(entry)).join()).unwrap();
    }

    #[test]
    fn a_full_queue_drops_the_newest_until_it_is_written_and_the_report_stands_there() {
        let queue = Queue::default();
        (0..18).for_each(|number| push(&queue, text(number, SIXTEENTH)));
        assert_eq!((queue.dropped().get(), queue.is_dropping()), (2, true));
        assert_eq!(write(&queue), 0);
        push(&queue, text(18, 1));
        assert_eq!(queue.dropped().get(), 3, "there is room, but that is behind the gap");
        assert_eq!((1..16).map(|_| write(&queue)).collect::<Vec<_>>(), Vec::from_iter(1..16));

        let Next::Report(3) = queue.next() else { panic!("no report") };
        push(&queue, text(19, 1));
        queue.push(text(b'r', 1));
        queue.reported(3);
        assert_eq!(write(&queue), b'r');
        let Next::Report(1) = queue.next() else { panic!("no report of what came meanwhile") };
        assert!(queue.is_dropping());
        queue.reported(1);
        assert!(!queue.is_dropping());
        push(&queue, text(20, 1));
        assert_eq!(write(&queue), 20);
    }

    #[test]
    fn small_entries_are_bounded_too_and_a_huge_one_fits_an_empty_queue() {
        let queue = Queue::default();
        (0..=CAPACITY / OVERHEAD).for_each(|_| queue.push(text(0, 1)));
        assert!(queue.dropped().get() > 0);
        let queue = Queue::default();
        queue.push(text(0, CAPACITY));
        assert_eq!(queue.dropped().get(), 0);
        queue.push(text(1, 1));
        assert_eq!(queue.dropped().get(), 1);
        queue.push_always(text(2, 1));
        assert_eq!((queue.dropped().get(), write(&queue), write(&queue)), (1, 0, 2));
    }

    #[test]
    fn what_cannot_be_written_is_reported_once_something_can() {
        let queue = Arc::new(Queue::default());
        push(&queue, text(0, 1));
        assert!(matches!(queue.next(), Next::Write(_)));
        queue.written(false);
        assert_eq!((queue.dropped().get(), queue.is_dropping()), (1, true));
        push(&queue, text(1, 1));
        assert_eq!(write(&queue), 1);
        assert!(matches!(queue.next(), Next::Report(1)));
    }

    #[test]
    fn a_flush_waits_for_the_last_entry_and_not_for_ever() {
        let queue = Arc::new(Queue::default());
        queue.push(text(0, 1));
        let (begun, limit) = (Instant::now(), Duration::from_millis(50));
        queue.flush(limit);
        assert!(begun.elapsed() >= limit, "nothing writes");

        let writer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let first = write(&queue);
                // Tells the flush that nothing waits, and waits for the next.
                (first, write(&queue))
            }
        });
        queue.flush(Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(50));
        queue.push(text(1, 1));
        assert_eq!(writer.join().unwrap(), (0, 1));
    }
}
