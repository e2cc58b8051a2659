//! Work beside a loop that must go on turning.

use std::{cell::Cell, io, panic::resume_unwind, time::Duration};

use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

/// How much lower the priority of threads is that nobody waits for as for health checks and packets, nice(2).
const NICER: i32 = 5;

/// Runs work that computes for long or waits for a disk on a thread of lower priority.
///
/// # Errors
/// The runtime is being shut down.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    Job::start(work).done().await
}

/// Work as of [`run`] that goes on whether it is waited for or not.
#[derive(Debug)]
pub struct Job<T>(JoinHandle<T>);

impl<T: Send + 'static> Job<T> {
    /// Starts it.
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Self {
        let work = move || {
            lower_thread_priority();
            work()
        };
        Self(spawn_blocking(work))
    }

    /// Waits for it. After the result it must not be called again.
    ///
    /// # Errors
    /// The runtime is being shut down.
    pub async fn done(&mut self) -> io::Result<T> {
        match (&mut self.0).await {
            Ok(result) => Ok(result),
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(cancelled) => Err(io::Error::other(cancelled)),
            },
        }
    }

    /// Waits for it up to `limit`.
    ///
    /// # Errors
    /// The job itself, which goes on.
    pub async fn within(mut self, limit: Duration) -> Result<io::Result<T>, Self> {
        match timeout(limit, self.done()).await {
            Ok(result) => Ok(result),
            Err(_) => Err(self),
        }
    }

    /// Whether its result is there.
    pub fn is_done(&self) -> bool {
        self.0.is_finished()
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

    #[tokio::test]
    async fn a_job_goes_on_when_it_is_no_longer_waited_for() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let job = Job::start(move || wait.recv().is_ok());
        let job = job.within(Duration::from_millis(1)).await.unwrap_err();
        assert!(!job.is_done());
        go.send(()).unwrap();
        assert!(job.within(Duration::from_secs(60)).await.unwrap().unwrap());
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
