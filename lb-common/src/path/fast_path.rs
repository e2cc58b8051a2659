//! The fast path: the packet goes home, and no entry is looked up or written.

use super::{
    admit, homes,
    parse::Kind,
    query::{Query, VersionedQuery},
    select::{self, Choice, placement},
    tables::Tables,
};
use crate::abi::{pool::LIMITED, service::SERVICE_TRACKED, verdict::Verdict};

/// The member that gets a packet, if the fast path can decide; `None`: the slow path must.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub(super) fn resolve<T: Tables + ?Sized>(
    tables: &T,
    query: &Query,
    kind: Kind,
) -> Result<Option<Choice>, Verdict> {
    let query = &VersionedQuery::new(tables, query)?;
    let is_fast = match kind {
        Kind::OpenConnection => !query.may_have_cell(tables),
        Kind::NewConnection => query.is_stateless(),
        Kind::Datagram => !query.service_has(SERVICE_TRACKED),
    };
    if !is_fast {
        return Ok(None);
    }
    let owner = select::owner(tables, query.descriptor, query.hash)?;
    if owner.member.is_marked_out() {
        return Ok(None);
    }
    if kind == Kind::OpenConnection
        && homes::next_home(tables, query, placement(owner.member)).is_some()
    {
        return Ok(None);
    }
    let choice = owner.choice(tables, kind);
    if let Some(choice) = &choice
        && kind == Kind::NewConnection
    {
        admit::count(tables, query, choice, false);
    }
    Ok(choice)
}

impl VersionedQuery<'_> {
    /// Whether a SYN that goes home needs no cell.
    #[inline(always)]
    pub(super) fn is_stateless(&self) -> bool {
        let line = self.line();
        !line.has_displaced() && line.versions().next() == 0 && self.descriptor.flags & LIMITED == 0
    }
}
