//! The store follows the configuration in force. While it cannot be written, applies are refused. What must not wait for a
//! disk is asked for by overrides ([`crate::overrides`]).

use std::{pin::pin, time::Duration};

use tokio::time::sleep;

use super::State;
use crate::{
    command::Refusal,
    members::clock,
    store::{Generation, StoreError},
};
use lb_base::{conditions::STORE, error_chain};

/// The time after which a disk counts as one that does not answer. How long an apply without changes waits for it.
const DISK_WAIT: Duration = Duration::from_secs(1);
/// How long a retry holds the loop up.
const RETRY_WAIT: Duration = Duration::from_millis(100);
/// Time between two attempts to write a store whose last write failed, so that its condition ends without an apply.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);

impl State {
    /// Writes a generation to the store, however long the disk takes.
    ///
    /// # Errors
    /// The generation is not in force.
    pub(super) async fn store_generation(&mut self, generation: Generation) -> Result<(), Refusal> {
        match self.wait_for_store(generation).await {
            Ok(()) => {
                self.settings.conditions.end(&STORE);
                Ok(())
            }
            Err(error) => {
                self.report_store(&error);
                Err(error.into())
            }
        }
    }

    async fn wait_for_store(&mut self, generation: Generation) -> Result<(), StoreError> {
        let Self { store, settings, .. } = self;
        let mut commit = pin!(store.commit(generation));
        tokio::select! {
            biased;
            stored = &mut commit => return stored,
            () = sleep(DISK_WAIT) => {
                let cause = "the disk does not answer: applies wait for it; overrides do not";
                settings.conditions.begin(&STORE, cause);
            }
        }
        commit.await
    }

    /// Tries a store again whose last write failed, without holding the loop up. To be called once a second.
    pub(super) async fn follow_store(&mut self) {
        let now = clock();
        if !self.store.has_failed() {
            self.store_tried_at = now;
        } else if now.duration_since(self.store_tried_at) >= REPAIR_INTERVAL {
            self.store_tried_at = now;
            self.store_again_within(RETRY_WAIT).await;
        }
    }

    /// Stores again what is in force, if the last write failed: so an operator who has repaired the disk can see it.
    pub(super) async fn store_again(&mut self) {
        self.store_again_within(DISK_WAIT).await;
    }

    async fn store_again_within(&mut self, limit: Duration) {
        if self.store.has_failed()
            && let Some(generation) = self.store.generation().cloned()
        {
            match self.store.commit_within(generation, limit).await {
                Some(Ok(())) => self.settings.conditions.end(&STORE),
                Some(Err(error)) => self.report_store(&error),
                None => {}
            }
        }
    }

    /// Begins with a store that could only be read.
    pub(super) fn report_unwritable_store(&self) {
        if let Some(error) = self.store.unwritable() {
            self.report_store(error);
        }
    }

    fn report_store(&self, error: &StoreError) {
        let (message, hint) = (error_chain::message(error), error.hint());
        let cause = format!("{message}; applies are refused, overrides are not: {hint}");
        self.settings.conditions.begin(&STORE, &cause);
    }
}
