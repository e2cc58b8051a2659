//! Reads an old generation, so that any balancer can go back to it.

use crate::{
    DocumentError, EtcdError, Fleet,
    commit::committed,
    pieces::{PieceCache, PiecesError},
    reader::SharedConfiguration,
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

/// Reads generations. They share pieces, and each piece is fetched once for those that follow each other.
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
