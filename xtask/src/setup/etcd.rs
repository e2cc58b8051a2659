//! etcd of a newer Debian than the system may be, unpacked and not installed: fleets have to run on both. Needed by the
//! tests.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::apt::{self, Lists};
use super::cache::{self, Entry};
use super::debian;
use crate::ui;

const RECIPE: &str = "1";

/// Debian 13, which has etcd 3.5.
const RELEASE: &str = "trixie";

/// Their programs need nothing but libc 2.34, which Debian 12 has too.
const PACKAGES: [&str; 2] = ["etcd-server", "etcd-client"];

fn entry() -> Result<Entry> {
    Ok(Entry::new(&cache::root()?, &format!("etcd-{RELEASE}"), RECIPE))
}

/// Whether it must be fetched. On other systems than Debian it cannot be.
pub(super) fn is_missing() -> Result<bool> {
    Ok(apt::is_here() && debian::release().is_ok() && !entry()?.is_finished())
}

pub(super) fn print() {
    ui::note(&format!(
        "{:<18} {:>8}  fleets are tried on it too; Debian {RELEASE}'s, unpacked, not installed",
        "etcd 3.5", "17 MB"
    ));
}

/// The folder of `etcd` and `etcdctl`; fetched first if it is missing.
pub(super) fn ensure() -> Result<PathBuf> {
    let entry = entry()?;
    if !entry.is_finished() {
        entry.fill(|dir| {
            ui::heading(&format!("etcd 3.5, into {}", dir.display()));
            let lists = dir.join("apt");
            let mirror = debian::mirror(&debian::release()?)?;
            let packages = PACKAGES.map(str::to_owned);
            let offered = Lists::of_release(&lists, &mirror, RELEASE)?;
            offered.unpack_offered(&packages, &dir.join("root"))?;
            fs::remove_dir_all(&lists).with_context(|| lists.display().to_string())
        })?;
    }
    Ok(entry.path.join("root/usr/bin"))
}

/// The same folder, if it is there.
pub(super) fn find() -> Result<Option<PathBuf>> {
    let entry = entry()?;
    Ok(entry.is_finished().then(|| entry.path.join("root/usr/bin")))
}
