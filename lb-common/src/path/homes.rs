//! Where the tables alone put a flow: now, and after the remap.

use super::{
    query::VersionedQuery,
    select::{self, Home, placement},
    tables::Tables,
};
use crate::abi::connection::Placement;

/// A flow's homes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Homes {
    /// Where its open connections without a cell are.
    pub(super) now: Home,
    /// Whether the remap moves it.
    differ: bool,
}

impl Homes {
    /// Of a flow with this home, which is not looked up here: a `Result` of `Homes` would have bytes that nothing sets.
    #[inline(always)]
    pub(super) fn new<'t, T: Tables + ?Sized>(
        tables: &'t T,
        query: &VersionedQuery<'t>,
        now: Home,
    ) -> Self {
        Self { now, differ: is_moved(tables, query, placement(now.member)) }
    }

    /// Whether the remap moves the flow.
    #[inline(always)]
    pub(super) const fn differ(&self) -> bool {
        self.differ
    }

    /// Whether a connection at this backend needs no cell.
    #[inline(always)]
    pub(super) fn are_at(&self, placed: Placement) -> bool {
        !self.differ() && placement(self.now.member) == placed
    }
}

/// Whether the remap moves a flow from this home.
#[inline(always)]
pub(super) fn is_moved<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
    now: Placement,
) -> bool {
    let Some(next) = query.next(tables) else { return false };
    select::home(tables, next.descriptor, next.hash).is_ok_and(|home| placement(home.member) != now)
}

/// The query by the version by which a new connection is placed.
#[inline(always)]
pub(super) fn placing<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
) -> VersionedQuery<'t> {
    query.next(tables).unwrap_or(*query)
}
