use std::{collections::HashMap, sync::Arc};

use fastrand::Rng;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::{AbortHandle, JoinHandle},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    HealthChange, Probed, Target,
    check::tls,
    host::Asker,
    judge::Hearing,
    pace::{Pace, Place},
    probe_loop::{ProbeLoop, ProbeState, Progress, Report},
    targets::{Board, Start},
    tunnel::Tunnels,
};
use crate::Counters;
use lb_base::heartbeat::Heartbeat;
use lb_model::HealthCheck;

/// Reports that may wait while changes are being told.
const REPORTS: usize = 1024;

/// More would only lengthen the queues of the network card.
const MOST: u64 = 4096;

/// Descriptors that a check may hold at once: its connection, and two to ask a silent host.
const EACH: u64 = 3;

/// Runs the probes of the targets that are wanted.
#[derive(Debug)]
pub struct Prober {
    board: Board,
    running: HashMap<Arc<Probed>, Running>,
    /// Where places in intervals are counted from.
    origin: Instant,
    /// Starts so far: tells a report of a probe from one of its namesake before a restart.
    starts: u64,
    room: Arc<Semaphore>,
    asker: Asker,
    tls: Arc<tls::Shared>,
    tunnels: Tunnels,
    reports: mpsc::Sender<Report>,
    changes: mpsc::Sender<HealthChange>,
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

/// Nobody listens to changes any more.
struct Unheard;

impl Prober {
    /// Probes `targets`, as they are and as they become, and tells `changes`. Beats when a round is
    /// complete: every check that was due has been made, and every change been told. Sockets belong
    /// to the network namespace of the threads that run it. Checks are counted in `counters`; what was made for
    /// those through `tunnels` is taken away at the end.
    ///
    /// Ends when the sender of `targets` or the receiver of `changes` is gone.
    pub fn spawn(
        targets: watch::Receiver<Arc<Vec<Target>>>,
        changes: mpsc::Sender<HealthChange>,
        heartbeat: Heartbeat,
        counters: Counters,
        tunnels: Tunnels,
    ) -> JoinHandle<()> {
        Self::spawn_with_room(targets, changes, heartbeat, counters, tunnels, checks_at_once())
    }

    /// The same, with at most `room` checks under way at once.
    pub(super) fn spawn_with_room(
        targets: watch::Receiver<Arc<Vec<Target>>>,
        changes: mpsc::Sender<HealthChange>,
        heartbeat: Heartbeat,
        counters: Counters,
        tunnels: Tunnels,
        room: usize,
    ) -> JoinHandle<()> {
        let (reports, received) = mpsc::channel(REPORTS);
        let prober = Self {
            board: Board::default(),
            running: HashMap::new(),
            origin: Instant::now(),
            starts: 0,
            room: Arc::new(Semaphore::new(room)),
            asker: Asker::open(),
            tls: Arc::default(),
            tunnels,
            reports,
            changes,
            counters,
        };
        tokio::spawn(async move {
            let tunnels = prober.tunnels.clone();
            // Whoever is unheard has nothing left to do.
            let _ = prober.run(targets, received, heartbeat).await;
            tunnels.close().await;
        })
    }

    async fn run(
        mut self,
        mut targets: watch::Receiver<Arc<Vec<Target>>>,
        mut reports: mpsc::Receiver<Report>,
        heartbeat: Heartbeat,
    ) -> Result<(), Unheard> {
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
                () = self.changes.closed() => return Err(Unheard),
            }
        }
    }

    async fn record(&mut self, report: Report) -> Result<(), Unheard> {
        let current = self.running.get(&report.probed).map(|running| running.generation);
        if current != Some(report.generation) {
            return Ok(());
        }
        let changes = self.board.record(&report.probed, report.says);
        for (check, fails) in self.board.checks_of(&report.probed) {
            self.counters.update_failing(check, fails);
        }
        self.tell(changes).await
    }

    async fn configure(&mut self, targets: &[Target]) -> Result<(), Unheard> {
        let configured = self.board.configure(targets);
        for start in configured.start {
            let running = self.start(&start);
            self.running.insert(start.probed, running);
        }
        for probed in &configured.stop {
            self.running.remove(probed);
        }
        self.counters.set_failing(self.board.failing());
        let changes = self.board.tell_again(targets);
        self.tell(changes).await
    }

    /// Starts a probe, which goes on with what the one before it has come to. The report of that may be on
    /// its way and will not be taken any more, so the board hears it here.
    fn start(&mut self, start: &Start) -> Running {
        self.starts += 1;
        let Start { probed, after, urgent } = start;
        let check = &probed.check;
        let before = after.as_ref().and_then(|after| Some((after, self.running.get(after)?)));
        let (hearing, next) = match before {
            Some((after, running)) => {
                let moment = running.state.lock();
                let same = |of: &HealthCheck| (of.interval, of.fast_interval);
                let keeps_pace = same(&after.check) == same(check);
                (moment.hearing.carried_over(check), keeps_pace.then_some(moment.next))
            }
            None => (Hearing::new(check), None),
        };
        if let Some(says) = hearing.last() {
            self.board.carry_over(probed, says.clone());
        }
        let now = Instant::now();
        let place = Place::new(self.origin, probed);
        let next = match next {
            _ if *urgent => now,
            Some(next) => next.max(now),
            None => place.after(now, check, hearing.is_in_doubt()),
        };
        let state = Arc::new(ProbeState::new(hearing, next));
        let progress = Arc::new(Progress::new());
        let probe = ProbeLoop {
            probed: probed.clone(),
            generation: self.starts,
            room: self.room.clone(),
            reports: self.reports.clone(),
            progress: progress.clone(),
            state: state.clone(),
            pace: Pace::new(check, !urgent, Rng::new()),
            asker: self.asker.clone(),
            tls: self.tls.clone(),
            tunnels: self.tunnels.clone(),
            counters: self.counters.clone(),
        };
        let task = tokio::spawn(probe.run()).abort_handle();
        Running { generation: self.starts, progress, state, task }
    }

    async fn tell(&self, changes: Vec<HealthChange>) -> Result<(), Unheard> {
        for change in changes {
            self.changes.send(change).await.map_err(|_| Unheard)?;
        }
        Ok(())
    }

    fn is_on_time(&self) -> bool {
        let now = Instant::now();
        self.running.values().all(|running| running.progress.is_on_time(now))
    }
}

/// Checks that may be under way at once: as many as half the file descriptors allow; the other half
/// is for the rest of the daemon. Raises the soft limit, which is low for the sake of programs that
/// use `select`, as far as that needs and the hard one lets it.
fn checks_at_once() -> usize {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    let wanted = (2 * EACH * MOST).min(hard);
    let limit = match soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok() {
        true => wanted,
        false => soft,
    };
    usize::try_from(limit / 2 / EACH).map_or(1, |half| half.clamp(1, MOST as usize))
}
