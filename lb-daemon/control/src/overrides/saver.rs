//! What writes the file of overrides, beside the loop.

use std::{
    future, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::timeout};

use super::file;
use crate::members::clock;
use lb_base::{
    background::Job,
    conditions::{Conditions, OVERRIDES},
    error_chain,
};
use lb_model::overrides::Overrides;

/// How long an answer waits for the disk. Also the time after which a disk counts as one that does not answer.
pub(super) const DISK_WAIT: Duration = Duration::from_secs(1);
const SILENT: &str = "the disk does not answer";

/// What the disk has.
#[derive(Clone, Debug, Default)]
pub(super) struct Saved {
    /// The revision that is stored.
    revision: u64,
    /// The last write that failed since, with the cause.
    failed: Option<(u64, String)>,
}

impl Saved {
    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// What became of a revision; `None`: it is not known yet.
    fn of(&self, revision: u64) -> Option<Result<(), String>> {
        if self.revision >= revision {
            return Some(Ok(()));
        }
        let failed = self.failed.as_ref().filter(|(failed, _)| *failed >= revision);
        failed.map(|(_, cause)| Err(cause.clone()))
    }
}

type Written = (u64, io::Result<()>);

/// Writes one revision at a time, the latest last, and tries again until it is written.
#[derive(Debug)]
pub(super) struct Saver {
    path: PathBuf,
    conditions: Conditions,
    writing: Option<(Job<Written>, Instant)>,
    /// The latest, if it is neither written nor being written.
    next: Option<Arc<Overrides>>,
    saved: watch::Sender<Saved>,
}

impl Saver {
    /// `revision` is stored.
    pub(super) fn new(path: PathBuf, conditions: Conditions, revision: u64) -> Self {
        let (saved, _) = watch::channel(Saved { revision, failed: None });
        Self { path, conditions, writing: None, next: None, saved }
    }

    pub(super) fn saved(&self) -> Saved {
        self.saved.borrow().clone()
    }

    /// Begins to write a revision.
    pub(super) fn save(&mut self, overrides: &Arc<Overrides>) {
        self.next = Some(Arc::clone(overrides));
        self.begin();
    }

    /// Waits until a write has ended. It may be cancelled.
    pub(super) async fn ended(&mut self) {
        let Some((job, _)) = &mut self.writing else { return future::pending().await };
        let written = job.done().await;
        self.writing = None;
        // The runtime is being shut down.
        let Ok((revision, result)) = written else { return };
        match result {
            Ok(()) => {
                let was_failing = self.saved.borrow().failed.is_some();
                self.saved.send_replace(Saved { revision, failed: None });
                if self.next.is_none() {
                    self.conditions.end(&OVERRIDES);
                }
                if was_failing {
                    tracing::info!(revision, "overrides of revision {revision} are stored");
                }
                self.begin();
            }
            Err(error) => {
                let cause = error_chain::message(&error);
                self.saved.send_modify(|saved| saved.failed = Some((revision, cause.clone())));
                self.report(&cause);
            }
        }
    }

    /// Tries again what failed; `latest` is in force. To be called once a second.
    pub(super) fn follow(&mut self, latest: &Arc<Overrides>) {
        if self.is_silent() {
            self.report(SILENT);
        }
        if latest.revision() > self.saved.borrow().revision && self.writing.is_none() {
            self.save(latest);
        }
    }

    /// What becomes of a revision: an answer comes after [`DISK_WAIT`] at the latest.
    pub(super) fn outcome(
        &self,
        revision: u64,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let (mut saved, is_silent) = (self.saved.subscribe(), self.is_silent());
        let limit = if is_silent { Duration::ZERO } else { DISK_WAIT };
        async move {
            let known = saved.wait_for(|saved| saved.of(revision).is_some());
            match timeout(limit, known).await {
                Ok(Ok(saved)) => saved.of(revision).unwrap_or(Ok(())),
                Ok(Err(_)) => Err("the daemon is stopping".into()),
                Err(_) => Err(SILENT.into()),
            }
        }
    }

    /// The last attempt of a daemon that stops.
    pub(super) async fn save_at_last(&mut self, latest: &Arc<Overrides>) {
        let all = async {
            while latest.revision() > self.saved.borrow().revision {
                if self.writing.is_none() {
                    self.save(latest);
                }
                self.ended().await;
                if self.saved.borrow().failed.is_some() {
                    break;
                }
            }
        };
        let _silent = timeout(DISK_WAIT, all).await;
        let (revision, stored) = (latest.revision(), self.saved.borrow().revision);
        if stored < revision {
            tracing::error!(
                revision,
                stored,
                "overrides of revision {revision} were not stored and are lost: the next start begins with those of \
                 revision {stored}"
            );
        }
    }

    fn begin(&mut self) {
        if self.writing.is_some() {
            return;
        }
        let Some(overrides) = self.next.take() else { return };
        let path = self.path.clone();
        let write = move || (overrides.revision(), file::write(&path, &overrides));
        self.writing = Some((Job::start(write), clock()));
    }

    /// Whether the disk takes long to answer.
    fn is_silent(&self) -> bool {
        self.writing
            .as_ref()
            .is_some_and(|(_, began)| clock().saturating_duration_since(*began) >= DISK_WAIT)
    }

    fn report(&self, cause: &str) {
        let stored = self.saved.borrow().revision;
        let cause = format!(
            "in force, but in memory only: {cause}; stored as soon as the disk takes them, and a restart before that \
             begins with those of revision {stored}"
        );
        self.conditions.begin(&OVERRIDES, &cause);
    }
}
