//! Where the tables alone put a flow: now, and after the remap.

use super::{
    query::{Query, VersionedQuery},
    select::{self, Home, placement},
    tables::Tables,
};
use crate::{
    abi::{connection::Placement, member::MemberWord, pool::Descriptor, verdict::Verdict},
    flow_hash::FlowHash,
};

/// A flow's homes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Homes {
    /// Where its open connections without a cell are.
    pub(super) now: Home,
    /// Whether the remap moves it.
    pub(super) differ: bool,
}

impl Homes {
    /// Of a flow with this home. A `Result` of `Homes` would have bytes that nothing sets.
    #[inline(always)]
    pub(super) fn new<'t, T: Tables + ?Sized>(
        tables: &'t T,
        query: &VersionedQuery<'t>,
        now: Home,
    ) -> Self {
        #[inline(never)]
        fn out_of_line<'t, T: Tables + ?Sized>(
            tables: &'t T,
            query: &VersionedQuery<'t>,
            now: MemberWord,
        ) -> bool {
            is_moved(tables, query, placement(now))
        }
        Self { now, differ: out_of_line(tables, query, now.member) }
    }

    /// Whether a connection at this backend needs no cell.
    #[inline(always)]
    pub(super) fn are_at(&self, placed: Placement) -> bool {
        !self.differ && placement(self.now.member) == placed
    }
}

/// Both homes of a query's flow, the second one during a remap: for whoever explains.
///
/// # Errors
/// As [`select::home`].
pub fn homes<T: Tables + ?Sized>(
    tables: &T,
    query: &Query,
) -> Result<(Home, Option<Home>), Verdict> {
    let query = VersionedQuery::new(tables, query)?;
    let now = select::home(tables, query.descriptor, query.hash)?;
    let next = query.next(tables).map(|next| by(tables, next.descriptor, next.hash));
    Ok((now, next))
}

/// Whether the remap moves a flow from this home.
#[inline(always)]
pub(super) fn is_moved<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
    now: Placement,
) -> bool {
    match query.next(tables) {
        Some(next) => leads_elsewhere(tables, (next.descriptor, next.hash), now),
        None => false,
    }
}

/// Whether a version puts a flow elsewhere; out of line, because few packets are of a remap.
#[inline(never)]
fn leads_elsewhere<T: Tables + ?Sized>(
    tables: &T,
    (descriptor, hash): (&Descriptor, FlowHash),
    now: Placement,
) -> bool {
    placement(by(tables, descriptor, hash).member) != now
}

/// Turns a query and its home to those by which a new connection is placed.
#[inline(never)]
pub(super) fn place_by_next<'t, T: Tables + ?Sized>(
    tables: &'t T,
    query: &mut VersionedQuery<'t>,
    home: &mut Home,
) {
    if let Some(next) = query.next(tables) {
        *query = next;
        *home = by(tables, query.descriptor, query.hash);
    }
}

/// Home by the next version; nobody where that has no members.
#[inline(always)]
fn by<T: Tables + ?Sized>(tables: &T, next: &Descriptor, hash: FlowHash) -> Home {
    select::home(tables, next, hash).unwrap_or(Home::NOBODY)
}
