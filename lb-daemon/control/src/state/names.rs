//! The directory of names for the command line is written beside the loop: an apply is complete without it.

use std::{io, path::PathBuf, time::Duration};

use lb_base::{
    background::Job,
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};
use lb_maps::directory::{Directory, DirectoryError};

/// Subject of the condition about the directory.
const SUBJECT: Subject = Subject::new(ConditionReason::Names, "names for the command line");

/// How long an apply waits for it, so that tables show the names of what was just applied.
const WAIT: Duration = Duration::from_secs(1);

type Written = (Directory, Result<(), DirectoryError>);

/// Writes one directory at a time, the latest last, and tries again until it is written.
#[derive(Debug)]
pub(super) struct Names {
    state_directory: PathBuf,
    conditions: Conditions,
    running: Option<Job<Written>>,
    /// The latest, if it is neither written nor being written.
    next: Option<Directory>,
}

impl Names {
    pub(super) fn new(state_directory: PathBuf, conditions: Conditions) -> Self {
        Self { state_directory, conditions, running: None, next: None }
    }

    /// Waits for up to [`WAIT`] until the directory is written; not at all while an earlier one is being written.
    pub(super) async fn write(&mut self, directory: Directory) {
        self.next = Some(directory);
        self.follow().await;
        if self.next.is_some() {
            return;
        }
        let Some(job) = self.running.take() else { return };
        match job.within(WAIT).await {
            Ok(written) => self.settle(written),
            Err(job) => {
                self.running = Some(job);
                self.begin("the disk does not answer");
            }
        }
    }

    /// Takes the result of a job that is done, and begins the next one. To be called once a second.
    pub(super) async fn follow(&mut self) {
        if let Some(mut job) = self.running.take_if(|job| job.is_done()) {
            let written = job.done().await;
            self.settle(written);
        }
        if self.running.is_none()
            && let Some(directory) = self.next.take()
        {
            let state_directory = self.state_directory.clone();
            let write = move || {
                let written = directory.write(&state_directory);
                (directory, written)
            };
            self.running = Some(Job::start(write));
        }
    }

    fn settle(&mut self, written: io::Result<Written>) {
        match written {
            Ok((_, Ok(()))) => self.conditions.end(&SUBJECT),
            Ok((directory, Err(error))) => {
                self.begin(&error_chain::message(&error));
                self.next.get_or_insert(directory);
            }
            Err(error) => self.begin(&error_chain::message(&error)),
        }
    }

    fn begin(&self, cause: &str) {
        let cause = format!("not up to date, so tables may show wrong names: {cause}");
        self.conditions.begin(&SUBJECT, &cause);
    }
}
