//! What writes the file.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    HealthState, HoldDowns, Snapshot,
    file::{self, MOST_ENTRIES},
};
use lb_base::{
    background::Job,
    boot_clock::BootClock,
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
    loops::{SECOND, ticks},
};
use lb_health::Streaks;

/// Subject of the condition that the file cannot be written.
const SUBJECT: Subject = Subject::new(ConditionReason::HealthState, "health state");

/// How old the file becomes while nothing changes: the next daemon must know that it is of a moment ago.
const REFRESH: Duration = Duration::from_secs(10);

/// When a write that has not ended is a condition.
const LONG: Duration = Duration::from_secs(10);

/// How long a daemon that stops waits for the last write.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The task that writes the file until it is stopped.
#[derive(Debug)]
pub struct Keeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl HealthState {
    /// Writes the file from now on: when something changed, once a second at most.
    pub fn keep(self) -> Keeper {
        let Self { streaks, hold_downs, path, conditions } = self;
        let writer = Writer { path, streaks, hold_downs, written: None };
        let (stop, stopped) = oneshot::channel();
        Keeper { stop, task: tokio::spawn(run(writer, conditions, stopped)) }
    }
}

impl Keeper {
    /// Writes it for the last time.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// A write that goes on beside the task.
struct Write {
    job: Job<(Writer, io::Result<()>)>,
    began: Instant,
}

impl Write {
    fn start(mut writer: Writer, is_last: bool) -> Self {
        let write = move || {
            let written = writer.write(is_last);
            (writer, written)
        };
        Self { job: Job::start(write), began: Instant::now() }
    }
}

async fn run(writer: Writer, conditions: Conditions, mut stopped: oneshot::Receiver<()>) {
    let mut ticks = ticks(SECOND);
    let mut write = Write::start(writer, false);
    let settle = |written: &io::Result<()>| match written {
        Ok(()) => conditions.end(&SUBJECT),
        Err(error) => report(&conditions, &error_chain::message(error)),
    };
    loop {
        tokio::select! {
            // Also if whoever would stop it is gone.
            _ = &mut stopped => break,
            _ = ticks.tick() => {}
        }
        if !write.job.is_done() {
            if write.began.elapsed() > LONG {
                report(&conditions, "it does not end");
            }
            continue;
        }
        // The runtime is being shut down.
        let Ok((writer, written)) = write.job.done().await else { return };
        settle(&written);
        write = Write::start(writer, false);
    }
    if let Ok(Ok((writer, _))) = write.job.within(STOP_GRACE).await {
        let last = Write::start(writer, true).job.within(STOP_GRACE).await;
        if let Ok(Ok((_, written))) = last {
            settle(&written);
        }
    }
}

fn report(conditions: &Conditions, cause: &str) {
    let cause = format!("not written, so a restart forgets streaks of checks and holds: {cause}");
    conditions.begin(&SUBJECT, &cause);
}

/// Writes the file, on a thread that may wait for it.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) streaks: Streaks,
    pub(super) hold_downs: HoldDowns,
    /// What was written last, and when.
    pub(super) written: Option<(Instant, Snapshot)>,
}

impl Writer {
    /// Writes it if something changed or it is old, and in any case if this is the last time.
    pub(super) fn write(&mut self, is_last: bool) -> io::Result<()> {
        let clock = BootClock::read()?;
        // Before there is a configuration, the file of an earlier daemon stays.
        let (Some(streaks), Some(hold_downs)) =
            (self.streaks.now(MOST_ENTRIES), self.hold_downs.now(MOST_ENTRIES))
        else {
            return Ok(());
        };
        let snapshot = Snapshot { streaks, hold_downs };
        let is_written = self
            .written
            .as_ref()
            .is_some_and(|(at, written)| *written == snapshot && at.elapsed() < REFRESH);
        if is_written && !is_last {
            return Ok(());
        }
        file::write(&self.path, &snapshot, &clock)?;
        self.written = Some((clock.instant, snapshot));
        Ok(())
    }
}
