//! Which places of the maps are taken. Kept in memory only: a daemon that starts reads what is
//! published, and everything else is free.

mod extents;
mod indices;

pub(super) use extents::{Extent, Extents};
pub(super) use indices::Indices;

/// A map has no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {wanted} more are needed in one piece, the largest free one has {free}")]
pub struct Full {
    /// What there is no room for.
    pub what: &'static str,
    /// Entries asked for.
    pub wanted: u32,
    /// Entries of the largest free piece.
    pub free: u32,
}
