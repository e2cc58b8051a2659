//! Puts configurations together from their pieces.

use std::{collections::BTreeMap, sync::Arc};

use lb_pieces::{Digest, MAX_PIECE};

use crate::{EtcdError, Fleet, commit::MAX_PIECES, documents::Generation};

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
        if generation.pieces.len() > MAX_PIECES {
            return Err(damaged(format!("it has more than {MAX_PIECES} pieces")));
        }
        let mut kept = BTreeMap::new();
        let mut bytes = Vec::new();
        for digest in &generation.pieces {
            let piece = match self.pieces.get(digest).or_else(|| kept.get(digest)) {
                Some(piece) => Arc::clone(piece),
                None => {
                    let row = fleet.get(&fleet.keys().chunk(digest)).await;
                    let row = row.map_err(PiecesError::Etcd)?;
                    let row = row.ok_or_else(|| damaged(format!("piece {digest} is missing")))?;
                    if row.value.len() > MAX_PIECE || Digest::new(&row.value) != *digest {
                        return Err(damaged(format!("piece {digest} is damaged")));
                    }
                    row.value.into()
                }
            };
            bytes.extend_from_slice(&piece);
            kept.insert(*digest, piece);
        }
        if bytes.len() as u64 != generation.size {
            let size = generation.size;
            return Err(damaged(format!("it has {} bytes instead of {size}", bytes.len())));
        }
        self.pieces = kept;
        Ok(bytes.into())
    }
}
