use std::{collections::HashMap, sync::Arc};

use fastrand::Rng;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::{AbortHandle, JoinHandle},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    HealthChange, ProbeKey, Target,
    check::tls,
    host::HostProber,
    judge::Judge,
    pace::{Pace, Place},
    probe_loop::{ProbeLoop, ProbeReport, ProbeState, Progress},
    saved::{RestoredStreaks, Streaks},
    targets::{Start, TargetRegistry},
    tunnel::Tunnels,
};
use crate::Counters;
use lb_base::{heartbeat::Heartbeat, queue::Sender};
use lb_model::HealthCheck;

/// Queue of reports, while changes are sent.
const REPORTS: usize = 1024;

/// Upper limit: more checks would only lengthen the network card's queues.
const MOST: u64 = 4096;

/// File descriptors that a check may need: its connection, and two to probe a silent host.
const EACH: u64 = 3;

/// Runs the probes of the wanted targets.
#[derive(Debug)]
pub struct Prober {
    registry: TargetRegistry,
    running: HashMap<Arc<ProbeKey>, Running>,
    /// The origin of all places in intervals.
    origin: Instant,
    /// Counts starts of probes, so that reports from before a restart of a probe are recognised.
    starts: u64,
    room: Arc<Semaphore>,
    host_prober: HostProber,
    tls: Arc<tls::TlsConfigs>,
    tunnels: Tunnels,
    streaks: Streaks,
    reports: mpsc::Sender<ProbeReport>,
    changes: Sender<HealthChange>,
    counters: Counters,
}

#[derive(Debug)]
struct Running {
    generation: u64,
    progress: Arc<Progress>,
    state: Arc<ProbeState>,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The receiver of changes is gone.
struct ReceiverGone;

impl Prober {
    /// Probes `targets` and sends `changes`. Beats when a round is complete: every due check was made and every
    /// change was sent. Sockets belong to the network namespace of the threads that run it. The link of checks
    /// through `tunnels` is removed at the end. Continues the results of an earlier daemon in `streaks`, and shows its own
    /// there.
    ///
    /// Ends when the sender of `targets` or the receiver of `changes` is gone.
    pub fn spawn(
        targets: watch::Receiver<Arc<Vec<Target>>>,
        changes: Sender<HealthChange>,
        heartbeat: Heartbeat,
        counters: Counters,
        tunnels: Tunnels,
        streaks: Streaks,
    ) -> JoinHandle<()> {
        let room = checks_at_once();
        Self::spawn_with_room(targets, changes, heartbeat, counters, tunnels, streaks, room)
    }

    /// The same, with at most `room` concurrent checks.
    pub(super) fn spawn_with_room(
        targets: watch::Receiver<Arc<Vec<Target>>>,
        changes: Sender<HealthChange>,
        heartbeat: Heartbeat,
        counters: Counters,
        tunnels: Tunnels,
        streaks: Streaks,
        room: usize,
    ) -> JoinHandle<()> {
        let (reports, received) = mpsc::channel(REPORTS);
        let prober = Self {
            registry: TargetRegistry::default(),
            running: HashMap::new(),
            origin: Instant::now(),
            starts: 0,
            room: Arc::new(Semaphore::new(room)),
            host_prober: HostProber::open(tunnels.sources().clone()),
            tls: Arc::default(),
            tunnels,
            streaks,
            reports,
            changes,
            counters,
        };
        tokio::spawn(async move {
            let tunnels = prober.tunnels.clone();
            // A receiver that is gone needs no error.
            let _ = prober.run(targets, received, heartbeat).await;
            tunnels.close().await;
        })
    }

    async fn run(
        mut self,
        mut targets: watch::Receiver<Arc<Vec<Target>>>,
        mut reports: mpsc::Receiver<ProbeReport>,
        heartbeat: Heartbeat,
    ) -> Result<(), ReceiverGone> {
        let mut rounds = interval(heartbeat.interval());
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        targets.mark_changed();
        loop {
            tokio::select! {
                Some(report) = reports.recv() => self.record(report).await?,
                changed = targets.changed() => match changed {
                    Ok(()) => {
                        let wanted = targets.borrow_and_update().clone();
                        self.configure(&wanted).await?;
                    }
                    Err(_) => return Ok(()),
                },
                _ = rounds.tick() => if self.is_on_time() { heartbeat.beat() },
                () = self.changes.closed() => return Err(ReceiverGone),
            }
        }
    }

