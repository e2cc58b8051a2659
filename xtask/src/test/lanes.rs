//! Several jobs at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Jobs at a time: as many as the smallest machine that this is run on has CPUs.
pub(super) const LANES: usize = 2;

/// Does `work` on each of `all`, so many at a time, begun in their order; what comes of it is handed to
/// `done`, one after the other, as it comes.
pub(super) fn each<T: Sync, R: Send>(
    all: &[T],
    at_once: usize,
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(&T, R),
) {
    let (next, work) = (AtomicUsize::new(0), &work);
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..at_once {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(job) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send((job, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (job, result) in results {
            done(job, result);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn each_job_is_done_once_and_two_of_them_at_a_time() {
        // Each waits for another one, so one alone would wait for ever.
        let (both, mut seen) = (Barrier::new(2), Vec::new());
        let work = |number: &u32| {
            both.wait();
            number * 10
        };
        each(&[1, 2, 3, 4], 2, work, |number, result| seen.push((*number, result)));
        seen.sort_unstable();
        assert_eq!(seen, [(1, 10), (2, 20), (3, 30), (4, 40)]);
        each(&[], 2, |_: &u32| 0, |_, _| panic!("there is nothing to do"));
    }
}
