//! The backend of a connection that is remembered.

use super::{
    choose::{Choice, REMEMBERED},
    tables::Tables,
};
use crate::abi::{
    member::{FULL_RAMP, MemberState, MemberWord},
    record::Placed,
};

/// The choice of where a connection is, while its host lives and can be reached.
#[inline(always)]
pub(super) fn choice<T: Tables + ?Sized>(tables: &T, placed: Placed) -> Option<Choice> {
    let host = tables.host(placed.backend)?;
    if host.incarnation() != placed.incarnation || host.state() == MemberState::Dead {
        return None;
    }
    let next_hop = tables.next_hop(u32::from(host.next_hop())).filter(|hop| hop.is_resolved())?;
    let member = MemberWord::new(
        placed.backend,
        placed.incarnation,
        host.state(),
        FULL_RAMP,
        host.next_hop(),
    );
    Some(Choice { member, next_hop, region: REMEMBERED })
}
