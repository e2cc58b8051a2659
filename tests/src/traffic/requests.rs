//! Requests one after the other, each on a fresh connection, each with its time and outcome.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::ask_http;
use crate::process::{PATIENCE, until};
use crate::topology::Node;

/// Clients that go on asking an [`Nginx`](super::Nginx) for its name until they are finished.
#[derive(Debug)]
pub struct Requests {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<Vec<Attempt>>>>,
}

/// One request.
#[derive(Debug)]
pub struct Attempt {
    /// When it began.
    pub at: Instant,
    /// How long it took to answer or fail.
    pub took: Duration,
    /// Who answered.
    pub answer: Result<String>,
}

impl Requests {
    /// Starts `clients` that wait for `pause` after each answer.
    pub fn start(node: &Node, to: SocketAddr, clients: usize, pause: Duration) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = || {
            let (node, stop, done) = (node.clone(), stop.clone(), done.clone());
            std::thread::spawn(move || node.enter(|| ask(to, pause, &stop, &done)))
        };
        let threads = (0..clients).map(|_| client()).collect();
        Self { stop, done, threads }
    }

    /// Waits until so many more requests have ended, well or not.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn wait_for(&self, more: u64) -> Result<()> {
        let goal = self.done.load(Ordering::Relaxed) + more;
        until(&format!("{more} more requests"), PATIENCE, || {
            Ok((self.done.load(Ordering::Relaxed) >= goal).then_some(()))
        })
    }

    /// Lets requests under way end and returns all, in the order in which they began.
    ///
    /// # Errors
    /// When a client could not be started.
    pub fn finish(self) -> Result<Vec<Attempt>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut attempts = Vec::new();
        for thread in self.threads {
            match thread.join() {
                Ok(result) => attempts.extend(result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        attempts.sort_by_key(|attempt| attempt.at);
        Ok(attempts)
    }
}

fn ask(to: SocketAddr, pause: Duration, stop: &AtomicBool, done: &AtomicU64) -> Vec<Attempt> {
    let any: IpAddr =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut attempts = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let at = Instant::now();
        let answer = ask_http(SocketAddr::new(any, 0), to);
        attempts.push(Attempt { at, took: at.elapsed(), answer });
        done.fetch_add(1, Ordering::Relaxed);
        std::thread::park_timeout(pause);
    }
    attempts
}

/// Fails unless every request that began in a stretch of time was answered, and by none of `but`.
///
/// # Errors
/// The first that was not, or when there was none.
pub fn ensure_answered(
    attempts: &[Attempt],
    from: Instant,
    to: Instant,
    but: &[&str],
) -> Result<usize> {
    let mut count = 0;
    for attempt in attempts.iter().filter(|attempt| (from..to).contains(&attempt.at)) {
        let after = attempt.at.duration_since(from);
        match &attempt.answer {
            Ok(name) => ensure!(!but.contains(&name.as_str()), "{name} answered after {after:?}"),
            Err(error) => anyhow::bail!("a request failed after {after:?}: {error:#}"),
        }
        count += 1;
    }
    ensure!(count > 0, "no requests");
    Ok(count)
}
