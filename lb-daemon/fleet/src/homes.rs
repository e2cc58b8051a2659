//! Changes of what is marked out for a region's balancers.

use std::collections::BTreeSet;

use etcd_client::{Txn, TxnOp};
use lb_model::Name;

use crate::{
    Document, DocumentError, EtcdError, Fleet, FleetKey, documents::Homes, overrides::MAX_CHANGES,
    transaction::is_at,
};

/// A change of what is marked out of one pool.
#[derive(Clone, Debug, PartialEq)]
pub struct HomesChange {
    pub pool: Name,
    /// `mod_revision` of what it replaces; 0: there must be none.
    pub expected: i64,
    /// `None`: it is deleted, because nothing is marked out.
    pub value: Option<Document<Homes>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HomesError {
    #[error("what is marked out was changed meanwhile")]
    Conflict,
    #[error(
        "what is marked out changes in {0} pools; at most {MAX_CHANGES} can be changed at once"
    )]
    TooMany(usize),
    /// It may have been changed, or may yet be.
    #[error("it is unknown whether what is marked out was changed: {0}")]
    Unknown(EtcdError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(EtcdError),
}

impl Fleet {
    /// Changes what is marked out for a region's balancers in one transaction, all or nothing. Returns the new revision.
    ///
    /// # Errors
    /// [`HomesError`]
    pub async fn write_homes(
        &self,
        region: &Name,
        changes: &[HomesChange],
    ) -> Result<i64, HomesError> {
        if changes.len() > MAX_CHANGES {
            return Err(HomesError::TooMany(changes.len()));
        }
        let (mut compares, mut operations) = (Vec::new(), vec![self.touch()]);
        for HomesChange { pool, expected, value } in changes {
            let key = self.keys().homes(region, pool);
            compares.push(is_at(&key, *expected));
            operations.push(match value {
                Some(value) => TxnOp::put(&*key, value.write(&key)?, None),
                None => TxnOp::delete(key, None),
            });
        }
        match self.transact(Txn::new().when(compares).and_then(operations)).await {
            Ok(done) if done.is_done => Ok(done.revision),
            Ok(_) => Err(HomesError::Conflict),
            Err(error) if error.is_indefinite() => Err(HomesError::Unknown(error)),
            Err(error) => Err(HomesError::Etcd(error)),
        }
    }

    /// Removes what is marked out of all pools but these, of which the generations are at a revision, with the key of the
    /// current one and its `mod_revision`. Returns how many keys it were; `None`: a commit or a change came in between. What
    /// the revision covers stays as it is: no generation has such a pool.
    pub(crate) async fn remove_homes(
        &self,
        pools: &BTreeSet<Name>,
        (current, base): (&str, i64),
        at: Option<i64>,
    ) -> Result<Option<usize>, EtcdError> {
        let first = self.keys().all_homes();
        let end = format!("{}0", first.trim_end_matches('/'));
        let there = self.range(&first, &end, at, true).await?;
        let gone = there.rows.iter().filter_map(|row| match self.keys().parse(&row.key) {
            FleetKey::Homes { region, pool } if !pools.contains(&pool) => {
                Some((self.keys().homes(&region, &pool), row.mod_revision))
            }
            _ => None,
        });
        let gone: Vec<_> = gone.collect();
        for batch in gone.chunks(MAX_CHANGES) {
            let unchanged = batch.iter().map(|(key, at)| is_at(key, *at));
            let compares: Vec<_> = unchanged.chain([is_at(current, base)]).collect();
            let deletes: Vec<_> =
                batch.iter().map(|(key, _)| TxnOp::delete(&**key, None)).collect();
            if !self.transact(Txn::new().when(compares).and_then(deletes)).await?.is_done {
                return Ok(None);
            }
        }
        Ok(Some(gone.len()))
    }
}
