//! The history of a fleet, as a member shows it.

use std::{collections::BTreeMap, sync::Arc};

use lb_base::error_chain;
use lb_control::command::{FleetRefusal, Refusal};
use lb_fleet::{
    DocumentError, EtcdError, Fleet,
    commit::Committed,
    history::{GenerationReader, HistoryError},
};
use lb_model::Configuration;
use lb_store::HistoryEntry;

use super::Member;

impl Member {
    /// The generations of the fleet, after this balancer's own from before it joined. What it knows itself of one of the
    /// fleet is not read. Without etcd there are only those that it knows.
    pub(super) async fn generations(&self, own: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
        let fleet = self.etcd().fleet.borrow().clone();
        let Some(fleet) = fleet else { return own };
        match with_those_of(&fleet, &own).await {
            Ok(all) => all,
            Err(error) => {
                tracing::warn!("the history is that of this balancer alone: {error}");
                own
            }
        }
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

async fn with_those_of(
    fleet: &Fleet,
    own: &[HistoryEntry],
) -> Result<Vec<HistoryEntry>, EtcdError> {
    let kept = fleet.list_generations().await?;
    let (before, own): (Vec<_>, Vec<_>) = own.iter().cloned().partition(|it| it.is_before_fleet);
    let own = own.into_iter().map(|entry| (entry.number, entry));
    let mut entries: BTreeMap<u64, HistoryEntry> =
        own.filter(|(number, _)| kept.contains(number)).collect();
    let unknown: Vec<_> = kept.into_iter().filter(|it| !entries.contains_key(it)).collect();
    let visit = |number, read| drop(entries.insert(number, entry(number, read)));
    fleet.visit_generations(unknown, visit).await?;
    Ok(before.into_iter().chain(entries.into_values()).collect())
}

fn entry(number: u64, read: Result<Committed, DocumentError>) -> HistoryEntry {
    let (generation, unusable) = match read {
        Ok(committed) => (Some(committed.document.body), None),
        Err(error) => (None, Some(error.to_string())),
    };
    HistoryEntry {
        number,
        applied_at: generation.as_ref().map(|it| it.applied_at.to_system_time()),
        who: generation.as_ref().map(|it| it.author.clone()).unwrap_or_default(),
        why: generation.map(|it| it.reason).unwrap_or_default(),
        changes: None,
        unusable,
        is_before_fleet: false,
    }
}
