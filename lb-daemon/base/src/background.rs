//! Work beside a loop that must go on turning.

use std::{cell::Cell, io, panic::resume_unwind};

use tokio::task::spawn_blocking;

/// How much lower the priority of threads is that nobody waits for as for health checks and packets, nice(2).
const NICER: i32 = 5;

/// Runs work that computes for long or waits for a disk on a thread of lower priority.
///
/// # Errors
/// The runtime is being shut down.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let work = move || {
        lower_thread_priority();
        work()
    };
    match spawn_blocking(work).await {
        Ok(result) => Ok(result),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(cancelled) => Err(io::Error::other(cancelled)),
        },
    }
}

thread_local! {
    static IS_LOWERED: Cell<bool> = const { Cell::new(false) };
}

/// Lowers the priority of this thread and of those that it starts. Where that is forbidden, it stays.
pub fn lower_thread_priority() {
    if IS_LOWERED.replace(true) {
        return;
    }
    if let Err(error) = rustix::process::nice(NICER) {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn priority() -> i32 {
        rustix::process::nice(0).unwrap()
    }

    #[tokio::test]
    async fn work_has_a_lower_priority_and_its_panic_is_the_callers() {
        let (here, before) = (thread::current().id(), priority());
        for _ in 0..2 {
            let (there, after) = run(|| (thread::current().id(), priority())).await.unwrap();
            assert_ne!(here, there);
            assert_eq!(after, (before + NICER).min(19), "lowered once");
        }
        assert_eq!(priority(), before);
        let panics = tokio::spawn(async { run(|| panic!("no")).await });
        assert!(panics.await.unwrap_err().is_panic());
    }

    #[test]
    fn threads_inherit_a_lower_priority() {
        let before = priority();
        let inherited = thread::spawn(|| {
            lower_thread_priority();
            thread::spawn(priority).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), (before + NICER).min(19));
    }
}
