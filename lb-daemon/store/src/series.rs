//! Where the numbers of generations begin anew.

use serde::{Deserialize, Serialize};

/// Which sequence of generations one is part of: in each, every number is above the one before. The store keeps the
/// generations of one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Rises with each series.
    pub(super) number: u64,
    /// Whether a fleet gave the generation its number.
    is_shared: bool,
}

impl Series {
    /// The series of the generation `number` that is to follow `last` of this series. Another one begins where the number
    /// does not rise, and where this balancer joins a fleet: the fleet's numbers are not those of the generations before.
    #[must_use]
    pub fn next(self, last: u64, number: u64, is_shared: bool) -> Self {
        let is_joining = is_shared && !self.is_shared && last > 0;
        let begins = number <= last || is_joining;
        Self { number: self.number + u64::from(begins), is_shared }
    }

    /// Whether a fleet gave the generation its number.
    pub const fn is_shared(self) -> bool {
        self.is_shared
    }

    /// That of stores which know of none.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
