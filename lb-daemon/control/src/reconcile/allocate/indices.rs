use std::collections::BTreeSet;

use super::Full;

/// The free entries of a map, taken one by one, the lowest first. Index 0 is never given out.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct Indices {
    what: &'static str,
    entries: u32,
    /// From here on everything is free; below, what `free` holds.
    untouched: u32,
    free: BTreeSet<u32>,
}

impl Indices {
    /// All of a map's entries but the first, free.
    pub(in crate::reconcile) fn new(what: &'static str, entries: u32) -> Self {
        Self { what, entries, untouched: 1, free: BTreeSet::new() }
    }

    /// Takes an index that is in use already; false, changing nothing, where it is taken or out of
    /// range.
    pub(in crate::reconcile) fn reserve(&mut self, index: u32) -> bool {
        if index < self.untouched {
            return self.free.remove(&index);
        }
        if index >= self.entries {
            return false;
        }
        self.free.extend(self.untouched..index);
        self.untouched = index + 1;
        true
    }

    /// Takes the lowest free index.
    pub(in crate::reconcile) fn allocate(&mut self) -> Result<u32, Full> {
        if let Some(index) = self.free.pop_first() {
            return Ok(index);
        }
        if self.untouched >= self.entries {
            return Err(Full { what: self.what, wanted: 1, free: 0 });
        }
        self.untouched += 1;
        Ok(self.untouched - 1)
    }

    /// Gives an index back.
    pub(in crate::reconcile) fn free(&mut self, index: u32) {
        self.free.insert(index);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const ENTRIES: u32 = 12;

    proptest! {
        #[test]
        fn the_lowest_free_index_is_given_and_none_twice(
            reserved in vec(0..ENTRIES + 3, 0..6),
            steps in vec(prop::option::of(any::<prop::sample::Index>()), 0..60),
        ) {
            let mut indices = Indices::new("groups", ENTRIES);
            let mut free: BTreeSet<u32> = (1..ENTRIES).collect();
            let mut taken = Vec::new();
            for index in reserved {
                let was_free = free.remove(&index);
                prop_assert_eq!(indices.reserve(index), was_free);
                taken.extend(was_free.then_some(index));
            }
            for step in steps {
                match step {
                    Some(which) if !taken.is_empty() => {
                        let index = taken.swap_remove(which.index(taken.len()));
                        indices.free(index);
                        free.insert(index);
                    }
                    _ => {
                        let expected = free.pop_first();
                        prop_assert_eq!(indices.allocate().ok(), expected);
                        taken.extend(expected);
                    }
                }
            }
        }
    }
}
