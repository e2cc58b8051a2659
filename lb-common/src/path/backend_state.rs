//! Whether the backend of a remembered connection still accepts its packets.

use super::{
    query::VersionedQuery,
    select::{Choice, REMEMBERED},
    tables::Tables,
};
use crate::abi::{
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
    let known = tables.backend_state(placed.backend)?;
    if known.incarnation() != placed.incarnation {
        return None;
    }
    let state = if known.is_shared() {
        tables.shared_backend(query.pool(), placed.backend)
    } else {
        known.accepts_in(query.pool())
    };
    if state == Accepts::Nothing {
        return None;
    }
    let next_hop = tables.next_hop(u32::from(known.next_hop())).filter(|hop| hop.is_resolved())?;
    let member =
        MemberWord::new(placed.backend, placed.incarnation, state, FULL_RAMP, known.next_hop());
    Some(Choice { member, next_hop, region: REMEMBERED })
}
