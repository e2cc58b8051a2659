//! What of the displaced entries' tables may be filled by whom.

use lb_common::abi::limiter::{ADOPTIONS_V4, ADOPTIONS_V6, DISPLACED_V4, DISPLACED_V6, LimitWord};

use lb_model::capacity::{displaced_budget, split_displaced_room};

/// The packet path's own limiters with the limits for tables that have so many free entries, of IPv4 and
/// of IPv6.
pub(in crate::reconcile) fn budgets(free: [u32; 2]) -> [(u32, LimitWord); 4] {
    let [[v4, adopted_v4], [v6, adopted_v6]] = free.map(split_displaced_room);
    [
        (DISPLACED_V4, displaced_budget(v4)),
        (DISPLACED_V6, displaced_budget(v6)),
        (ADOPTIONS_V4, displaced_budget(adopted_v4)),
        (ADOPTIONS_V6, displaced_budget(adopted_v6)),
    ]
}
