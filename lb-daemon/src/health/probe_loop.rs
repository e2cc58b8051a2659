//! The loop that probes one (address, check definition).

use std::sync::Arc;

use fastrand::Rng;
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, sleep_until},
};
use tracing::{debug, warn};

use super::{
    Probed,
    board::Judgement,
    check::{
        Checked, Failure, Outcome, check,
        tls::{Shared, Tls},
    },
    hearing::Hearing,
    host::Asker,
    pace::Pace,
    progress::Progress,
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

impl ProbeLoop {
    /// Checks until nobody listens.
    pub(super) async fn run(self) {
        let definition = &self.probed.check;
        let tls = Tls::of(definition, &self.tls);
        let mut hearing = Hearing::new(definition);
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
            let checked = check(address, definition, &self.asker, tls.as_ref()).await;
            let Checked { outcome, heard, leftover } = checked;
            let answer = self.answer(outcome);
            made = answer.is_some();
            let news = answer.and_then(|answer| hearing.after(answer, heard));
            let wake = pace.next(started, hearing.is_in_doubt()).max(Instant::now());
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
    fn answer(&self, outcome: Outcome) -> Option<Result<(), Failure>> {
        let Probed { address, check } = &*self.probed;
        self.live.probed(match &outcome {
            Outcome::Passed => metrics::Probed::Passed,
            Outcome::Failed(_) => metrics::Probed::Failed,
            Outcome::NotMade(_) => metrics::Probed::NotMade,
        });
        match outcome {
            Outcome::Passed => Some(Ok(())),
            Outcome::Failed(failure) => {
                debug!("health: {address} port {}: {failure}", check.port);
                Some(Err(failure))
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
