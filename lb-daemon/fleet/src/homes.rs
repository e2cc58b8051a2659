//! Changes of what is marked out for a region's balancers.

use etcd_client::{Txn, TxnOp};
use lb_model::Name;

use crate::{
    Document, DocumentError, EtcdError, Fleet, documents::Homes, overrides::MAX_CHANGES,
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
}
