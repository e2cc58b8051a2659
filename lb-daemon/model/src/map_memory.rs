//! Kernel memory of the packet path's maps.
//!
//! All maps but the slot tables are as large as the daemon's start made them, whatever is configured.
//! Each different table is a map of its own. While a change settles, tables from before it are there
//! beside those of after it.

use lb_common::abi::{limits::DEFAULT_SLOTS, names, slot::table_words};

/// Size of a page, which the memory of a table begins and ends with.
const PAGE: u64 = 4096;

/// Bytes of a table with so many slots: the kernel's head of the map, then its words, each on pages of
/// their own as they are mapped into the daemon.
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
    /// Of all that are there while the change is made.
    pub peak: u64,
}

impl TableMemory {
    /// Counts tables by their slots; `before` are those that are there and not among them.
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

/// What the maps take, and what they may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Maps as they were made, by name; arrays of maps without what stands in them.
    pub made: Vec<(String, u64)>,
    /// Most that all may take; `None`: no limit.
    pub limit: Option<u64>,
}

/// What a configuration needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Each map by name; tables count for the array they stand in.
    pub maps: Vec<(String, u64)>,
    /// All of them, once the change has settled.
    pub needed: u64,
    /// All of them until then.
    pub peak: u64,
    /// Most that they may take; `None`: no limit.
    pub limit: Option<u64>,
}

impl Budget {
    /// All maps with a configuration's tables in them.
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
    /// Whether there is ever more of it than there may be.
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
