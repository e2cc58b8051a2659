//! The loop that probes one (address, check definition).

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, sleep_until, timeout_at},
};
use tracing::{debug, warn};

use super::{
    Probed,
    check::{
        Checked, Destination, Failure, Heard, NoConnection, Outcome, check,
        tls::{Shared, Tls},
    },
    host::Asker,
    judge::Hearing,
    pace::Pace,
    targets::Judgement,
    tunnel::{Lane, NoEntrance, Tunnels},
};
use crate::counters::{self, Counters};

/// How late a loop may be before it counts as standing still: far above what a busy machine delays,
/// far below the patience of a service manager.
const GRACE: Duration = Duration::from_secs(1);

/// Not waiting for time: something else that is watched must go on first.
const EXCUSED: u64 = u64::MAX;

/// What a probe says from now on.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) probed: Arc<Probed>,
    /// Which start of this probe it comes from.
    pub(super) generation: u64,
    pub(super) says: Judgement,
}

/// How far a probe is. Its loop alone changes it; a probe that asks the same after an edit goes on from it.
#[derive(Debug)]
pub(super) struct ProbeState(Mutex<Moment>);

/// What came of the checks so far, and when the next one begins.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) hearing: Hearing,
    pub(super) next: Instant,
}

impl ProbeState {
    pub(super) fn new(hearing: Hearing, next: Instant) -> Self {
        Self(Mutex::new(Moment { hearing, next }))
    }

    /// It is held for no longer than it takes to count.
    pub(super) fn lock(&self) -> MutexGuard<'_, Moment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    pub(super) state: Arc<ProbeState>,
    pub(super) pace: Pace,
    pub(super) asker: Asker,
    pub(super) tls: Arc<Shared>,
    pub(super) tunnels: Tunnels,
    pub(super) counters: Counters,
}

impl ProbeLoop {
    /// Checks until nobody listens.
    pub(super) async fn run(mut self) {
        let (probed, room) = (self.probed.clone(), self.room.clone());
        let definition = &probed.check;
        let tls = Tls::of(definition, &self.tls);
        let (address, through) = (self.probed.address, self.probed.through);
        let mut lane = through.map(|through| self.tunnels.lane(address, through));
        // A check that could not be made keeps its promise open until one is made.
        let mut made = true;
        let mut planned = self.state.lock().next;
        self.progress.expect_by(planned);
        sleep_until(planned).await;
        loop {
            if made {
                self.progress.excuse();
            }
            let Ok(permit) = room.acquire().await else { return };
            let started = Instant::now();
            self.counters.late(started.saturating_duration_since(planned));
            if made {
                self.progress.expect_by(started + definition.timeout);
            }
            let entrance = destination(address, definition.port, lane.as_mut());
            let checked = match timeout_at(started + definition.timeout, entrance).await {
                Ok(Ok(to)) => check(to, definition, &self.asker, tls.as_ref()).await,
                Ok(Err(outcome)) => Checked::only(outcome),
                Err(late) => Checked::only(Outcome::NotMade(late.into())),
            };
            let Checked { outcome, heard, leftover } = checked;
            let answer = self.answer(outcome);
            made = answer.is_some();
            let (news, wake) = self.take(started, answer, heard);
            if let Some(says) = news
                && self.report(says).await.is_err()
            {
                return;
            }
            if made {
                self.progress.expect_by(wake);
            }
            if let Some(leftover) = leftover {
                leftover.close(wake).await;
            }
            drop(permit);
            sleep_until(wake).await;
            planned = wake;
        }
    }

    /// Takes what came of the check that began at `started`; what is to be said now, and when the next
    /// one begins.
    fn take(
        &mut self,
        started: Instant,
        answer: Option<Result<(), Failure>>,
        heard: Option<Heard>,
    ) -> (Option<Judgement>, Instant) {
        let mut state = self.state.lock();
        let news = answer.and_then(|answer| state.hearing.after(answer, heard));
        state.next = self.pace.next(started, state.hearing.is_in_doubt()).max(Instant::now());
        (news, state.next)
    }

    /// What the outcome says of the backend; one that says nothing is no completed check either, so
    /// that a daemon that cannot check any more is seen to stand still.
    fn answer(&self, outcome: Outcome) -> Option<Result<(), Failure>> {
        let Probed { address, check, .. } = &*self.probed;
        self.counters.probed(match &outcome {
            Outcome::Passed => counters::Probed::Passed,
            Outcome::Failed(_) => counters::Probed::Failed,
            Outcome::NotMade(_) => counters::Probed::NotMade,
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

/// Where a check goes.
///
/// # Errors
/// What the check comes to without going there.
async fn destination(
    backend: IpAddr,
    port: u16,
    lane: Option<&mut Lane>,
) -> Result<Destination, Outcome> {
    let Some(lane) = lane else { return Ok(Destination::of(SocketAddr::new(backend, port))) };
    match lane.entrance().await {
        Ok(entrance) => Ok(Destination {
            host: backend,
            server: SocketAddr::new(lane.vip(), port),
            entrance: Some(entrance),
        }),
        Err(NoEntrance::Shortage(error)) => Err(Outcome::NotMade(error)),
        Err(NoEntrance::Unreachable(why)) => Err(Outcome::Failed(Failure::NoConnection {
            why: NoConnection::NoWay(why),
            sign: None,
        })),
        Err(NoEntrance::Barred(why)) => Err(Outcome::Failed(Failure::NoEntrance(why))),
    }
}

/// What a loop has promised: to show itself again by then.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// Microseconds after `began`.
    due: AtomicU64,
}

impl Progress {
    pub(super) fn new() -> Self {
        let progress = Self { began: Instant::now(), due: AtomicU64::new(EXCUSED) };
        progress.expect_by(progress.began);
        progress
    }

    /// The loop will be further by `time`.
    pub(super) fn expect_by(&self, time: Instant) {
        let due = (time + GRACE).saturating_duration_since(self.began).as_micros();
        self.due.store(u64::try_from(due).unwrap_or(EXCUSED), Ordering::Relaxed);
    }

    /// The loop waits for its turn, behind others that have promised.
    pub(super) fn excuse(&self) {
        self.due.store(EXCUSED, Ordering::Relaxed);
    }

    /// Whether the promise is kept so far.
    pub(super) fn is_on_time(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.began).as_micros();
        u128::from(self.due.load(Ordering::Relaxed)) >= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_promise_is_broken_one_second_after_its_time() {
        let progress = Progress::new();
        let start = progress.began;
        let at = |seconds| start + Duration::from_secs_f64(seconds);
        assert!(progress.is_on_time(at(1.0)) && !progress.is_on_time(at(1.1)));
        progress.expect_by(at(60.0));
        assert!(progress.is_on_time(at(61.0)) && !progress.is_on_time(at(61.1)));
        progress.excuse();
        assert!(progress.is_on_time(at(1e6)));
    }
}
