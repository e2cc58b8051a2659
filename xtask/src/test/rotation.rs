//! What a run samples. The commit decides, so that runs on many commits together cover everything, and any of
//! them can be repeated.

use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::workspace;

/// Tells test programs what to sample: a number. Without it they run everything.
pub(super) const VARIABLE: &str = "SPILLWAY_TEST_SAMPLE";

/// The part of everything that a commit stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rotation {
    commit: String,
    seed: u64,
}

impl Rotation {
    /// The rotation of a revision, named as git names it.
    pub(super) fn from_revision(revision: &str) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(workspace::root()).args(["rev-parse", "--verify", "--end-of-options"]);
        let commit = process::read(git.arg(format!("{revision}^{{commit}}")));
        Self::parse(
            commit.context("what to sample follows from a commit; --long needs none")?.trim(),
        )
    }

    /// The rotation of a commit's hash.
    fn parse(commit: &str) -> Result<Self> {
        let digits =
            commit.get(..16).with_context(|| format!("{commit:?}: no hash of a commit"))?;
        let seed = u64::from_str_radix(digits, 16).with_context(|| format!("hash {commit:?}"))?;
        Ok(Self { commit: commit.to_owned(), seed })
    }

    /// Whether the sample has one of a list, by its place, where it has one of `parts`.
    pub(super) fn has(&self, place: usize, parts: u64) -> bool {
        place as u64 % parts == self.seed % parts
    }

    /// What test programs are told.
    pub(super) fn variable(&self) -> (String, std::ffi::OsString) {
        (VARIABLE.to_owned(), self.seed.to_string().into())
    }

    /// How to run the same again.
    pub(super) fn describe(&self) -> String {
        let short = &self.commit[..12];
        format!(
            "sample of commit {short}, seed {}; again: cargo xtask test --as {short}",
            self.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sixteen_digits_of_a_hash_are_the_seed() {
        let rotation = Rotation::parse("00000000000000ff112233445566778899aabbcc").unwrap();
        assert_eq!(rotation.seed, 255);
        assert!(rotation.describe().contains("--as 000000000000"));
        assert!(Rotation::parse("d597208").is_err());
        assert!(Rotation::parse("not a hash of sixteen digits").is_err());
    }

    #[test]
    fn each_place_is_in_one_of_the_parts() {
        let rotations: Vec<_> =
            (0..3).map(|seed| Rotation { commit: String::new(), seed }).collect();
        for place in 0..20 {
            let has = rotations.iter().filter(|rotation| rotation.has(place, 3)).count();
            assert_eq!(has, 1, "{place}");
        }
    }

    #[test]
    fn a_revision_is_one_that_git_knows() {
        assert_eq!(
            Rotation::from_revision("HEAD").unwrap(),
            Rotation::from_revision("HEAD^0").unwrap()
        );
        let error = format!("{:#}", Rotation::from_revision("no-such-branch").unwrap_err());
        assert!(error.contains("--long"), "{error}");
    }
}
