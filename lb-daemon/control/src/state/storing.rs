//! The store follows the configuration in force.
//!
//! While the store cannot be written, applies are refused, except those that only drain: whoever takes traffic away from
//! a backend must not have to repair a disk first. A drain is in force in memory, is a condition, and is stored by a retry
//! every second. A daemon that is restarted before that begins with what was stored.

use std::{
    collections::VecDeque,
    pin::pin,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{State, apply::leave_out_key, drains::only_drains};
use crate::{
    command::{Apply, ApplyRequest, Refusal},
    members::clock,
    store::{Generation, StoreError},
};
use lb_base::{
    conditions::STORE,
    error_chain,
    queue::{self, Receiver},
};
use lb_config::slots_by_pool;

/// How long a drain waits for the disk. Also the time after which a disk counts as one that does not answer.
const DISK_WAIT: Duration = Duration::from_secs(1);
/// How long a retry holds the loop up.
const RETRY_WAIT: Duration = Duration::from_millis(100);
/// Time between two attempts to write a store whose last write failed, so that its condition ends without an apply.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);
/// How many requests are taken from their queue while an apply waits for the disk, to find drains among them.
const MAX_WAITING: usize = 1000;
const SILENT: &str = "the disk does not answer";

/// A generation that is in force and not stored.
#[derive(Debug)]
pub(super) struct Unstored {
    pub(super) generation: Generation,
    cause: String,
}

/// A request that was taken from its queue while an apply waited for the disk. It counts as one that waits.
#[derive(Debug)]
pub(super) struct WaitingRequest {
    request: ApplyRequest,
    place: queue::Waiting,
}

/// The next request: first those that were taken from their queue while an apply waited for the disk.
pub(super) async fn next_request(
    waiting: &mut VecDeque<WaitingRequest>,
    applies: &mut Receiver<ApplyRequest>,
) -> Option<ApplyRequest> {
    match waiting.pop_front() {
        Some(WaitingRequest { request, place }) => {
            place.end(Instant::now());
            Some(request)
        }
        None => applies.recv().await,
    }
}

/// What became of the write of an apply.
pub(super) enum Stored {
    Yes,
    /// The generation is in force without it, as this warning says.
    No(String),
}

impl State {
    /// Writes a generation to the store. One that only drains is in force without that.
    ///
    /// # Errors
    /// The generation is not in force.
    pub(super) async fn store_generation(
        &mut self,
        generation: Generation,
    ) -> Result<Stored, Refusal> {
        if !only_drains(&self.configuration, &generation.configuration) {
            self.store_or_refuse(generation).await?;
            return Ok(Stored::Yes);
        }
        let cause = match self.store.commit_within(generation.clone(), DISK_WAIT).await {
            Some(Ok(())) => {
                self.end_unstored();
                return Ok(Stored::Yes);
            }
            Some(Err(error)) => error_chain::message(&error),
            None => SILENT.into(),
        };
        let unstored = Unstored { generation, cause };
        let warning = self.in_memory_only(&unstored);
        self.hold(unstored);
        Ok(Stored::No(warning))
    }

    /// Waits for the disk, however long it takes, unless a drain is requested meanwhile.
    async fn store_or_refuse(&mut self, generation: Generation) -> Result<(), Refusal> {
        match self.wait_for_store(generation).await {
            Some(Ok(())) => {
                // It has what was not stored yet.
                self.unstored = None;
                self.settings.conditions.end(STORE);
                Ok(())
            }
            Some(Err(error)) => {
                self.settle_unstored();
                self.report_store(&error);
                Err(error.into())
            }
            None => {
                // Should the write succeed after all, what is in force replaces it.
                self.store.take_back();
                let stored = self.store.generation().cloned();
                let stored = stored.map(|generation| Unstored { generation, cause: SILENT.into() });
                if let Some(unstored) = self.unstored.take().or(stored) {
                    self.hold(unstored);
                }
                Err(Refusal::Overtaken)
            }
        }
    }

    /// `None`: a drain is requested, and the disk does not answer. The drain is the next request.
    async fn wait_for_store(&mut self, generation: Generation) -> Option<Result<(), StoreError>> {
        let is_drain = {
            let (configuration, number) = (self.configuration.clone(), self.generation());
            let own_key = self.store.hash_key();
            move |apply: &Apply| {
                let slots = slots_by_pool(&configuration);
                let Ok(requested) = apply.configuration.resolved(&slots) else { return false };
                let mut next = requested.into_owned();
                leave_out_key(&mut next, own_key);
                !apply.dry_run
                    && apply.expected_generation.is_none_or(|expected| expected == number)
                    && only_drains(&configuration, &next)
            }
        };
        let Self { store, applies, waiting, settings, .. } = self;
        let queue = settings.loop_counters.state.queue();
        let mut commit = pin!(store.commit(generation));
        let mut silence = pin!(sleep(DISK_WAIT));
        let mut is_silent = false;
        loop {
            tokio::select! {
                biased;
                stored = &mut commit => return Some(stored),
                () = &mut silence, if !is_silent => {
                    is_silent = true;
                    let cause = format!("{SILENT}: applies wait for it, except those that only drain");
                    settings.conditions.begin(STORE, &cause);
                    let drain = waiting.iter().position(|it| is_drain(&it.request.apply));
                    if let Some(drain) = drain.and_then(|at| waiting.remove(at)) {
                        waiting.push_front(drain);
                        return None;
                    }
                }
                Some(request) = applies.recv(), if is_silent && waiting.len() < MAX_WAITING => {
                    let is_drain = is_drain(&request.apply);
                    let request = WaitingRequest { request, place: queue.enter() };
                    if is_drain {
                        waiting.push_front(request);
                        return None;
                    }
                    waiting.push_back(request);
                }
            }
        }
    }

    /// Tries again to store what is in force in memory only. To be called once a second.
    pub(super) async fn retry_store(&mut self, limit: Duration) {
        let Some(unstored) = &self.unstored else { return };
        let generation = unstored.generation.clone();
        match self.store.commit_within(generation, limit).await {
            Some(Ok(())) => self.end_unstored(),
            Some(Err(error)) => {
                let cause = error_chain::message(&error);
                if let Some(Unstored { generation, .. }) = self.unstored.take() {
                    self.hold(Unstored { generation, cause });
                }
            }
            None => {}
        }
    }

    /// The retries of the loop, which must not hold it up. To be called once a second.
    pub(super) async fn follow_store(&mut self) {
        self.retry_store(RETRY_WAIT).await;
        let now = clock();
        if !self.store.has_failed() {
            self.store_tried_at = now;
        } else if now.duration_since(self.store_tried_at) >= REPAIR_INTERVAL {
            self.store_tried_at = now;
            self.store_again_within(RETRY_WAIT).await;
        }
    }

    /// The last attempt of a daemon that stops.
    pub(super) async fn store_at_last(&mut self) {
        self.retry_store(DISK_WAIT).await;
        if let Some(unstored) = &self.unstored {
            let generation = unstored.generation.number;
            let stored = self.store.number();
            tracing::error!(
                generation,
                "store: generation {generation} was not stored and is lost: the next start begins with generation {stored}"
            );
        }
    }

    /// Stores again what is in force, if the last write failed: so an operator who has repaired the disk can see it.
    pub(super) async fn store_again(&mut self) {
        self.retry_store(DISK_WAIT).await;
        self.store_again_within(DISK_WAIT).await;
    }

    async fn store_again_within(&mut self, limit: Duration) {
        if self.unstored.is_none()
            && self.store.has_failed()
            && let Some(generation) = self.store.generation().cloned()
        {
            match self.store.commit_within(generation, limit).await {
                Some(Ok(())) => self.end_unstored(),
                Some(Err(error)) => self.report_store(&error),
                None => {}
            }
        }
    }

    /// Warns if the generation in force is not stored.
    pub(super) fn unstored_warning(&self) -> Option<String> {
        self.unstored.as_ref().map(|unstored| self.in_memory_only(unstored))
    }

    /// Begins with a store that could only be read.
    pub(super) fn report_unwritable_store(&self) {
        if let Some(error) = self.store.unwritable() {
            self.report_store(error);
        }
    }

    fn hold(&mut self, unstored: Unstored) {
        let cause =
            format!("{}; other applies are refused or wait", self.in_memory_only(&unstored));
        self.settings.conditions.begin(STORE, &cause);
        self.unstored = Some(unstored);
    }

    /// The store has what is in force.
    fn end_unstored(&mut self) {
        if let Some(unstored) = self.unstored.take() {
            let generation = unstored.generation.number;
            tracing::info!(generation, "store: generation {generation} is stored");
        }
        self.settings.conditions.end(STORE);
    }

    /// A write that went on meanwhile may have been that of the generation in force.
    fn settle_unstored(&mut self) {
        let stored = self.store.generation();
        self.unstored.take_if(|unstored| stored == Some(&unstored.generation));
    }

    fn report_store(&self, error: &StoreError) {
        let (message, hint) = (error_chain::message(error), error.hint());
        let cause = match self.unstored_warning() {
            Some(warning) => format!("{warning}; other applies are refused: {hint}"),
            None => format!("{message}; applies are refused, except those that only drain: {hint}"),
        };
        self.settings.conditions.begin(STORE, &cause);
    }

    fn in_memory_only(&self, unstored: &Unstored) -> String {
        let Unstored { generation: Generation { number, .. }, cause } = unstored;
        let stored = self.store.number();
        format!(
            "generation {number} is in force, but in memory only: {cause}; it is stored as soon as the disk takes it, and a \
             restart before that loses it and begins with generation {stored}"
        )
    }
}
