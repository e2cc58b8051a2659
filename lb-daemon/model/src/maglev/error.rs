use std::net::IpAddr;

use super::MAX_MEMBERS;

/// Why there is no table for a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The number of slots has a divisor, so some members would not reach all slots.
    #[error("{0} slots: not a prime")]
    NotPrime(u32),
    /// There is no member, or all weights are 0.
    #[error("members: none has a weight above 0")]
    NoWeight,
    /// Ranks are 16 bits wide.
    #[error("{0} members: at most {MAX_MEMBERS} have ranks")]
    TooManyMembers(usize),
    /// Not every member could own a slot.
    #[error("{members} members: more than the table's {slots} slots")]
    MoreMembersThanSlots {
        /// Members, those of weight 0 included.
        members: usize,
        /// Slots of the table.
        slots: u32,
    },
    /// Two members have one key.
    #[error("member {0}: given twice")]
    Duplicate(IpAddr),
}
