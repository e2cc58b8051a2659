use std::net::IpAddr;

use super::Full;
use lb_maps::MapsError;

/// Why the maps could not be brought to what is wanted.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The kernel refused something.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// A map has no room; nothing was changed.
    #[error(transparent)]
    Full(#[from] Full),
    /// A map has no room while remaps settle; nothing was changed.
    #[error(
        "{full}; {pools} pools are still settling after a remap, and give back what they \
         needed before when their settle time is over"
    )]
    Settling {
        /// What there is no room for.
        full: Full,
        /// Pools that have two versions.
        pools: usize,
    },
    /// A number is another's: the ids do not go with these maps. Nothing was changed.
    #[error("backend {address}: its number {index} belongs to {owner}, which the maps still name")]
    NumberTaken {
        /// The backend.
        address: IpAddr,
        /// Its number.
        index: u32,
        /// Whose it is.
        owner: IpAddr,
    },
    /// A next-hop word has 16 bits for the interface.
    #[error("interface {0}: its index is beyond 65535, which a next hop cannot name")]
    InterfaceIndex(u32),
}
