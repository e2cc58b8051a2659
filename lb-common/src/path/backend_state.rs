//! Whether the backend of a remembered connection still accepts its packets.

use super::{
    query::VersionedQuery,
    select::{Choice, REMEMBERED},
    tables::Tables,
};
use crate::abi::{
    backend::BackendStateWord,
    connection::Placement,
    member::{Accepts, FULL_RAMP, MemberWord},
};

/// Chooses the backend of a remembered connection, if the pool has it, it accepts packets of open connections, and its
/// next hop is resolved.
#[inline(always)]
pub(super) fn choose<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    placed: Placement,
) -> Option<Choice> {
    let (known, state) = state(tables, query, placed)?;
    let next_hop = tables.next_hop(u32::from(known.next_hop())).filter(|hop| hop.is_resolved())?;
    let member =
        MemberWord::new(placed.backend, placed.incarnation, state, FULL_RAMP, known.next_hop());
    Some(Choice { member, next_hop, region: REMEMBERED })
}

/// Whether the backend of a remembered connection, which [`choose`] could not choose, has only lost its next hop, and may have
/// it back in a moment.
#[inline(always)]
pub(super) fn is_awaited<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    placed: Placement,
) -> bool {
    state(tables, query, placed).is_some_and(|(known, _)| known.awaits_next_hop())
}

/// A backend's state, and what it accepts of a pool's packets; `None`: nothing.
#[inline(always)]
fn state<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    placed: Placement,
) -> Option<(BackendStateWord, Accepts)> {
    let known = tables.backend_state(placed.backend)?;
    if known.incarnation() != placed.incarnation {
        return None;
    }
    let accepts = if known.is_shared() {
        tables.shared_backend(query.pool(), placed.backend)
    } else {
        known.accepts_in(query.pool())
    };
    if accepts == Accepts::Nothing { None } else { Some((known, accepts)) }
}
