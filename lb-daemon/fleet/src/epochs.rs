//! Writes the steps of epochs ([`lb_sharing::epoch`]), each in one transaction that compares what the step was decided on.
//!
//! An epoch is `shares/<number>`, and each balancer's contribution a key below that. The document is written when the epoch
//! is opened, forgets more balancers, or is closed, so its `mod_revision` says that neither happened meanwhile, while
//! contributions come in beside each other. A contribution is written once and stays.
//!
//! etcd takes 128 comparisons in a transaction, and counts those of a transaction inside too. This bounds no fleet:
//! - A step forgets at most 50 balancers. Of the others, the next step takes the first ones.
//! - A step that is decided on more than 20 statements is not written: another balancer may hear more of the others.
//! - One comparison, of the whole range, says that no member changed, joined or was removed.
//! - Of the contributions to an epoch that is closed, the last 100 are compared. A contribution stays, unless etcd goes back
//!   to an earlier state. It has then lost the last one too.

use std::{cmp::Reverse, collections::BTreeSet};

use etcd_client::{Compare, DeleteOptions, Txn, TxnOp};
use lb_model::Name;
use lb_sharing::epoch::{EpochStep, Forgotten};

use crate::{
    Document, DocumentError, EtcdError, Fleet, FleetKey,
    documents::SharedEpoch,
    reader::Snapshot,
    transaction::{MAX_VALUE, exists, is_at, none_after},
};

/// Balancers that one step forgets. It compares two keys for each.
const MAX_FORGOTTEN: usize = 50;

/// Most balancers whose statements a step is decided on.
const MAX_STATEMENTS: usize = 20;

/// Contributions that are compared.
const MAX_CONTRIBUTIONS: usize = 100;

/// Old epochs that one transaction removes: etcd takes 128 operations.
const MAX_REMOVED: usize = 100;

/// Why a step was not written. To look again is all that is left to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochError {
    /// It may decide what the step has to be.
    #[error("epochs stand still: {0}")]
    Unreadable(DocumentError),
    #[error("epochs stand still: what etcd has of epoch {0} cannot be used")]
    Unusable(u64),
    #[error("what this balancer owns takes {size} bytes; etcd takes at most {MAX_VALUE}")]
    TooLarge { size: usize },
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The step may have been written, or may yet be.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

impl Fleet {
    /// Writes a step that was decided on what `seen` has. Returns whether it was written; otherwise something changed
    /// meanwhile.
    ///
    /// # Errors
    /// [`EpochError`]
    pub async fn write_epoch_step(
        &self,
        step: &EpochStep,
        seen: &Snapshot,
    ) -> Result<bool, EpochError> {
        match self.epoch_transaction(step, seen)? {
            Some(transaction) => Ok(self.transact(transaction).await?.is_done),
            None => Ok(false),
        }
    }

    /// `None`: the step does not fit what was seen.
    fn epoch_transaction(
        &self,
        step: &EpochStep,
        seen: &Snapshot,
    ) -> Result<Option<Txn>, EpochError> {
        self.check_readable(step, seen)?;
        let keys = self.keys();
        let last = seen.epoch.as_ref().map_or(0, |epoch| epoch.number);
        let last_key = keys.epoch(last);
        let document = seen.epoch_base.document.as_ref();
        let open = document.filter(|it| !it.document.body.closed);
        let mut compares = vec![exists(&keys.member(self.name()))];
        compares.extend(document.map(|it| is_at(&last_key, it.mod_revision)));
        let operations = match (step, open) {
            (EpochStep::Open { number, forgotten }, None) if *number > last => {
                let forgotten = first_of(forgotten);
                let configuration = seen.configuration.as_ref().map(|it| &it.committed);
                let at = configuration.map_or(0, |it| it.mod_revision);
                compares.push(is_at(&keys.current(), at));
                compares.push(none_after(&keys.shares(), seen.shares_revision));
                let Some(may_forget) = self.may_forget(&forgotten, seen) else { return Ok(None) };
                compares.extend(may_forget);
                let body = SharedEpoch {
                    generation: configuration.map_or(0, |it| it.document.body.number),
                    forgotten: forgotten.names(),
                    closed: false,
                };
                let put = self.put_epoch(*number, &body.into())?;
                let old = seen.epoch_base.others.iter().take(MAX_REMOVED);
                old.map(|number| self.remove_epoch(*number)).chain([put]).collect()
            }
            (EpochStep::Forget(forgotten), Some(epoch)) => {
                let forgotten = first_of(forgotten);
                let names = forgotten.names();
                let Some(may_forget) = self.may_forget(&forgotten, seen) else { return Ok(None) };
                compares.extend(may_forget);
                let contributions = names.iter().map(|name| keys.contribution(last, name));
                compares.extend(contributions.map(|key| is_at(&key, 0)));
                let mut body = epoch.document.body.clone();
                body.forgotten.extend(names);
                vec![self.put_epoch(last, &epoch.document.replaced_by(body))?]
            }
            (EpochStep::Contribute(contribution), Some(_)) => {
                let key = keys.contribution(last, self.name());
                compares.push(is_at(&key, 0));
                let value = Document::from(contribution.clone()).write(&key)?;
                if value.len() > MAX_VALUE {
                    return Err(EpochError::TooLarge { size: value.len() });
                }
                vec![TxnOp::put(key, value, None)]
            }
            (EpochStep::Close, Some(epoch)) => {
                let Some(all_contributed) = self.all_contributed(seen) else { return Ok(None) };
                compares.extend(all_contributed);
                let mut body = epoch.document.body.clone();
                body.closed = true;
                vec![self.put_epoch(last, &epoch.document.replaced_by(body))?]
            }
            _ => return Ok(None),
        };
        Ok(Some(Txn::new().when(compares).and_then(operations)))
    }

