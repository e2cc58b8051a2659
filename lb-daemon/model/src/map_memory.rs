//! Kernel memory of the packet path's maps.
//!
//! All maps except slot tables get their size when the daemon starts, whatever is configured. Each different table is
//! a map of its own. During a remap the tables from before and after exist together.

use lb_common::abi::{limits::DEFAULT_SLOTS, names, slot::table_words};

/// The memory of a table is a whole number of pages.
const PAGE: u64 = 4096;

/// Bytes of a table: the kernel's head of the map and its words, which are on separate pages because the daemon maps
/// the words.
pub fn table_bytes(slots: u32) -> u64 {
    PAGE + (8 * u64::from(table_words(slots))).next_multiple_of(PAGE)
}

/// Bytes of slot tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Of tables with the default number of slots.
    pub default_size: u64,
    /// Of tables with other numbers.
    pub sized: u64,
    /// Of all tables that exist during the change.
    pub peak: u64,
}

impl TableMemory {
    /// Sums up tables by their slots. `before` are existing tables that are not in `after`.
    pub fn count(after: impl Iterator<Item = u32>, before: impl Iterator<Item = u32>) -> Self {
        let mut memory = Self::default();
        for slots in after {
            match slots {
                DEFAULT_SLOTS => memory.default_size += table_bytes(slots),
                _ => memory.sized += table_bytes(slots),
            }
        }
        memory.peak = memory.default_size + memory.sized + before.map(table_bytes).sum::<u64>();
        memory
    }
}

/// Memory of the maps as created, and the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of each map by name; arrays of maps without their inner maps.
    pub made: Vec<(String, u64)>,
    /// Maximum for all maps; `None`: no limit.
    pub limit: Option<u64>,
}

/// Memory that a configuration needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of each map by name; tables count for the array that holds them.
    pub maps: Vec<(String, u64)>,
    /// Of all maps after the remap.
    pub needed: u64,
    /// Of all maps during the remap.
    pub peak: u64,
    /// Maximum for all maps; `None`: no limit.
    pub limit: Option<u64>,
}

impl Budget {
    /// The memory of all maps with a configuration's tables.
    pub fn with(&self, tables: &TableMemory) -> Memory {
        let of = |name: &str| match name {
            names::TABLES => tables.default_size,
            names::SIZED_TABLES => tables.sized,
            _ => 0,
        };
        let maps: Vec<_> =
            self.made.iter().map(|(name, bytes)| (name.clone(), bytes + of(name))).collect();
        let made: u64 = self.made.iter().map(|(_, bytes)| bytes).sum();
        let needed = made + tables.default_size + tables.sized;
        Memory { maps, needed, peak: made + tables.peak, limit: self.limit }
    }
}

impl Memory {
    /// Whether the peak exceeds the limit.
    pub fn exceeds(&self) -> bool {
        self.limit.is_some_and(|limit| self.peak > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_pages() {
        // 65537 words of slots, 16385 of owners: 655,376 bytes are 161 pages; and the head.
        assert_eq!(table_bytes(65_537), 162 * 4096);
        assert_eq!(table_bytes(7), 2 * 4096);
    }

    #[test]
    fn what_goes_counts_until_it_has_gone() {
        let made = vec![("POOLS".into(), 100), ("TABLES".into(), 10), ("SIZED_TABLES".into(), 1)];
        let budget = Budget { made, limit: Some(1_000_000) };
        let tables = TableMemory::count([65_537, 7].into_iter(), [7, 7].into_iter());
        let memory = budget.with(&tables);
        let maps = [("POOLS", 100), ("TABLES", 663_562), ("SIZED_TABLES", 8_193)];
        assert_eq!(memory.maps, maps.map(|(name, bytes)| (name.to_owned(), bytes)));
        assert_eq!((memory.needed, memory.peak), (671_855, 671_855 + 16_384));
        assert!(!memory.exceeds());
        let tight = Memory { limit: Some(671_855 + 16_383), ..memory.clone() };
        assert!(tight.exceeds());
        assert!(!Memory { limit: None, ..memory }.exceeds());
    }
}
