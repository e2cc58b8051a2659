use std::collections::BTreeMap;

use super::Full;

/// A run of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::reconcile) struct Extent {
    pub(in crate::reconcile) start: u32,
    pub(in crate::reconcile) length: u32,
}

/// The free runs of a map: what is asked for is cut from the smallest that is large enough, so that
/// large ones stay.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct Extents {
    what: &'static str,
    /// Length by start; no two runs touch.
    free: BTreeMap<u32, u32>,
}

impl Extents {
    /// All of a map's entries, free.
    pub(in crate::reconcile) fn new(what: &'static str, entries: u32) -> Self {
        Self { what, free: [(0, entries)].into() }
    }

    /// Takes a run that is in use already; false, changing nothing, where some of it is taken.
    pub(in crate::reconcile) fn reserve(&mut self, extent: Extent) -> bool {
        let Extent { start, length } = extent;
        if length == 0 {
            return true;
        }
        let Some((&run, &size)) = self.free.range(..=start).next_back() else { return false };
        let Some(end) = start.checked_add(length).filter(|end| *end <= run + size) else {
            return false;
        };
        self.free.remove(&run);
        self.put(run, start - run);
        self.put(end, run + size - end);
        true
    }

    /// Takes a run of a length; that of length 0 is nowhere in particular.
    pub(in crate::reconcile) fn allocate(&mut self, length: u32) -> Result<Extent, Full> {
        if length == 0 {
            return Ok(Extent { start: 0, length });
        }
        let fitting = self.free.iter().filter(|(_, size)| **size >= length);
        let Some((&start, &size)) = fitting.min_by_key(|(_, size)| **size) else {
            let free = self.free.values().copied().max().unwrap_or(0);
            return Err(Full { what: self.what, wanted: length, free });
        };
        self.free.remove(&start);
        self.put(start + length, size - length);
        Ok(Extent { start, length })
    }

    /// Gives a run back.
    pub(in crate::reconcile) fn free(&mut self, extent: Extent) {
        let Extent { mut start, mut length } = extent;
        if length == 0 {
            return;
        }
        if let Some((&before, &size)) = self.free.range(..start).next_back()
            && before + size == start
        {
            self.free.remove(&before);
            (start, length) = (before, length + size);
        }
        if let Some(size) = self.free.remove(&(start + length)) {
            length += size;
        }
        self.put(start, length);
    }

    fn put(&mut self, start: u32, length: u32) {
        if length > 0 {
            self.free.insert(start, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const ENTRIES: u32 = 64;

    /// The same by a flag for each entry.
    fn model(taken: &[Extent]) -> Vec<bool> {
        let mut entries = vec![false; ENTRIES as usize];
        for extent in taken {
            for entry in &mut entries[extent.start as usize..][..extent.length as usize] {
                assert!(!std::mem::replace(entry, true), "{extent:?} overlaps");
            }
        }
        entries
    }

    fn longest_run(entries: &[bool]) -> u32 {
        entries.split(|taken| *taken).map(|run| run.len() as u32).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn runs_never_overlap_and_are_refused_only_where_none_is_long_enough(
            steps in vec((0u32..20, any::<prop::sample::Index>(), prop::bool::ANY), 1..200),
        ) {
            let mut extents = Extents::new("members", ENTRIES);
            let mut taken: Vec<Extent> = Vec::new();
            for (length, which, free) in steps {
                if free && !taken.is_empty() {
                    extents.free(taken.swap_remove(which.index(taken.len())));
                } else {
                    let longest = longest_run(&model(&taken));
                    match extents.allocate(length) {
                        Ok(extent) => {
                            prop_assert_eq!(extent.length, length);
                            taken.push(extent);
                        }
                        Err(full) => {
                            prop_assert!(length > longest);
                            let expected = Full { what: "members", wanted: length, free: longest };
                            prop_assert_eq!(full, expected);
                        }
                    }
                }
                model(&taken);
            }
            for extent in taken {
                extents.free(extent);
            }
            prop_assert_eq!(extents.free, BTreeMap::from([(0, ENTRIES)]));
        }

        #[test]
        fn what_is_reserved_at_start_is_what_was_taken_before(
            wanted in vec((0..ENTRIES, 0u32..9), 0..30),
        ) {
            let mut extents = Extents::new("members", ENTRIES);
            let mut taken = Vec::new();
            for (start, length) in wanted {
                let extent = Extent { start, length };
                let end = (start + length) as usize;
                let entries = model(&taken);
                let free = end <= entries.len() && !entries[start as usize..end].contains(&true);
                prop_assert_eq!(extents.reserve(extent), free || length == 0);
                if free {
                    taken.push(extent);
                }
            }
            let free: u32 = extents.free.values().sum();
            prop_assert_eq!(free, model(&taken).iter().filter(|taken| !**taken).count() as u32);
        }
    }

    #[test]
    fn the_smallest_run_that_fits_is_cut() {
        let mut extents = Extents::new("members", ENTRIES);
        for start in [10, 20, 40] {
            assert!(extents.reserve(Extent { start, length: 4 }));
        }
        // Free: 0..10, 14..20, 24..40, 44..64.
        assert_eq!(extents.allocate(6), Ok(Extent { start: 14, length: 6 }));
        assert_eq!(extents.allocate(11), Ok(Extent { start: 24, length: 11 }));
        assert_eq!(extents.allocate(3), Ok(Extent { start: 35, length: 3 }));
        assert_eq!(
            extents.allocate(21).unwrap_err().to_string(),
            "members: 21 more are needed in one piece, the largest free one has 20"
        );
    }
}
