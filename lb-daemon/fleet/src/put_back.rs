//! What a restore writes back to an etcd that went back in time, before the generation that all follow: members that it no
//! longer has, and the last epoch. The balancers go on with what they own, so etcd has to know again whom they share with,
//! and who was forgotten. Balancers that are in conflict with etcd follow none of it until that generation is there.
//!
//! Each step can be made again: what is there already stays.

use std::collections::{BTreeMap, BTreeSet};

use etcd_client::{DeleteOptions, Txn, TxnOp};
use lb_model::Name;
use lb_sharing::epoch::Epoch;

use crate::{
    Document, DocumentError, EtcdError, Fleet,
    documents::{FleetMember, SharedEpoch},
    reader::Snapshot,
    transaction::{is_at, none_after},
};

/// Keys that one transaction writes or removes: etcd takes 128 operations.
const MAX_KEYS: usize = 100;

/// Why something was not put back as a whole. To look again and to put back the rest is safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutBackError {
    #[error("balancers joined, left or were forgotten meanwhile: decide again")]
    Conflict,
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

impl Fleet {
    /// Writes those of `members` that `seen` does not have. Each of them corrects its own once it follows. Returns the
    /// `mod_revision` of the last change of a member, for the commit to compare.
    ///
    /// # Errors
    /// [`PutBackError`]
    pub async fn put_back_members(
        &self,
        members: &BTreeMap<Name, FleetMember>,
        seen: &Snapshot,
    ) -> Result<i64, PutBackError> {
        let mut last = seen.members_revision;
        // A member whose value cannot be read is there.
        let there = seen.membership().members;
        let gone: Vec<_> = members.iter().filter(|(name, _)| !there.contains_key(*name)).collect();
        for batch in gone.chunks(MAX_KEYS) {
            let put = |(name, member): &(&Name, &FleetMember)| {
                let key = self.keys().member(name);
                let value = Document::from((*member).clone()).write(&key)?;
                Ok(TxnOp::put(key, value, None))
            };
            let puts = batch.iter().map(put).collect::<Result<Vec<_>, DocumentError>>()?;
            let compare = none_after(&self.keys().members(), last);
            let done = self.transact(Txn::new().when([compare]).and_then(puts)).await?;
            if !done.is_done {
                return Err(PutBackError::Conflict);
            }
            last = done.revision;
        }
        Ok(last)
    }

    /// Makes `epoch` the last one, instead of older ones that etcd has. A later one in etcd stays.
    ///
    /// # Errors
    /// [`PutBackError`]
    pub async fn put_back_epoch(&self, epoch: &Epoch, seen: &Snapshot) -> Result<(), PutBackError> {
        let base = &seen.epoch_base;
        let last = base.others.iter().copied().chain(seen.epoch.as_ref().map(|it| it.number));
        let last = last.max().unwrap_or_default();
        if last > epoch.number || seen.epoch.as_deref() == Some(epoch) {
            return Ok(());
        }
        let mut since = seen.shares_revision;
        let document = seen.epoch.as_ref().filter(|_| base.document.is_some());
        let numbers: BTreeSet<u64> =
            base.others.iter().copied().chain(document.map(|it| it.number)).collect();
        let numbers: Vec<u64> = numbers.into_iter().collect();
        for batch in numbers.chunks(MAX_KEYS) {
            let remove = |number: &u64| {
                let options = DeleteOptions::new().with_range(self.keys().after_epoch(*number));
                TxnOp::delete(self.keys().epoch(*number), Some(options))
            };
            let removed: Vec<_> = batch.iter().map(remove).collect();
            let compare = none_after(&self.keys().shares(), since);
            let done = self.transact(Txn::new().when([compare]).and_then(removed)).await?;
            if !done.is_done {
                return Err(PutBackError::Conflict);
            }
            since = since.max(done.revision);
        }
        // The document comes last: an epoch without all that was said in it has another result.
        for (name, contribution) in &epoch.contributions {
            let key = self.keys().contribution(epoch.number, name);
            let value = Document::from(contribution.clone()).write(&key)?;
            self.put(key, value).await?;
        }
        let key = self.keys().epoch(epoch.number);
        let Epoch { generation, forgotten, closed, .. } = epoch.clone();
        let value = Document::from(SharedEpoch { generation, forgotten, closed }).write(&key)?;
        let put = Txn::new().when([is_at(&key, 0)]).and_then([TxnOp::put(&*key, value, None)]);
        match self.transact(put).await?.is_done {
            true => Ok(()),
            false => Err(PutBackError::Conflict),
        }
    }
}
