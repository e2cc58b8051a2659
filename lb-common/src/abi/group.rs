//! Groups: a pool's members in one region.

/// What a look-up in a group needs, 16 bytes. A descriptor holds a copy of its first group's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHead {
    /// [`super::table_ref::TableRef`] of the slot table.
    pub table: u32,
    /// Slots of that table (a prime).
    pub slots: u32,
    /// Index of the first word of the member block.
    pub members: u32,
    /// Members in the block; ranks count from 0.
    pub member_count: u32,
}

/// A group. Immutable once published.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Table and members.
    pub head: GroupHead,
    /// Index of the region in the store, for people.
    pub region: u32,
    /// Index of its [`super::limiter::Limiter`] and [`super::counter::GroupCounter`]; 0: none.
    pub limiter: u32,
    /// Zero.
    pub reserved: [u32; 2],
}
