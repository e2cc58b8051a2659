//! The fast path: the packet goes home, and no entry is looked up or written.

use super::{
    admit,
    parse::Kind,
    query::{Query, VersionedQuery},
    select::{self, Choice},
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
        Kind::OpenConnection => query.is_settled(),
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
    let choice = owner.choice(tables, kind);
    if let Some(choice) = &choice
        && kind == Kind::NewConnection
    {
        admit::count(tables, query, choice, false);
    }
    Ok(choice)
}

impl VersionedQuery<'_> {
    /// Whether every open connection is at home, and no remap is under way.
    #[inline(always)]
    pub(super) fn is_settled(&self) -> bool {
        !self.line().has_displaced() && self.line().versions().previous() == 0
    }

    /// Whether a SYN that goes home needs no handshake entry.
    #[inline(always)]
    pub(super) fn is_stateless(&self) -> bool {
        self.is_settled() && self.descriptor.flags & LIMITED == 0
    }
}
