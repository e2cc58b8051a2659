use std::num::NonZeroU32;

use crate::{
    reconcile::ReconcileError,
    store::{SchemaMismatch, StoreError},
};
use lb_base::Quoted;
use lb_model::{ids::Exhausted, map_memory::Memory, plan::PlanError};

/// Why a valid command was not, or not wholly, carried out.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody else was faster.
    #[error("generation {current} is in force, not {expected}")]
    Conflict {
        /// The generation that was expected.
        expected: u64,
        /// The one in force.
        current: u64,
    },
    /// Fields would be lost that only the client, the daemon or the store knows. Nothing changed.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// The daemon cannot use what is stored, and knows no pools.
    #[error("the stored configuration cannot be used: {0}")]
    Unusable(String),
    /// Several balancers would each hash with a key of their own. Nothing changed.
    #[error("hash_key: {balancers} balancers choose alike only with one key, and none is set")]
    NoHashKey {
        /// How many there are.
        balancers: NonZeroU32,
        /// The key that this daemon hashes with where none is set: a secret of the fleet.
        own_key: [u64; 2],
    },
    /// Too many numbers are in use or at rest. Nothing changed.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The configuration has no plan. Nothing changed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The packet path has no room. Nothing changed.
    #[error("the packet path cannot take it")]
    Room(#[source] ReconcileError),
    /// The maps would take more memory than they may. Nothing changed.
    #[error("the maps would take {} bytes, more than the {} of map-memory-limit{}",
        .0.peak, .0.limit.unwrap_or_default(), settled(.0))]
    Memory(Box<Memory>),
    /// The store cannot be written. Nothing changed.
    #[error("nothing was changed, for the store cannot take it")]
    Store(#[from] StoreError),
    /// It is in force and on disk, but not in the packet path.
    #[error("{}", packet_path_behind(*.generation))]
    Behind {
        /// The generation.
        generation: u64,
        /// What stands in the way.
        source: ReconcileError,
    },
    /// No pool has the name.
    #[error("pool {} does not exist", Quoted(.0))]
    NoPool(String),
    /// The pool has no such backend.
    #[error("pool {}: it has no backend {}", Quoted(.0), Quoted(.1))]
    NoBackend(String, String),
    /// The maps cannot be read.
    #[error("the packet path cannot be read")]
    Unreadable(#[source] ReconcileError),
}

/// That packets do not go by a generation yet, which an error and a warning say alike.
pub(crate) fn packet_path_behind(generation: u64) -> String {
    format!(
        "generation {generation} is in force, but the packet path is not there yet and is tried again every second"
    )
}

fn settled(memory: &Memory) -> String {
    let fits = memory.limit.is_some_and(|limit| memory.needed <= limit);
    match fits {
        true => format!("; {} once earlier tables are gone", memory.needed),
        false => String::new(),
    }
}
