//! The history of a fleet, as a member shows it.

use std::{collections::BTreeMap, sync::Arc};

use lb_base::error_chain;
use lb_control::command::{FleetRefusal, Refusal};
use lb_fleet::history::{GenerationReader, HistoryError};
use lb_model::Configuration;
use lb_store::HistoryEntry;

use super::Member;

impl Member {
    /// The generations of the fleet, after this balancer's own from before it joined. What it knows itself of one of the
    /// fleet is added.
    pub(super) fn generations(&self, own: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
        let Some(snapshot) = self.etcd().view.borrow().snapshot.clone() else { return own };
        let (before, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|it| it.is_before_fleet);
        let own: BTreeMap<_, _> = own.into_iter().map(|entry| (entry.number, entry)).collect();
        let entry = |(number, committed): (&u64, &Arc<lb_fleet::commit::Committed>)| {
            let generation = &committed.document.body;
            own.get(number).cloned().unwrap_or_else(|| HistoryEntry {
                number: *number,
                applied_at: Some(generation.applied_at.to_system_time()),
                who: generation.author.clone(),
                why: generation.reason.clone(),
                changes: None,
                unusable: None,
                is_before_fleet: false,
            })
        };
        before.into_iter().chain(snapshot.history.iter().map(entry)).collect()
    }

    /// The configuration of a generation of the fleet.
    ///
    /// # Errors
    /// The history does not have it, etcd does not answer, or this version cannot use it.
    pub(super) async fn generation(&self, number: u64) -> Result<Arc<Configuration>, Refusal> {
        let fleet = self.etcd().fleet.borrow().clone();
        let unavailable = |text: String| Refusal::from(FleetRefusal::Unavailable(text));
        let fleet = fleet.ok_or_else(|| unavailable("etcd is not connected".into()))?;
        let unusable = |cause: String| Refusal::UnusableGeneration { number, cause };
        let read =
            GenerationReader::new(&fleet).read(number).await.map_err(|error| match error {
                HistoryError::NotKept(_) => Refusal::NoGeneration(number),
                HistoryError::Etcd(error) => unavailable(error.to_string()),
                error => unusable(error.to_string()),
            })?;
        let decoded = lb_store::decode_shared(&read.bytes);
        decoded.map(Arc::new).map_err(|error| unusable(error_chain::message(&error)))
    }
}
