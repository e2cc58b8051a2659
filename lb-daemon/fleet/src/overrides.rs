//! Changes of overrides: each compares what it replaces, so that two operators do not overwrite each other unseen.

use etcd_client::{Txn, TxnOp};
use lb_model::overrides::Key;

use crate::{
    Document, DocumentError, EtcdError, Fleet,
    documents::{SharedOverride, WallTime},
    reader::Snapshot,
    transaction::is_at,
};

/// Most changes in one transaction: etcd takes 128 operations.
pub const MAX_CHANGES: usize = 100;

/// A change of one override.
#[derive(Clone, Debug, PartialEq)]
pub struct OverrideChange {
    pub key: Key,
    /// `mod_revision` of what it replaces; 0: there must be none.
    pub expected: i64,
    /// `None`: it is deleted.
    pub value: Option<Document<SharedOverride>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    #[error("an override was changed meanwhile")]
    Conflict,
    #[error("{0} overrides are changed; at most {MAX_CHANGES} can be at once")]
    TooMany(usize),
    /// They may have been changed, or may yet be.
    #[error("it is unknown whether the overrides were changed: {0}")]
    Unknown(EtcdError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(EtcdError),
}

impl Fleet {
    /// Changes overrides in one transaction, all or none. Returns the new revision.
    ///
    /// # Errors
    /// [`OverrideError`]
    pub async fn change_overrides(&self, changes: &[OverrideChange]) -> Result<i64, OverrideError> {
        self.change_overrides_in(None, changes).await
    }

    /// The same, while a generation is the current one: `generation` is the `mod_revision` of `config/current`. `None`:
    /// whichever there is.
    ///
    /// # Errors
    /// [`OverrideError`]; a conflict also if another generation was committed.
    pub async fn change_overrides_in(
        &self,
        generation: Option<i64>,
        changes: &[OverrideChange],
    ) -> Result<i64, OverrideError> {
        if changes.len() > MAX_CHANGES {
            return Err(OverrideError::TooMany(changes.len()));
        }
        let mut compares: Vec<_> =
            generation.map(|at| is_at(&self.keys().current(), at)).into_iter().collect();
        let mut operations = vec![self.touch()];
        for change in changes {
            let key = self.keys().override_of(&change.key);
            compares.push(is_at(&key, change.expected));
            operations.push(match &change.value {
                Some(value) => {
                    value.check(&change.key, key.as_bytes())?;
                    let value = value.write(&key)?;
                    TxnOp::put(key, value, None)
                }
                None => TxnOp::delete(key, None),
            });
        }
        let done = self.transact(Txn::new().when(compares).and_then(operations)).await;
        match done {
            Ok(done) if done.is_done => Ok(done.revision),
            Ok(_) => Err(OverrideError::Conflict),
            Err(error) if error.is_indefinite() => Err(OverrideError::Unknown(error)),
            Err(error) => Err(OverrideError::Etcd(error)),
        }
    }
}

/// The deletions of overrides whose time is over: any balancer may carry them out, and only one succeeds.
pub fn expired(snapshot: &Snapshot, now: WallTime) -> Vec<OverrideChange> {
    let is_over = |until: &WallTime| *until <= now;
    let over = snapshot.overrides.iter();
    let over = over.filter(|(_, it)| it.document.body.until.as_ref().is_some_and(is_over));
    over.map(|(key, _)| key).filter_map(|key| deletion(snapshot, key)).take(MAX_CHANGES).collect()
}

/// The deletion of an override as it was seen. `None`: there is none.
pub fn deletion(snapshot: &Snapshot, key: &Key) -> Option<OverrideChange> {
    let expected = snapshot.overrides.get(key)?.mod_revision;
    Some(OverrideChange { key: key.clone(), expected, value: None })
}
