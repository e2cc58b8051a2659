//! The loop of one probe: one address and one check definition.

use std::{
    io,
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
    ProbeKey,
    check::{
        CheckResult, Failure, LineResult, NoConnection, Outcome, check,
        tls::{Tls, TlsConfigs},
    },
    connect::Destination,
    host::HostProber,
    judge::Judge,
    pace::Pace,
    streak::StreakCounts,
    targets::Judgement,
    tunnel::{TunnelError, TunnelPath, Tunnels},
};
use crate::counters::{self, Counters};
use lb_net::SourceRules;

/// How late a loop may be before it counts as stuck: far above the delays of a busy machine, far below the service
/// manager's watchdog timeout.
const GRACE: Duration = Duration::from_secs(1);

/// The loop waits for something else that is watched.
const SUSPENDED: u64 = u64::MAX;

/// A probe's new judgement.
#[derive(Debug)]
pub(super) struct ProbeReport {
    pub(super) probed: Arc<ProbeKey>,
    /// The start of the probe that it comes from.
    pub(super) generation: u64,
    pub(super) judgement: Judgement,
    /// When the check ended.
    pub(super) ended: Instant,
}

/// A probe's state. Only its loop changes it; after an edit, a probe that asks the same continues from it.
#[derive(Debug)]
pub(super) struct ProbeState {
    status: Mutex<ProbeStatus>,
    /// What a restart must not forget, packed: whoever reads it holds up no probe.
    counts: AtomicU64,
}

/// The results so far, and when the next check starts.
#[derive(Debug)]
pub(super) struct ProbeStatus {
    pub(super) judge: Judge,
    pub(super) next: Instant,
}

impl ProbeState {
    pub(super) fn new(judge: Judge, next: Instant) -> Self {
        let counts = AtomicU64::new(StreakCounts::pack(judge.counts()));
        Self { status: Mutex::new(ProbeStatus { judge, next }), counts }
    }

