//! The history: listed by its keys, and read when it is needed. A balancer keeps no generation but the current one.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    DocumentError, EtcdError, Fleet, FleetKey,
    commit::{Committed, committed},
    pieces::{PieceCache, PiecesError},
    reader::SharedConfiguration,
    transaction::MOST_GETS,
};

/// Why an old generation cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("the fleet does not keep generation {0}")]
    NotKept(u64),
    #[error("generation {generation} cannot be used: {cause}")]
    Damaged { generation: u64, cause: String },
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

impl Fleet {
    /// The numbers of the generations that etcd keeps.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn list_generations(&self) -> Result<BTreeSet<u64>, EtcdError> {
        Ok(self.list_history(None).await?.into_keys().collect())
    }

    /// The generations that etcd keeps, each with the `mod_revision` of its key, at a revision or now.
    pub(crate) async fn list_history(
        &self,
        at: Option<i64>,
    ) -> Result<BTreeMap<u64, i64>, EtcdError> {
        let keys = self.keys();
        let rows = self.range(&keys.histories(), &keys.after_histories(), at, true).await?.rows;
        let numbered = rows.iter().filter_map(|row| match keys.parse(&row.key) {
            FleetKey::History(number) => Some((number, row.mod_revision)),
            _ => None,
        });
        Ok(numbered.collect())
    }

    /// Reads what the history says of generations, without their configurations, and hands each to `visit`. Those that are
    /// removed meanwhile are left out.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn visit_generations(
        &self,
        numbers: impl IntoIterator<Item = u64>,
        mut visit: impl FnMut(u64, Result<Committed, DocumentError>),
    ) -> Result<(), EtcdError> {
        let keys = self.keys();
        let all: Vec<_> = numbers.into_iter().map(|number| keys.history(number)).collect();
        for batch in all.chunks(MOST_GETS) {
            for row in self.get_together(batch).await? {
                if let FleetKey::History(number) = keys.parse(&row.key) {
                    visit(number, committed(&row));
                }
            }
        }
        Ok(())
    }
}

/// Reads generations with their configurations. They share pieces, and each piece is fetched once for those that follow each other.
pub struct GenerationReader {
    fleet: Fleet,
    pieces: PieceCache,
}

impl GenerationReader {
    pub fn new(fleet: &Fleet) -> Self {
        Self { fleet: fleet.clone(), pieces: PieceCache::default() }
    }

    /// A generation that etcd keeps, with the bytes of its configuration, which are verified by the digests of its pieces.
    ///
    /// # Errors
    /// [`HistoryError`]
    pub async fn read(&mut self, number: u64) -> Result<SharedConfiguration, HistoryError> {
        let key = self.fleet.keys().history(number);
        let damaged = |cause| HistoryError::Damaged { generation: number, cause };
        let row = self.fleet.get(&key).await?.ok_or(HistoryError::NotKept(number))?;
        let committed = committed(&row)?;
        let said = committed.document.body.number;
        if said != number {
            return Err(damaged(format!("its value says generation {said}")));
        }
        match self.pieces.join(&self.fleet, &committed.document.body).await {
            Ok(bytes) => Ok(SharedConfiguration { committed, bytes }),
            Err(PiecesError::Etcd(error)) => Err(error.into()),
            // Generations are removed before their pieces, and this one may have been meanwhile.
            Err(PiecesError::Damaged(cause)) => match self.fleet.get(&key).await? {
                Some(_) => Err(damaged(cause)),
                None => Err(HistoryError::NotKept(number)),
            },
        }
    }
}
