//! Changes of overrides: each compares what it replaces, so that two operators do not overwrite each other unseen.

use std::time::Duration;

use etcd_client::{Txn, TxnOp};
use lb_model::overrides::Key;
use tokio::time::{Instant, sleep};

use crate::{
    Document, DocumentError, EtcdError, Fleet,
    documents::{SharedOverride, WallTime},
    reader::Snapshot,
    transaction::is_at,
};

/// Most changes in one transaction: etcd takes 128 operations.
pub const MAX_CHANGES: usize = 100;

/// How long it is tried to find out what became of changes whose reply is lost.
const RESOLVE: Duration = Duration::from_secs(15);

/// Between two attempts.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

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
    /// They may have been changed, or may yet be, and etcd could not be asked.
    #[error("it is unknown whether the overrides were changed: {0}")]
    Unknown(EtcdError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(EtcdError),
}

impl Fleet {
    /// Changes overrides in one transaction, all or none. Returns the new revision, or a later one. If the reply is lost, finds
    /// out whether they were changed.
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
        let transaction = self.override_transaction(generation, changes)?;
        match self.transact(transaction.clone()).await {
            Ok(done) if done.is_done => Ok(done.revision),
            Ok(_) => Err(OverrideError::Conflict),
            Err(error) if error.is_indefinite() => self.find_out(transaction, changes, error).await,
            Err(error) => Err(OverrideError::Etcd(error)),
        }
    }

    fn override_transaction(
        &self,
        generation: Option<i64>,
        changes: &[OverrideChange],
    ) -> Result<Txn, OverrideError> {
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
        Ok(Txn::new().when(compares).and_then(operations))
    }

    /// Finds out what became of a transaction, and makes it again if nothing has: it is carried out once at most, because both
    /// compare the same. `error` is the answer that said nothing for certain.
    async fn find_out(
        &self,
        transaction: Txn,
        changes: &[OverrideChange],
        mut error: EtcdError,
    ) -> Result<i64, OverrideError> {
        let until = Instant::now() + RESOLVE;
        loop {
            match self.resolve_overrides(changes).await {
                Ok(Resolved::Done(revision)) => return Ok(revision),
                Ok(Resolved::Lost) => return Err(OverrideError::Conflict),
                // etcd has answered, so nothing of it is on its way: there was no space for it.
                Ok(Resolved::Open) if error == EtcdError::NoSpace => {
                    return Err(OverrideError::Etcd(error));
                }
                Ok(Resolved::Open) => match self.transact(transaction.clone()).await {
                    Ok(done) if done.is_done => return Ok(done.revision),
                    // The first one was carried out meanwhile, or never will be.
                    Ok(_) => match self.resolve_overrides(changes).await {
                        Ok(Resolved::Done(revision)) => return Ok(revision),
                        Ok(_) => return Err(OverrideError::Conflict),
                        Err(again) => error = again,
                    },
                    Err(again) => error = again,
                },
                Err(again) => error = again,
            }
            if Instant::now() >= until {
                return Err(OverrideError::Unknown(error));
            }
            sleep(BETWEEN_TRIES).await;
        }
    }

    /// What became of changes whose reply is lost. They are made as a whole or not at all, so one of them tells.
    async fn resolve_overrides(&self, changes: &[OverrideChange]) -> Result<Resolved, EtcdError> {
        let changed = self.keys().changed();
        let keys = changes.iter().map(|it| self.keys().override_of(&it.key));
        let keys: Vec<_> = keys.chain([changed.clone()]).collect();
        let rows = self.get_together(&keys).await?;
        let row = |key: &str| rows.iter().find(|row| row.key == key.as_bytes());
        let is_open = |(change, key): (&OverrideChange, &String)| {
            row(key).map_or(0, |row| row.mod_revision) == change.expected
        };
        let is_done = |(change, key): (&OverrideChange, &String)| match (&change.value, row(key)) {
            (Some(value), Some(row)) => {
                row.mod_revision > change.expected
                    && value.write(key).is_ok_and(|value| value == row.value)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        Ok(if changes.iter().zip(&keys).all(is_open) {
            Resolved::Open
        } else if changes.iter().zip(&keys).all(is_done) {
            Resolved::Done(row(&changed).map_or(0, |row| row.mod_revision))
        } else {
            Resolved::Lost
        })
    }
}

/// What became of changes.
enum Resolved {
    /// They are in etcd, at this revision or an earlier one.
    Done(i64),
    /// Nothing has changed so far. A request under way may still change it; to make the same one again is safe.
    Open,
    /// Others changed some of it since, so they were not made, or are not in force any more.
    Lost,
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
