//! What is free in each map that this daemon writes blocks into.

use lb_common::abi::{limiter::FIRST_LIMITER, limits, slot::TableRef};

use super::{
    Full,
    allocate::{Extents, Indices},
    published::{Published, PublishedGroup},
};

#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) descriptors: Indices,
    pub(super) groups: Indices,
    pub(super) members: Extents,
    pub(super) limiters: Indices,
    tables: Indices,
    sized_tables: Indices,
}

impl Room {
    /// All maps, empty.
    pub(super) fn new() -> Self {
        let mut limiters = Indices::new("limiters", limits::MAX_LIMITERS);
        // The packet path's own.
        for limiter in 1..FIRST_LIMITER {
            limiters.reserve(limiter);
        }
        Self {
            limiters,
            descriptors: Indices::new("descriptors", limits::MAX_DESCRIPTORS),
            groups: Indices::new("groups", limits::MAX_GROUPS),
            members: Extents::new("members", limits::MAX_MEMBERS),
            tables: Indices::new("tables of the default size", limits::MAX_TABLES),
            sized_tables: Indices::new("tables of other sizes", limits::MAX_TABLES),
        }
    }

    /// What is left beside what is published.
    pub(super) fn beside(published: &Published) -> Self {
        let mut room = Self::new();
        for descriptor in published.descriptors() {
            room.descriptors.reserve(descriptor);
        }
        for (index, group) in &published.groups {
            room.groups.reserve(*index);
            room.members.reserve(group.extent());
            room.reserve_table(TableRef(group.group.head.table));
        }
        for limiter in published.limiters() {
            room.limiters.reserve(limiter);
        }
        room
    }

    fn reserve_table(&mut self, table: TableRef) {
        let indices = if table.is_sized() { &mut self.sized_tables } else { &mut self.tables };
        indices.reserve(table.index());
    }

    /// A place for a table.
    pub(super) fn table(&mut self, slots: u32) -> Result<TableRef, Full> {
        if slots == limits::DEFAULT_SLOTS {
            self.tables.allocate().map(TableRef::default_size)
        } else {
            self.sized_tables.allocate().map(TableRef::sized)
        }
    }

    pub(super) fn free_table(&mut self, table: TableRef) {
        let indices = if table.is_sized() { &mut self.sized_tables } else { &mut self.tables };
        indices.free(table.index());
    }

    pub(super) fn free_group(&mut self, index: u32, group: &PublishedGroup) {
        self.groups.free(index);
        self.members.free(group.extent());
    }
}
