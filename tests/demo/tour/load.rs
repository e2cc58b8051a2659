//! The load: siege, again and again, until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use lb_tests::topology::Node;
use lb_tests::traffic::{Siege, SiegeReport};

/// A run of siege takes about a second: 8 clients, 40 requests each, 25 ms apart on average.
pub(crate) const SIEGE: Siege =
    Siege { clients: 8, requests: 40, pause: Some(Duration::from_millis(50)) };

/// One run of siege.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Seconds since 1970.
    pub(crate) from: f64,
    /// Seconds since 1970.
    pub(crate) to: f64,
    pub(crate) report: SiegeReport,
}

/// The load going on.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Run>>>,
}

impl Load {
    pub(crate) fn start(client: &Node, url: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (client, url) = (client.clone(), url.to_owned());
        let thread = std::thread::spawn({
            let stop = stop.clone();
            move || {
                let mut runs = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let from = now();
                    let report = SIEGE.run(&client, &url)?;
                    runs.push(Run { from, to: now(), report });
                }
                Ok(runs)
            }
        });
        Self { stop, thread }
    }

    /// Lets the run under way end and returns all.
    pub(crate) fn finish(self) -> Result<Vec<Run>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the load panicked")?
    }
}

/// Seconds since 1970, as nginx writes them.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
