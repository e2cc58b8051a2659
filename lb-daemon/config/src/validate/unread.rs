//! Parts of a file that could not be read, so that nothing is known of what depends on them.

use std::{collections::BTreeSet, ops::Bound};

use super::{Invalid, Mistake};

/// Paths of what was not read: `pools[0].backends[1].weight` of a field, `pools[0]` of an object, `pools` of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unread(BTreeSet<String>);

impl Unread {
    pub(crate) fn insert(&mut self, path: String) {
        self.0.insert(path);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object, or all of a list, was read in full.
    pub(super) fn has_all(&self, path: &str) -> bool {
        let from_here = self.0.range::<str, _>((Bound::Included(path), Bound::Unbounded));
        let mut inner = from_here.take_while(|unread| unread.starts_with(path));
        let mut outer = path.match_indices(['.', '[']).map(|(end, _)| &path[..end]);
        !inner.any(|unread| is_within(unread, path)) && !outer.any(|outer| self.0.contains(outer))
    }

    /// The mistakes that are there whatever stands in the parts that were not read; and whether there may be more.
    pub(super) fn independent(&self, invalid: Invalid) -> (Invalid, bool) {
        let names: BTreeSet<_> = self.0.iter().map(|path| without_indices(path)).collect();
        invalid.filter(|mistake: &Mistake| {
            let depends_on = mistake.depends_on();
            let is_name_read = |path: &String| !names.iter().any(|unread| is_within(path, unread));
            let is_read = |path: &String| self.has_all(path) && is_name_read(path);
            self.has_all(&mistake.path()) && depends_on.iter().all(is_read)
        })
    }
}

/// Whether `path` is `of`, or a part of it.
fn is_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// `pools[].name` of `pools[3].name`.
fn without_indices(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}