    /// A step must not be decided on while a balancer, or what it said, is not understood. What a contribution says depends
    /// on no other balancer.
    fn check_readable(&self, step: &EpochStep, seen: &Snapshot) -> Result<(), EpochError> {
        let last = seen.epoch.as_ref().map_or(0, |epoch| epoch.number);
        if let Some(number) = seen.epoch_base.others.iter().find(|number| **number > last) {
            return Err(EpochError::Unusable(*number));
        }
        let is_member =
            |key: &str| matches!(self.keys().parse(key.as_bytes()), FleetKey::Member(_));
        let member = seen.unreadable.iter().find(|(key, _)| is_member(key));
        let unreadable = match step {
            EpochStep::Contribute(_) => None,
            EpochStep::Open { .. } => {
                member.map(|(_, it)| it).or(seen.configuration_error.as_ref())
            }
            EpochStep::Forget(_) | EpochStep::Close => member.map(|(_, error)| error),
        };
        unreadable.map_or(Ok(()), |error| Err(EpochError::Unreadable(error.clone())))
    }

    /// That those who are gone have no lease, those who are still forgotten have not come back, and that the statements it was
    /// decided on still stand. `None`: those are too many.
    fn may_forget(&self, forgotten: &Forgotten, seen: &Snapshot) -> Option<Vec<Compare>> {
        let Forgotten { gone, still_forgotten, stated_by, .. } = forgotten;
        let alive_at = |name: &Name| seen.alive.get(name).map_or(0, |it| it.mod_revision);
        let gone = gone.iter().map(|name| is_at(&self.keys().alive(name), 0));
        let still = still_forgotten.iter().map(|name| self.is_unchanged(name, seen));
        let stated = stated_by.iter().map(|name| is_at(&self.keys().alive(name), alive_at(name)));
        (stated_by.len() <= MAX_STATEMENTS).then(|| gone.chain(still).chain(stated).collect())
    }

    /// That the members are the ones that were seen, and that all contributed whose contributions were seen. `None`: some
    /// have yet to.
    fn all_contributed(&self, seen: &Snapshot) -> Option<Vec<Compare>> {
        let epoch = seen.epoch.as_ref()?;
        let members: BTreeSet<Name> = seen.members.keys().cloned().collect();
        if epoch.awaited(&members).next().is_some() {
            return None;
        }
        let keys = self.keys();
        let mut contributions: Vec<_> = seen.epoch_base.contributed_at.iter().collect();
        contributions.sort_by_key(|(_, at)| Reverse(**at));
        let last = contributions.into_iter().take(MAX_CONTRIBUTIONS);
        let last = last.map(|(name, at)| is_at(&keys.contribution(epoch.number, name), *at));
        let no_member_changed = none_after(&keys.members(), seen.members_revision);
        Some([no_member_changed].into_iter().chain(last).collect())
    }

    fn is_unchanged(&self, member: &Name, seen: &Snapshot) -> Compare {
        let at = seen.members.get(member).map_or(0, |it| it.mod_revision);
        is_at(&self.keys().member(member), at)
    }

    fn put_epoch(
        &self,
        number: u64,
        document: &Document<SharedEpoch>,
    ) -> Result<TxnOp, DocumentError> {
        let key = self.keys().epoch(number);
        Ok(TxnOp::put(&*key, document.write(&key)?, None))
    }

    fn remove_epoch(&self, number: u64) -> TxnOp {
        let options = DeleteOptions::new().with_range(self.keys().after_epoch(number));
        TxnOp::delete(self.keys().epoch(number), Some(options))
    }
}

/// As many as one step forgets; first those of which the epoch must not wait because they are alive.
fn first_of(forgotten: &Forgotten) -> Forgotten {
    let mut left = MAX_FORGOTTEN;
    let mut first = |names: &BTreeSet<Name>| {
        let first: BTreeSet<Name> = names.iter().take(left).cloned().collect();
        left -= first.len();
        first
    };
    Forgotten {
        old_copies: first(&forgotten.old_copies),
        gone: first(&forgotten.gone),
        still_forgotten: first(&forgotten.still_forgotten),
        stated_by: forgotten.stated_by.clone(),
    }
}
