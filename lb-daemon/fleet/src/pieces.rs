//! Puts configurations together from their pieces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lb_pieces::{Digest, MAX_PIECE};

use crate::{
    EtcdError, Fleet, FleetKey, commit::MAX_CONFIGURATION, documents::Generation,
    transaction::MOST_GETS,
};

/// Why a configuration cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PiecesError {
    /// A piece is missing, damaged or too large.
    Damaged(String),
    Etcd(EtcdError),
}

/// The pieces of the last configuration that was put together, by digest: a piece never changes, so each is fetched once.
#[derive(Debug, Default)]
pub(crate) struct PieceCache {
    pieces: BTreeMap<Digest, Arc<[u8]>>,
}

impl PieceCache {
    /// The bytes of a generation. What the generation does not have is forgotten.
    ///
    /// # Errors
    /// [`PiecesError`]
    pub(crate) async fn join(
        &mut self,
        fleet: &Fleet,
        generation: &Generation,
    ) -> Result<Arc<[u8]>, PiecesError> {
        let damaged = PiecesError::Damaged;
        if generation.size > MAX_CONFIGURATION as u64 {
            return Err(damaged(format!("it has more than {MAX_CONFIGURATION} bytes")));
        }
        self.fetch_missing(fleet, generation).await?;
        let mut kept = BTreeMap::new();
        let mut bytes = Vec::new();
        for digest in &generation.pieces {
            let piece = self.pieces.get(digest);
            let piece = piece.ok_or_else(|| damaged(format!("piece {digest} is missing")))?;
            bytes.extend_from_slice(piece);
            if bytes.len() as u64 > generation.size {
                break;
            }
            kept.insert(*digest, Arc::clone(piece));
        }
        if bytes.len() as u64 != generation.size {
            let size = generation.size;
            return Err(damaged(format!("it has {} bytes instead of {size}", bytes.len())));
        }
        self.pieces = kept;
        Ok(bytes.into())
    }

    /// Fetches and verifies the pieces of a generation that are not here yet, as far as etcd has them.
    async fn fetch_missing(
        &mut self,
        fleet: &Fleet,
        generation: &Generation,
    ) -> Result<(), PiecesError> {
        let keys = fleet.keys();
        let digests: BTreeSet<&Digest> = generation.pieces.iter().collect();
        let missing = digests.into_iter().filter(|digest| !self.pieces.contains_key(digest));
        let missing: Vec<_> = missing.map(|digest| keys.chunk(digest)).collect();
        let mut size = 0;
        for batch in missing.chunks(MOST_GETS) {
            for row in fleet.get_together(batch).await.map_err(PiecesError::Etcd)? {
                let FleetKey::Chunk(digest) = keys.parse(&row.key) else { continue };
                size += row.value.len() as u64;
                if row.value.len() > MAX_PIECE || Digest::new(&row.value) != digest {
                    return Err(PiecesError::Damaged(format!("piece {digest} is damaged")));
                }
                self.pieces.insert(digest, row.value.into());
            }
            if size > generation.size {
                let size = generation.size;
                let cause = format!("its pieces have more than its {size} bytes");
                return Err(PiecesError::Damaged(cause));
            }
        }
        Ok(())
    }
}
