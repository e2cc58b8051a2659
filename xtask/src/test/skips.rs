//! The list of tests that may be skipped, each with its reason. Any other skip is a failure.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tally::Tally;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    name: String,
    reason: String,
}

/// Reasons by name of test.
#[derive(Debug, Default)]
pub(crate) struct Skips(BTreeMap<String, String>);

impl Skips {
    /// A list that is not there allows nothing.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text)?;
        let mut skips = BTreeMap::new();
        for Skip { name, reason } in file.skip {
            ensure!(!reason.trim().is_empty(), "{name}: no reason");
            skips.insert(name, reason);
        }
        Ok(Self(skips))
    }

    /// Makes a failure of each skip that is not listed. Returns what is to be said of each skip.
    pub(crate) fn judge(&self, tally: &mut Tally) -> Vec<String> {
        let mut remarks = Vec::new();
        tally.skipped.retain(|name| {
            let reason = self.0.get(name);
            match reason {
                Some(reason) => remarks.push(format!("{name}: skipped: {reason}")),
                None => remarks.push(format!(
                    "{name}: skipped, and not listed in tests/skips.toml: a failure"
                )),
            }
            tally.failed += u64::from(reason.is_none());
            reason.is_some()
        });
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[[skip]]\nname = \"old::kernel\"\nreason = \"no such kernel here\"\n";

    fn tally() -> Tally {
        Tally { passed: 4, failed: 0, skipped: vec!["old::kernel".into(), "lazy".into()] }
    }

    #[test]
    fn only_listed_skips_are_skips() {
        let mut judged = tally();
        let remarks = Skips::parse(LIST).unwrap().judge(&mut judged);
        assert_eq!(judged, Tally { passed: 4, failed: 1, skipped: vec!["old::kernel".into()] });
        assert_eq!(remarks[0], "old::kernel: skipped: no such kernel here");
        assert!(remarks[1].starts_with("lazy: skipped, and not listed"));
    }

    #[test]
    fn no_list_allows_no_skip() {
        let mut judged = tally();
        Skips::load(Path::new("/nowhere/skips.toml")).unwrap().judge(&mut judged);
        assert_eq!(judged, Tally { passed: 4, failed: 2, skipped: vec![] });
        assert!(Skips::parse("").unwrap().0.is_empty());
    }

    #[test]
    fn a_skip_needs_a_reason() {
        Skips::parse("[[skip]]\nname = \"x\"\nreason = \" \"\n").unwrap_err();
        Skips::parse("[[skip]]\nname = \"x\"\n").unwrap_err();
        Skips::parse("[[skips]]\nname = \"x\"\nreason = \"y\"\n").unwrap_err();
    }
}