    /// Held only while a result is recorded.
    pub(super) fn lock(&self) -> MutexGuard<'_, ProbeStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> Option<StreakCounts> {
        StreakCounts::unpack(self.counts.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
pub(super) struct ProbeLoop {
    pub(super) probed: Arc<ProbeKey>,
    pub(super) generation: u64,
    /// Permits of concurrent checks, shared by all probes.
    pub(super) room: Arc<Semaphore>,
    pub(super) reports: mpsc::Sender<ProbeReport>,
    pub(super) progress: Arc<Progress>,
    pub(super) state: Arc<ProbeState>,
    pub(super) pace: Pace,
    pub(super) host_prober: HostProber,
    pub(super) tls: Arc<TlsConfigs>,
    pub(super) tunnels: Tunnels,
    pub(super) counters: Counters,
}

impl ProbeLoop {
    /// Checks until the receiver of reports is gone.
    pub(super) async fn run(mut self) {
        let (probed, room) = (self.probed.clone(), self.room.clone());
        let definition = &probed.check;
        let tls = Tls::of(definition, &self.tls);
        let (address, through) = (self.probed.address, self.probed.tunnel);
        let mut path = through.map(|through| self.tunnels.path(address, through));
        // If a check could not be made, the deadline stays until one is made, so that the watchdog sees it.
        let mut made = true;
        let mut planned = self.state.lock().next;
        self.progress.expect_by(planned);
        sleep_until(planned).await;
        loop {
            if made {
                self.progress.suspend();
            }
            let Ok(permit) = room.acquire().await else { return };
            let started = Instant::now();
            self.counters.late(started.saturating_duration_since(planned));
            if made {
                self.progress.expect_by(started + definition.timeout);
            }
            let sources = self.tunnels.sources();
            let destination = destination(address, definition.port, path.as_mut(), sources);
            let checked = match timeout_at(started + definition.timeout, destination).await {
                Ok(Ok(to)) => check(to, definition, &self.host_prober, tls.as_ref()).await,
                Ok(Err(outcome)) => CheckResult::only(outcome),
                Err(late) => CheckResult::only(Outcome::NotMade(late.into())),
            };
            let ended = Instant::now();
            let CheckResult { outcome, line, leftover } = checked;
            let answer = self.answer(outcome);
            made = answer.is_some();
            let (news, wake) = self.take(started, answer, line);
            if let Some(judgement) = news
                && self.report(judgement, ended).await.is_err()
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

    /// Records the result of the check that began at `started`. Returns the judgement if it changed, and when the
    /// next check starts.
    fn take(
        &mut self,
        started: Instant,
        answer: Option<Result<(), Failure>>,
        line: Option<LineResult>,
    ) -> (Option<Judgement>, Instant) {
        let mut state = self.state.lock();
        let news = answer.and_then(|answer| state.judge.record(answer, line));
        self.state.counts.store(StreakCounts::pack(state.judge.counts()), Ordering::Relaxed);
        state.next = self.pace.next(started, state.judge.is_in_doubt()).max(Instant::now());
        (news, state.next)
    }

    /// The check's answer. `None` if it could not be made: it does not count as completed, so that the watchdog
    /// notices a daemon that cannot check.
    fn answer(&self, outcome: Outcome) -> Option<Result<(), Failure>> {
        let ProbeKey { address, check, .. } = &*self.probed;
        self.counters.probed(match &outcome {
            Outcome::Passed => counters::CountedResult::Passed,
            Outcome::Failed(_) => counters::CountedResult::Failed,
            Outcome::NotMade(_) => counters::CountedResult::NotMade,
        });
        match outcome {
            Outcome::Passed => Some(Ok(())),
            Outcome::Failed(failure) => {
                debug!("health: {address} port {}: {failure}", check.port);
                Some(Err(failure))
            }
            Outcome::NotMade(error) => {
                warn!(
                    "health: {address} port {}: check not possible on this host: {error}",
                    check.port
                );
                None
            }
        }
    }

    async fn report(
        &self,
        judgement: Judgement,
        ended: Instant,
    ) -> Result<(), mpsc::error::SendError<ProbeReport>> {
        let (probed, generation) = (self.probed.clone(), self.generation);
        self.reports.send(ProbeReport { probed, generation, judgement, ended }).await
    }
}

/// Where a check goes.
///
/// # Errors
/// The outcome of a check that has no destination.
async fn destination(
    backend: IpAddr,
    port: u16,
    path: Option<&mut TunnelPath>,
    sources: &SourceRules,
) -> Result<Destination, Outcome> {
    let Some(path) = path else {
        let source = sources.of_own_packets(backend).await;
        let source = source.map_err(|error| Outcome::NotMade(io::Error::other(error)))?;
        return Ok(Destination::direct(SocketAddr::new(backend, port), source));
    };
    match path.socket_options().await {
        Ok(options) => {
            let server = SocketAddr::new(path.vip(), port);
            Ok(Destination { host: backend, server, options })
        }
        Err(TunnelError::Shortage(error)) => Err(Outcome::NotMade(error)),
        Err(TunnelError::NoRoute(why)) => Err(Outcome::Failed(Failure::NoConnection {
            why: NoConnection::NoRoute(why),
            sign: None,
            vip: None,
        })),
        Err(TunnelError::Unusable(why)) => Err(Outcome::Failed(Failure::NoTunnel(why))),
    }
}

/// The deadline by which a loop must advance.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// Microseconds after `began`.
    due: AtomicU64,
}

impl Progress {
    pub(super) fn new() -> Self {
        let progress = Self { began: Instant::now(), due: AtomicU64::new(SUSPENDED) };
        progress.expect_by(progress.began);
        progress
    }

    /// Sets the deadline.
    pub(super) fn expect_by(&self, time: Instant) {
        let due = (time + GRACE).saturating_duration_since(self.began).as_micros();
        self.due.store(u64::try_from(due).unwrap_or(SUSPENDED), Ordering::Relaxed);
    }

    /// Suspends the deadline while the loop waits for others that have one.
    pub(super) fn suspend(&self) {
        self.due.store(SUSPENDED, Ordering::Relaxed);
    }

    /// Whether the deadline has not passed.
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
        progress.suspend();
        assert!(progress.is_on_time(at(1e6)));
    }
}