    async fn record(&mut self, report: ProbeReport) -> Result<(), ReceiverGone> {
        let current = self.running.get(&report.probed).map(|running| running.generation);
        if current != Some(report.generation) {
            return Ok(());
        }
        let mut changes = self.registry.record(&report.probed, report.judgement);
        changes.iter_mut().for_each(|change| change.at = report.ended.into_std());
        for (check, fails) in self.registry.checks_of(&report.probed) {
            self.counters.update_failing(check, fails);
        }
        self.send(changes).await
    }

    async fn configure(&mut self, targets: &[Target]) -> Result<(), ReceiverGone> {
        let configured = self.registry.configure(targets);
        // The first targets are those of the earlier daemon.
        let restored = if targets.is_empty() { None } else { self.streaks.take_restored() };
        for start in configured.start {
            let running = self.start(&start, restored.as_ref());
            self.running.insert(start.probed, running);
        }
        for probed in &configured.stop {
            self.running.remove(probed);
        }
        self.streaks.show(
            self.running.iter().map(|(probed, it)| (Arc::clone(probed), Arc::clone(&it.state))),
        );
        self.counters.set_failing(self.registry.failing());
        let changes = self.registry.report_all(targets);
        self.send(changes).await
    }

    /// Starts a probe, which continues the results of the one before it. A report of that one may still be queued
    /// and will be ignored, so its last judgement is set here.
    fn start(&mut self, start: &Start, restored: Option<&RestoredStreaks>) -> Running {
        self.starts += 1;
        let Start { probed, after, urgent, .. } = start;
        let check = &probed.check;
        let before = after.as_ref().and_then(|after| Some((after, self.running.get(after)?)));
        let (judge, next) = match before {
            Some((after, running)) => {
                let status = running.state.lock();
                let same = |of: &HealthCheck| (of.interval, of.fast_interval);
                let keeps_pace = same(&after.check) == same(check);
                (status.judge.carried_over(check), keeps_pace.then_some(status.next))
            }
            None => {
                let restored = restored.and_then(|restored| restored.judge(start));
                (restored.unwrap_or_else(|| Judge::new(check)), None)
            }
        };
        if let Some(judgement) = judge.last() {
            self.registry.carry_over(probed, judgement.clone());
        }
        let now = Instant::now();
        let place = Place::new(self.origin, probed);
        let next = match next {
            _ if *urgent => now,
            Some(next) => next.max(now),
            None => place.after(now, check, judge.is_in_doubt()),
        };
        let state = Arc::new(ProbeState::new(judge, next));
        let progress = Arc::new(Progress::new());
        let probe = ProbeLoop {
            probed: probed.clone(),
            generation: self.starts,
            room: self.room.clone(),
            reports: self.reports.clone(),
            progress: progress.clone(),
            state: state.clone(),
            pace: Pace::new(check, !urgent, Rng::new()),
            host_prober: self.host_prober.clone(),
            tls: self.tls.clone(),
            tunnels: self.tunnels.clone(),
            counters: self.counters.clone(),
        };
        let task = tokio::spawn(probe.run()).abort_handle();
        Running { generation: self.starts, progress, state, task }
    }

    async fn send(&self, changes: Vec<HealthChange>) -> Result<(), ReceiverGone> {
        for change in changes {
            self.changes.send(change).await.map_err(|_| ReceiverGone)?;
        }
        Ok(())
    }

    fn is_on_time(&self) -> bool {
        let now = Instant::now();
        self.running.values().all(|running| running.progress.is_on_time(now))
    }
}

/// The number of concurrent checks: half the file descriptors, the rest is for other parts of the daemon. Raises
/// the soft limit as far as necessary and possible; it is low by default for programs that use `select`.
fn checks_at_once() -> usize {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    let wanted = (2 * EACH * MOST).min(hard);
    let limit = match soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok() {
        true => wanted,
        false => soft,
    };
    usize::try_from(limit / 2 / EACH).map_or(1, |half| half.clamp(1, MOST as usize))
}
