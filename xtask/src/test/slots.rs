//! How many tests may run at a time: each takes slots of the machine for as long as it runs.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Slots of the machine. Two CPUs bear four tests that mostly wait.
pub(super) const ALL: usize = 4;

/// The slots that are taken, and the queue for more. It is served in its order, so that a test that needs many
/// slots gets them.
#[derive(Default)]
pub(super) struct Slots {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    taken: usize,
    waiting: VecDeque<u64>,
    next: u64,
}

/// Slots that are given back when this is dropped.
pub(super) struct Taken<'a> {
    slots: &'a Slots,
    count: usize,
}

impl Slots {
    /// Waits until `count` slots are free, at most [`ALL`], and takes them.
    pub(super) fn take(&self, count: usize) -> Taken<'_> {
        let mut state = self.lock();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || state.taken + count > ALL {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.pop_front();
        state.taken += count;
        // The next in line may fit beside this one.
        self.changed.notify_all();
        Taken { slots: self, count }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.slots.lock().taken -= self.count;
        self.slots.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn as_many_run_as_there_are_slots() {
        let slots = Slots::default();
        let together = Barrier::new(ALL);
        // Each waits for all others, so fewer at a time would wait for ever.
        thread::scope(|scope| {
            for _ in 0..ALL {
                scope.spawn(|| {
                    let _taken = slots.take(1);
                    together.wait();
                });
            }
        });
    }

    #[test]
    fn one_that_takes_all_runs_alone_and_is_not_overtaken() {
        let (slots, running, order) = (Slots::default(), AtomicUsize::new(0), Mutex::default());
        let queued = |count: usize| {
            while slots.lock().waiting.len() < count {
                thread::park_timeout(Duration::from_millis(1));
            }
        };
        thread::scope(|scope| {
            let first = slots.take(1);
            for (place, count) in [(1, ALL), (2, 1)] {
                let (slots, running, order): (_, _, &Mutex<Vec<_>>) = (&slots, &running, &order);
                scope.spawn(move || {
                    let _taken = slots.take(count);
                    let others = running.fetch_add(count, Ordering::SeqCst);
                    assert!(others + count <= ALL, "{others} slots were taken");
                    order.lock().unwrap().push(count);
                    running.fetch_sub(count, Ordering::SeqCst);
                });
                queued(place);
            }
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), [ALL, 1]);
    }
}
