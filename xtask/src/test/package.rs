//! What the test of the package needs: packages of two versions, a build that must not be packaged,
//! and a Debian.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::artifacts::{self, Cost};
use crate::idle;
use crate::package;
use crate::setup;
use crate::ui;
use crate::workspace;

use super::{root_tests::Variables, steps};

/// The version that the other one is an upgrade of.
const BEFORE: &str = "0~before";
const AFTER: &str = "0";

/// What the test program is told, and what it took to build what it is told of.
pub(super) fn prepare() -> Result<(Variables, Cost)> {
    let debian = setup::debian()?;
    let out = workspace::target().join("package/test");
    let again = out.join("again");
    fs::create_dir_all(&again).with_context(|| again.display().to_string())?;
    let before = package::debian(BEFORE, &out)?;
    let after = package::debian(AFTER, &out)?;
    let same = package::debian(AFTER, &again)?;
    ensure!(fs::read(&after)? == fs::read(&same)?, "{}: packed twice, and differs", same.display());
    ui::note(&format!("{}: {}", after.display(), ui::megabytes(fs::metadata(&after)?.len())));

    let (stub, cost) = stub()?;
    refuse(&stub)?;
    let variables = [
        ("SPILLWAY_DEBIAN", debian),
        ("SPILLWAY_DEB_BEFORE", before),
        ("SPILLWAY_DEB", after),
        ("SPILLWAY_STUB", stub),
    ];
    Ok((variables.map(|(name, path)| (name.to_owned(), path.into())).to_vec(), cost))
}

/// A daemon without packet programs.
fn stub() -> Result<(PathBuf, Cost)> {
    let built = artifacts::build(&mut idle::at_idle_priority(&steps::stub()))?;
    let daemon = built.programs.into_iter().find(|program| program.name == "spillwayd");
    let daemon = daemon.context("lb-daemon: has no program spillwayd")?;
    Ok((daemon.executable, built.cost))
}

/// Packaging must refuse a daemon without packet programs.
fn refuse(stub: &Path) -> Result<()> {
    match package::check_daemon(stub) {
        Ok(()) => bail!("a build without packet programs was not refused"),
        Err(error) => {
            let said = error.to_string();
            ensure!(said.contains("balancer program: none in this build"), "refused, but: {said}");
            Ok(())
        }
    }
}
