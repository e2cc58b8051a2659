//! What a run samples of tests that are too many, or too long, to run whole each time.
//!
//! `cargo xtask test` hands down a number that follows from the commit; with `--long`, and for a program that
//! is started by hand, there is none and everything is run.

use std::env;

use anyhow::{Context as _, Result};

/// The number of this run.
pub const VARIABLE: &str = "SPILLWAY_TEST_SAMPLE";

/// Decides what is sampled; `None`: everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(Option<u64>);

impl Sample {
    /// No sample at all.
    pub const EVERYTHING: Self = Self(None);

    /// What this run was told.
    ///
    /// # Panics
    /// When [`VARIABLE`] is no number.
    pub fn from_environment() -> Self {
        let number = env::var(VARIABLE).ok().filter(|number| !number.is_empty());
        Self(number.map(|number| number.parse().expect("the number of a sample")))
    }

    /// Whether this is everything.
    pub fn is_everything(self) -> bool {
        self.0.is_none()
    }

    /// Whether item `place` of a list is in the sample, which has one of `parts` items.
    pub fn has(self, place: u64, parts: u64) -> bool {
        self.0.is_none_or(|number| place % parts == number % parts)
    }

    /// The items of a list that are in the sample.
    pub fn pick<T>(self, all: Vec<T>, parts: u64) -> Vec<T> {
        let in_places = all.into_iter().zip(0..);
        in_places.filter(|(_, place)| self.has(*place, parts)).map(|(each, _)| each).collect()
    }

    /// How many rounds a test is to make that makes `all` where everything is run: a `parts`th, at least one.
    pub fn rounds(self, all: u64, parts: u64) -> u64 {
        if self.is_everything() { all } else { (all / parts).max(1) }
    }

    /// A seed of a sample's own for such rounds; that of everything is always the same.
    pub fn seed(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

/// The number in a variable of the environment; `None`: it is not set.
///
/// # Errors
/// When it is no number.
pub fn number(name: &str) -> Result<Option<u64>> {
    let text = env::var(name).ok();
    text.map(|text| text.parse().with_context(|| format!("{name}={text}"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_in_a_row_have_each_once() {
        for place in 0..50 {
            let has = (100..107).filter(|number| Sample(Some(*number)).has(place, 7)).count();
            assert_eq!(has, 1, "{place}");
        }
        assert!((0..50).all(|place| Sample(None).has(place, 7)));
    }

    #[test]
    fn everything_has_all_rounds() {
        assert_eq!(Sample(None).rounds(200, 4), 200);
        assert_eq!(Sample(Some(9)).rounds(200, 4), 50);
        assert_eq!(Sample(Some(9)).rounds(2, 4), 1);
    }
}
