//! cargo-deny: licences, banned crates and sources of all dependencies. Needed by the tests.

use std::path::PathBuf;

use anyhow::Result;

use super::cache::{self, Entry};
use crate::cargo::{build_quickly, install};
use crate::idle::at_idle_priority;
use crate::process;
use crate::ui;

const VERSION: &str = "0.20.2";
const RECIPE: &str = "1";

fn entry() -> Result<Entry> {
    Ok(Entry::new(&cache::root()?, &format!("cargo-deny-{VERSION}"), RECIPE))
}

/// Whether it must be built.
pub(crate) fn is_missing() -> Result<bool> {
    Ok(!entry()?.is_finished())
}

pub(crate) fn print() {
    ui::note(&format!(
        "{:<18} {:>8}  checks licences and sources of dependencies; built from source, two to \
         five minutes",
        format!("cargo-deny {VERSION}"),
        "30 MB"
    ));
}

/// The program; built first if it is missing.
pub(crate) fn ensure() -> Result<PathBuf> {
    let entry = entry()?;
    if !entry.is_finished() {
        entry.fill(|dir| {
            ui::heading(&format!("cargo-deny {VERSION} (two to five minutes)"));
            let mut command = install("cargo-deny", VERSION, dir);
            command.arg("--no-default-features");
            build_quickly(&mut command);
            process::check(at_idle_priority(&command))
        })?;
    }
    Ok(entry.path.join("bin/cargo-deny"))
}
