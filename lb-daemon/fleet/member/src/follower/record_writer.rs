//! What writes the record of the membership, beside the follower: nothing that is in force waits for a disk that does not answer.

use std::{future::pending, path::PathBuf, time::Duration};

use lb_base::conditions::{ConditionReason, Conditions, Subject};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::task::TaskTracker;

use super::RETRY;
use crate::record::{MembershipRecord, RecordError};

/// Subject of the condition that what the fleet has in force is not stored.
pub(super) const FLEET_RECORD: Subject = Subject::new(ConditionReason::Store, "fleet record");

/// After so long a disk counts as one that does not answer.
const DISK_WAIT: Duration = Duration::from_secs(1);

/// Writes one record at a time.
pub(super) struct RecordWriter {
    directory: PathBuf,
    conditions: Conditions,
    /// Waits for what cannot be cancelled.
    tasks: TaskTracker,
    /// As it is on disk.
    saved: Option<MembershipRecord>,
    writing: Option<Writing>,
    /// When a record that could not be written is tried again.
    retry_at: Option<Instant>,
}

struct Writing {
    record: MembershipRecord,
    job: JoinHandle<Result<(), RecordError>>,
    silent_from: Instant,
    is_silent: bool,
}

impl RecordWriter {
    pub(super) const fn new(
        directory: PathBuf,
        conditions: Conditions,
        tasks: TaskTracker,
        saved: MembershipRecord,
    ) -> Self {
        Self { directory, conditions, tasks, saved: Some(saved), writing: None, retry_at: None }
    }

    /// Begins to store the record, if it is another one than before and no write is under way.
    pub(super) fn save(&mut self, record: &MembershipRecord) {
        let is_busy = self.writing.is_some() || self.retry_at.is_some();
        if is_busy || self.saved.as_ref() == Some(record) {
            return;
        }
        let (record, directory) = (record.clone(), self.directory.clone());
        // If this is not waited for, leaving waits for it: the file must not come back after that.
        let write = {
            let record = record.clone();
            move || record.write(&directory)
        };
        let job = self.tasks.spawn_blocking(write);
        let silent_from = Instant::now() + DISK_WAIT;
        self.writing = Some(Writing { record, job, silent_from, is_silent: false });
    }

    /// Whether an answer of the disk is expected soon.
    pub(super) fn is_awaited(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| !writing.is_silent)
    }

    /// Waits until a write has ended, the disk counts as silent, or it is time to write again. It may be cancelled.
    pub(super) async fn changed(&mut self) {
        let Some(writing) = &mut self.writing else {
            match self.retry_at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
            self.retry_at = None;
            return;
        };
        let ended = match writing.is_silent {
            true => (&mut writing.job).await,
            false => match timeout_at(writing.silent_from, &mut writing.job).await {
                Ok(ended) => ended,
                Err(_) => {
                    writing.is_silent = true;
                    let cause = "the disk does not answer: what the fleet has is followed, and not stored yet";
                    return self.conditions.begin(&FLEET_RECORD, cause);
                }
            },
        };
        let Some(Writing { record, .. }) = self.writing.take() else { return };
        match ended {
            Ok(Ok(())) => {
                self.conditions.end(&FLEET_RECORD);
                self.saved = Some(record);
            }
            Ok(Err(error)) => {
                tracing::debug!("what the fleet has in force here is not stored: {error}");
                self.conditions.begin(&FLEET_RECORD, &error.to_string());
                self.retry_at = Some(Instant::now() + RETRY);
            }
            // The runtime is being shut down.
            Err(_) => {}
        }
    }
}
