//! A stored generation that this version cannot use: packets go on by the maps as they are, until an apply.

use super::{PacketPath, State};
use crate::{
    command::{Actor, Apply, Refusal},
    store::{Revision, SchemaMismatch, Unusable},
};
use lb_base::conditions::STORED;

impl<P: PacketPath> State<P> {
    /// Says that the stored generation is not in use, and why.
    pub(super) fn begin_unusable(&self) {
        let Some(Unusable { number, cause, .. }) = self.store.unusable() else { return };
        let cause = format!(
            "generation {number} cannot be used: {cause}; packets go on as they were, but health and next hops are \
             frozen until a valid configuration is applied (`spillway export` shows the stored one)"
        );
        self.settings.conditions.begin(STORED, &cause);
    }

    /// Refuses what asks for pools that this version cannot know.
    pub(super) fn is_known(&self) -> Result<(), Refusal> {
        match self.store.unusable() {
            Some(unusable) => Err(Refusal::Unusable(unusable.cause.clone())),
            None => Ok(()),
        }
    }

    /// Refuses an apply by which fields would be lost that only the client, the daemon or the store knows. Where
    /// it is to be taken as it is, says so instead.
    pub(super) fn schemas_agree(&self, apply: &Apply) -> Result<Option<String>, Refusal> {
        let daemon = self.settings.schema;
        let stored = self.store.unusable().map_or(Revision::FIRST, |unusable| unusable.schema);
        let agree = match stored > daemon {
            true => Err(SchemaMismatch::NewerStore { stored, daemon }),
            false => SchemaMismatch::of_client(apply.schema, daemon),
        };
        let Err(mismatch) = agree else { return Ok(None) };
        // Whoever may set the daemon's settings has said it for the file that these name.
        let by_file = self.settings.any_schema && matches!(apply.actor, Actor::File(_));
        match apply.any_schema || by_file {
            true => Ok(Some(mismatch.to_string())),
            false => Err(Refusal::Schema(mismatch)),
        }
    }

    /// What the author of a configuration should know that takes the place of one that could not be used.
    pub(super) fn replaces_unusable(&self) -> Option<String> {
        let Unusable { number, .. } = self.store.unusable()?;
        Some(format!(
            "generation {number} could not be used, so it is not known what differs from it: all objects are listed \
             as added, and open connections may move"
        ))
    }
}
