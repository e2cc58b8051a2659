//! Asking the daemon, again and again.

use std::time::{Duration, Instant};

use spillway_proto::v1;
use tokio::{sync::mpsc, time::MissedTickBehavior};

use crate::{arguments::Options, daemon::Daemon, failure::Failure};

/// What the daemon said at one moment.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) status: v1::StatusResponse,
    pub(super) regions: v1::RegionsResponse,
    pub(super) stats: v1::StatsResponse,
}

/// A reading, or why there is none.
pub(super) type News = Result<Box<Reading>, String>;

/// Asks once.
///
/// # Errors
/// The daemon does not answer.
pub(super) async fn read(daemon: &mut Daemon) -> Result<Reading, Failure> {
    let status = daemon.status().await?;
    let regions = daemon.regions(v1::RegionsRequest::default()).await?;
    let stats = daemon.stats().await?;
    Ok(Reading { at: Instant::now(), status, regions, stats })
}

/// Asks for as long as somebody hears it; a daemon that went is looked for again.
pub(super) async fn go_on(
    options: Options,
    daemon: Daemon,
    interval: Duration,
    news: mpsc::Sender<News>,
) {
    let mut daemon = Some(daemon);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first is at once, and was asked already.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let answer = ask(&options, &mut daemon).await;
        if answer.is_err() {
            daemon = None;
        }
        let answer = answer.map(Box::new).map_err(|failure| failure.message);
        if news.send(answer).await.is_err() {
            return;
        }
    }
}

async fn ask(options: &Options, daemon: &mut Option<Daemon>) -> Result<Reading, Failure> {
    let open = match daemon {
        Some(open) => open,
        None => daemon.insert(Daemon::open(options).await?),
    };
    read(open).await
}
