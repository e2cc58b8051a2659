//! The loop that probes one (address, check definition).

use std::sync::Arc;

use fastrand::Rng;
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, sleep_until},
};
use tracing::{debug, warn};

use super::{
    Health, Probed,
    board::Judgement,
    check::{
        Outcome, check,
        tls::{Shared, Tls},
    },
    host::Asker,
    pace::Pace,
    progress::Progress,
    streak::Streak,
};
use crate::metrics::{self, Live};

/// What a probe says from now on.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) probed: Arc<Probed>,
    /// Which start of this probe it comes from.
    pub(super) generation: u64,
    pub(super) says: Judgement,
}

/// One probe.
#[derive(Debug)]
pub(super) struct ProbeLoop {
    pub(super) probed: Arc<Probed>,
    pub(super) generation: u64,
    /// Checks that may be under way at once, of all probes.
    pub(super) room: Arc<Semaphore>,
    pub(super) reports: mpsc::Sender<Report>,
    pub(super) progress: Arc<Progress>,
    pub(super) asker: Asker,
    pub(super) tls: Arc<Shared>,
    pub(super) live: Live,
}

/// What a probe has said, and what becomes of it.
#[derive(Debug)]
struct Said {
    streak: Streak,
    last: Option<Judgement>,
}

impl Said {
    /// Takes the next result; what is to be said now, if it is news: another health, or while that
    /// is bad another reason for it.
    fn after(&mut self, result: Judgement) -> Option<Judgement> {
        let Judgement { health, why } = result;
        let failed = health != Health::Passing;
        let news = match (self.streak.record(health), &self.last) {
            (Some(health), _) => health,
            (None, Some(last)) if failed && last.health != Health::Passing && last.why != why => {
                last.health
            }
            _ => return None,
        };
        self.last.replace(Judgement { health: news, why });
        self.last.clone()
    }
}

impl ProbeLoop {
    /// Checks until nobody listens.
    pub(super) async fn run(self) {
        let definition = &self.probed.check;
        let tls = Tls::of(definition, &self.tls);
        let mut said = Said { streak: Streak::new(definition.rise, definition.fall), last: None };
        let mut pace = Pace::new(definition, Rng::new());
        // A check that could not be made keeps its promise open until one is made.
        let mut made = true;
        let mut planned = Instant::now();
        loop {
            if made {
                self.progress.excuse();
            }
            let Ok(permit) = self.room.acquire().await else { return };
            let started = Instant::now();
            self.live.late(started.saturating_duration_since(planned));
            if made {
                self.progress.expect_by(started + definition.timeout);
            }
            let address = self.probed.address;
            let (outcome, leftover) = check(address, definition, &self.asker, tls.as_ref()).await;
            let result = self.judge(outcome);
            made = result.is_some();
            let news = result.and_then(|result| said.after(result));
            let wake = pace.next(started, said.streak.is_in_doubt()).max(Instant::now());
            if let Some(says) = news
                && self.report(says).await.is_err()
            {
                return;
            }
            if made {
                self.progress.expect_by(wake);
            }
            if let Some(leftover) = leftover {
                leftover.farewell(wake).await;
            }
            drop(permit);
            sleep_until(wake).await;
            planned = wake;
        }
    }

    /// What the outcome says of the backend; one that says nothing is no completed check either, so
    /// that a daemon that cannot check any more is seen to stand still.
    fn judge(&self, outcome: Outcome) -> Option<Judgement> {
        let Probed { address, check } = &*self.probed;
        self.live.probed(match &outcome {
            Outcome::Passed => metrics::Probed::Passed,
            Outcome::Failed(_) => metrics::Probed::Failed,
            Outcome::NotMade(_) => metrics::Probed::NotMade,
        });
        match outcome {
            Outcome::Passed => Some(Judgement { health: Health::Passing, why: String::new() }),
            Outcome::Failed(failure) => {
                debug!("health: {address} port {}: {failure}", check.port);
                Some(Judgement { health: failure.health(), why: failure.to_string() })
            }
            Outcome::NotMade(error) => {
                warn!("health: {address} port {}: check not made: {error}", check.port);
                None
            }
        }
    }

    async fn report(&self, says: Judgement) -> Result<(), mpsc::error::SendError<Report>> {
        let (probed, generation) = (self.probed.clone(), self.generation);
        self.reports.send(Report { probed, generation, says }).await
    }
}
