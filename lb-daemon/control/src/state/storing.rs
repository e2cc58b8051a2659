//! The store follows the configuration in force. While it cannot be written, applies are refused. What must not wait for a
//! disk is asked for by overrides ([`crate::overrides`]).

use std::{
    num::NonZeroU32,
    pin::pin,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    command::{Refusal, Warning, WarningReason},
    members::clock,
};
use lb_base::{
    conditions::{Conditions, STORE, STORED},
    error_chain,
};
use lb_config::{SlotsByPool, hash_key_of_message, slots_by_pool, slots_of_message};
use lb_model::Configuration;
use lb_store::{Generation, Store, StoreError, Unusable};

/// The time after which a disk counts as one that does not answer. How long an apply without changes waits for it.
const DISK_WAIT: Duration = Duration::from_secs(1);
/// How long a retry holds the loop up.
const RETRY_WAIT: Duration = Duration::from_millis(100);
/// Time between two attempts to write a store whose last write failed, so that its condition ends without an apply.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Storing {
    pub(super) store: Store,
    /// When a store whose last write failed was last tried again, or could be written.
    tried_at: Instant,
    conditions: Conditions,
}

impl Storing {
    pub(super) fn new(store: Store, conditions: Conditions) -> Self {
        Self { store, tried_at: clock(), conditions }
    }

    /// Number of the generation in force, even if that generation cannot be used.
    pub(super) fn generation(&self) -> u64 {
        self.store.number()
    }

    /// Writes a generation to the store, however long the disk takes.
    ///
    /// # Errors
    /// The generation is not in force.
    pub(super) async fn write(&mut self, generation: Generation) -> Result<(), Refusal> {
        match self.wait_for_disk(generation).await {
            Ok(()) => {
                self.conditions.end(&STORE);
                Ok(())
            }
            Err(error) => {
                self.report(&error);
                Err(error.into())
            }
        }
    }

    async fn wait_for_disk(&mut self, generation: Generation) -> Result<(), StoreError> {
        let Self { store, conditions, .. } = self;
        let mut commit = pin!(store.commit(generation));
        tokio::select! {
            biased;
            stored = &mut commit => return stored,
            () = sleep(DISK_WAIT) => {
                let cause = "the disk does not answer: applies wait for it; overrides do not";
                conditions.begin(&STORE, cause);
            }
        }
        commit.await
    }

    /// Tries a store again whose last write failed, without holding the loop up. To be called once a second.
    pub(super) async fn follow(&mut self) {
        let now = clock();
        if !self.store.has_failed() {
            self.tried_at = now;
        } else if now.duration_since(self.tried_at) >= REPAIR_INTERVAL {
            self.tried_at = now;
            self.write_again_within(RETRY_WAIT).await;
        }
    }

    /// Stores again what is in force, if the last write failed: so an operator who has repaired the disk can see it.
    pub(super) async fn write_again(&mut self) {
        self.write_again_within(DISK_WAIT).await;
    }

    async fn write_again_within(&mut self, limit: Duration) {
        if self.store.has_failed()
            && let Some(generation) = self.store.generation().cloned()
        {
            match self.store.commit_within(generation, limit).await {
                Some(Ok(())) => self.conditions.end(&STORE),
                Some(Err(error)) => self.report(&error),
                None => {}
            }
        }
    }

    /// Begins with a store that could only be read.
    pub(super) fn report_unwritable(&self) {
        if let Some(error) = self.store.unwritable() {
            self.report(error);
        }
    }

    fn report(&self, error: &StoreError) {
        let (message, hint) = (error_chain::message(error), error.hint());
        let cause = format!("{message}; applies are refused, overrides are not: {hint}");
        self.conditions.begin(&STORE, &cause);
    }

    /// The stored generation cannot be used.
    pub(super) fn set_aside(&mut self, cause: String) {
        self.store.set_aside(cause);
        self.report_unusable();
    }

    pub(super) fn report_unusable(&self) {
        let Some(unusable) = self.store.unusable() else { return };
        let Unusable { number, cause, .. } = &**unusable;
        let cause = format!(
            "generation {number} cannot be used: {cause}; packets are forwarded as before, but health and next hops are \
             frozen until a valid configuration is applied (`spillway export` shows the stored one)"
        );
        self.conditions.begin(&STORED, &cause);
    }

    /// Warning for a configuration that replaces one that could not be used.
    pub(super) fn unusable_warning(&self) -> Option<Warning> {
        let number = self.store.unusable()?.number;
        let text = format!(
            "generation {number} could not be used, so the differences from it are unknown: all objects are listed \
             as added, and open connections may move"
        );
        Some(Warning::new(WarningReason::UnusableBefore, text))
    }

    /// The slots that pools keep, also those of a stored generation that cannot be used: the maps have its tables.
    pub(super) fn slots_in_force(&self, current: &Configuration) -> SlotsByPool {
        let stored = self.store.unusable().and_then(|unusable| unusable.message.as_ref());
        match stored {
            Some(message) => slots_of_message(&message.0),
            None => slots_by_pool(current),
        }
    }

    /// The hash key of packets, also while the stored generation cannot be used.
    pub(super) fn hash_key_in_use(&self, current: &Configuration) -> [u64; 2] {
        let stored = self.store.unusable().and_then(|unusable| unusable.message.as_ref());
        let stored = stored.and_then(|message| hash_key_of_message(&message.0));
        current.hash_key.or(stored).unwrap_or_else(|| self.store.hash_key())
    }

    /// Removes the daemon's own key from a configuration with one balancer: naming it makes no difference,
    /// because no other balancer has to know it.
    pub(super) fn leave_out_own_key(&self, configuration: &mut Configuration) {
        if configuration.balancers == NonZeroU32::MIN {
            configuration.hash_key.take_if(|key| *key == self.store.hash_key());
        }
    }
}
