//! The backend of a connection that is remembered.

use super::{
    choose::{Choice, REMEMBERED},
    question::Ask,
    tables::Tables,
};
use crate::abi::{
    member::{FULL_RAMP, MemberState, MemberWord},
    record::Placed,
};

/// The choice of where a connection is, while the pool that it is of has that backend, not dead, and it can be
/// reached.
#[inline(always)]
pub(super) fn choice<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    placed: Placed,
) -> Option<Choice> {
    let host = tables.host(placed.backend)?;
    if host.incarnation() != placed.incarnation {
        return None;
    }
    let state = if host.is_shared() {
        tables.shared_backend(ask.pool(), placed.backend)
    } else {
        host.state_in(ask.pool())
    };
    if state == MemberState::Dead {
        return None;
    }
    let next_hop = tables.next_hop(u32::from(host.next_hop())).filter(|hop| hop.is_resolved())?;
    let member =
        MemberWord::new(placed.backend, placed.incarnation, state, FULL_RAMP, host.next_hop());
    Some(Choice { member, next_hop, region: REMEMBERED })
}
