//! What the store cannot take.

use super::{PacketPath, State};
use crate::{command::Refusal, store::Generation, store::StoreError};
use lb_base::{conditions::STORE, error_chain};

impl<P: PacketPath> State<P> {
    /// Writes a generation to the store. A failure is a condition until a write succeeds.
    pub(super) async fn store_generation(&mut self, generation: Generation) -> Result<(), Refusal> {
        match self.store.commit(generation).await {
            Ok(()) => {
                self.settings.conditions.end(STORE);
                Ok(())
            }
            Err(error) => {
                self.report_store(&error);
                Err(error.into())
            }
        }
    }

    /// Begins with a store that could only be read.
    pub(super) fn report_unwritable_store(&self) {
        if let Some(error) = self.store.unwritable() {
            self.report_store(error);
        }
    }

    /// Stores what is stored already, if the last write failed: so an operator who has repaired the disk can see it.
    pub(super) async fn store_again(&mut self) {
        if self.store.has_failed()
            && let Some(generation) = self.store.generation().cloned()
        {
            // A failure is a condition.
            let _ = self.store_generation(generation).await;
        }
    }

    fn report_store(&self, error: &StoreError) {
        let (message, hint) = (error_chain::message(error), error.hint());
        self.settings.conditions.begin(STORE, &format!("{message}; applies are refused: {hint}"));
    }
}
