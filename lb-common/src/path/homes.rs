//! Where the tables alone put a flow: now, and after the remap.

use super::{
    query::VersionedQuery,
    select::{self, Home, placement},
    tables::Tables,
};
use crate::abi::{connection::Placement, verdict::Verdict};

/// A flow's homes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Homes {
    /// Where its open connections without a cell are.
    pub(super) now: Home,
    /// Where it will be, if that is elsewhere.
    next: Option<Placement>,
}

impl Homes {
    /// # Errors
    /// As [`select::home`].
    #[inline(always)]
    pub(super) fn new<'t, T: Tables + ?Sized>(
        tables: &'t T,
        query: &VersionedQuery<'t>,
    ) -> Result<Self, Verdict> {
        let now = select::home(tables, query.descriptor, query.hash)?;
        let next = next_home(tables, query, placement(now.member));
        Ok(Self { now, next })
    }

    /// Whether the remap moves the flow.
    #[inline(always)]
    pub(super) const fn differ(&self) -> bool {
        self.next.is_some()
    }

    /// Whether a connection at this backend needs no cell.
    #[inline(always)]
    pub(super) fn are_at(&self, placed: Placement) -> bool {
        !self.differ() && placement(self.now.member) == placed
    }
}

/// Where a flow will be after the remap, if that is elsewhere.
#[inline(always)]
pub(super) fn next_home<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
    now: Placement,
) -> Option<Placement> {
    let next = query.next(tables)?;
    let next = select::home(tables, next.descriptor, next.hash).ok()?;
    (placement(next.member) != now).then(|| placement(next.member))
}

/// The query by the version by which a new connection is placed.
#[inline(always)]
pub(super) fn placing<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
) -> VersionedQuery<'t> {
    query.next(tables).unwrap_or(*query)
}
