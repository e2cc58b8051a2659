//! Tables that were built to be compared, and are about to be published: so none is built twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{TableId, TableSpec, owners::Owned};

/// Slots of all tables that are kept, 4 bytes each. Beyond that tables are built again: a change of a thousand large pools
/// would take hundreds of megabytes otherwise.
const MOST_SLOTS: usize = 16 << 20;

/// The owners of slots of tables, by the tables' names.
#[derive(Debug, Default)]
pub struct BuiltTables(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    tables: HashMap<TableId, Arc<Owned>>,
    slots: usize,
}

impl BuiltTables {
    /// The rank of the owner of each slot, as [`TableSpec::owners`]. The table is kept, if there is room.
    pub fn owners(&self, spec: &TableSpec) -> Vec<u16> {
        let id = spec.id();
        let kept = self.kept().tables.get(&id).cloned();
        let owned = kept.unwrap_or_else(|| {
            let (owned, slots) = (Arc::new(spec.owned()), spec.slots() as usize);
            let mut kept = self.kept();
            if kept.slots + slots <= MOST_SLOTS && !kept.tables.contains_key(&id) {
                kept.slots += slots;
                kept.tables.insert(id, Arc::clone(&owned));
            }
            owned
        });
        owned.ranks()
    }

    /// As [`TableSpec::fill`], without building a table that is kept.
    pub fn fill(&self, spec: &TableSpec, set: impl FnMut(u32, lb_common::abi::slot::SlotWord)) {
        let kept = self.kept().tables.get(&spec.id()).cloned();
        match kept {
            Some(owned) => spec.fill_from(&owned, set),
            None => spec.fill(set),
        }
    }

    /// Whether a table is kept.
    pub fn has(&self, id: &TableId) -> bool {
        self.kept().tables.contains_key(id)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::maglev::Member;

    fn spec(members: u8, slots: u32) -> TableSpec {
        let member = |n: u8| Member {
            key: std::net::IpAddr::from(Ipv4Addr::new(10, 0, 0, n)).into(),
            weight: u32::from(n % 3) + 1,
        };
        TableSpec::new(&(1..=members).map(member).collect::<Vec<_>>(), slots).unwrap()
    }

    #[test]
    fn a_kept_table_is_the_one_that_would_be_built() {
        let built = BuiltTables::default();
        for spec in [spec(3, 31), spec(7, 251), spec(7, 257), spec(200, 65_537)] {
            let filled = |built: &BuiltTables| {
                let mut words = vec![0; spec.slots() as usize];
                built.fill(&spec, |slot, list| words[slot as usize] = list.0);
                words
            };
            assert!(!built.has(&spec.id()));
            assert_eq!(filled(&built), spec.build().words());
            for _ in 0..2 {
                assert_eq!(built.owners(&spec), spec.owners());
                assert!(built.has(&spec.id()));
            }
            assert_eq!(filled(&built), spec.build().words());
        }
        assert_eq!(built.kept().slots, 31 + 251 + 257 + 65_537, "each is kept once");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let built = BuiltTables::default();
        let large = (1..=50).map(|members| spec(members, 419_423));
        let kept = large.filter(|spec| {
            assert_eq!(built.owners(spec), spec.owners());
            built.has(&spec.id())
        });
        assert_eq!(kept.count(), MOST_SLOTS / 419_423);
    }
}
