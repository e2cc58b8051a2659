//! Puts epochs together from their keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lb_model::Name;
use lb_sharing::epoch::{Contribution, Epoch};

use super::snapshot::{EpochBase, Versioned, store};
use crate::{DocumentError, client::Row, documents::SharedEpoch};

/// What is there of epochs, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Epochs {
    by_number: BTreeMap<u64, EpochKeys>,
}

/// The keys of one epoch.
#[derive(Clone, Debug, Default)]
struct EpochKeys {
    document: Option<Versioned<SharedEpoch>>,
    contributions: BTreeMap<Name, Versioned<Contribution>>,
    /// `None`: the document.
    unreadable: BTreeSet<Option<Name>>,
}

impl EpochKeys {
    /// The document, if all of the epoch can be read.
    fn readable(&self) -> Option<&Versioned<SharedEpoch>> {
        self.document.as_ref().filter(|_| self.unreadable.is_empty())
    }
}

impl Epochs {
    /// Stores the document of an epoch, or what a balancer said in it. Returns why the value cannot be read.
    pub(super) fn put(
        &mut self,
        number: u64,
        contributor: Option<Name>,
        row: &Row,
    ) -> Option<DocumentError> {
        let keys = self.by_number.entry(number).or_default();
        let error = match contributor.clone() {
            None => match Versioned::read(row) {
                Ok(document) => {
                    keys.document = Some(document);
                    None
                }
                Err(error) => Some(error),
            },
            Some(name) => store(&mut keys.contributions, name, row),
        };
        match error {
            Some(_) => keys.unreadable.insert(contributor),
            None => keys.unreadable.remove(&contributor),
        };
        error
    }

    pub(super) fn delete(&mut self, number: u64, contributor: Option<Name>) {
        let Some(keys) = self.by_number.get_mut(&number) else { return };
        match &contributor {
            None => keys.document = None,
            Some(name) => drop(keys.contributions.remove(name)),
        }
        keys.unreadable.remove(&contributor);
        let is_empty = keys.document.is_none() && keys.contributions.is_empty();
        if is_empty && keys.unreadable.is_empty() {
            self.by_number.remove(&number);
        }
    }

    /// The epoch with the highest number of those that can be read as a whole. With a contribution missing, its result would
    /// be another one than at the other balancers.
    pub(super) fn latest(&self) -> (Option<Arc<Epoch>>, EpochBase) {
        let mut others: BTreeSet<u64> = self.by_number.keys().copied().collect();
        let mut readable = self.by_number.iter().rev();
        let latest = readable.find_map(|(number, keys)| Some((*number, keys, keys.readable()?)));
        let Some((number, keys, document)) = latest else {
            return (None, EpochBase { others, ..EpochBase::default() });
        };
        others.remove(&number);
        let SharedEpoch { generation, forgotten, closed } = document.document.body.clone();
        let contributed_at = keys.contributions.iter();
        let contributed_at =
            contributed_at.map(|(name, it)| (name.clone(), it.mod_revision)).collect();
        let contributions = keys.contributions.iter();
        let contributions =
            contributions.map(|(name, it)| (name.clone(), it.document.body.clone())).collect();
        let epoch = Epoch { number, generation, forgotten, contributions, closed };
        (Some(epoch.into()), EpochBase { document: Some(document.clone()), contributed_at, others })
    }
}
