//! `cargo xtask package`: a Debian package and a tarball of what a host needs, BPF objects inside the
//! programs, so that the host needs no toolchain.

mod archive;
mod control;
mod libraries;
mod programs;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::build;
use crate::cli::PackageArgs;
use crate::process;
use crate::setup::{self, Wants};
use crate::ui;
use crate::workspace;
use programs::Programs;

/// What is packaged.
struct Release {
    version: String,
    /// When the last commit was made, seconds since 1970: the time of every file.
    epoch: u64,
    /// `target/package`.
    out: PathBuf,
}

/// `cargo xtask package`.
pub(crate) fn run(args: &PackageArgs) -> Result<ExitCode> {
    let ready = setup::ensure(&Wants::build(), false)?;
    build::everything(ready, true, build::Programs::Product)?;
    let version = match &args.version {
        Some(version) => version.clone(),
        None => version_of_the_tree()?,
    };
    let release = Release::new(version)?;
    ui::heading(&format!("spillway {}", release.version));
    for package in release.packages(&workspace::binaries(true))? {
        println!("{}", package.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A Debian package of what the build made, under a version of the caller's, in a directory.
pub(crate) fn debian(version: &str, out: &Path) -> Result<PathBuf> {
    let release = Release { out: out.to_owned(), ..Release::new(version.to_owned())? };
    release.with_tree(&workspace::binaries(true), |programs, tree| release.deb(programs, tree))
}

/// Refuses a daemon that a host cannot use, as packaging does.
pub(crate) fn check_daemon(spillwayd: &Path) -> Result<()> {
    programs::check_daemon(spillwayd)
}

impl Release {
    fn new(version: String) -> Result<Self> {
        let starts_well = version.starts_with(|c: char| c.is_ascii_digit());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".+~".contains(c);
        ensure!(
            starts_well && version.chars().all(is_plain),
            "version {version:?}: begins with a digit, and has no others than letters, digits, . + ~"
        );
        Ok(Self { version, epoch: epoch()?, out: workspace::target().join("package") })
    }

    /// Makes everything.
    fn packages(&self, binaries: &Path) -> Result<Vec<PathBuf>> {
        self.with_tree(binaries, |programs, tree| {
            Ok(vec![self.deb(programs, tree)?, self.tarball(tree)?])
        })
    }

    /// Lays out what the packages have in common, and takes it away afterwards.
    fn with_tree<T>(
        &self,
        binaries: &Path,
        then: impl FnOnce(&Programs, &Path) -> Result<T>,
    ) -> Result<T> {
        let programs = Programs::find(binaries)?;
        let work = self.out.join(format!("work-{}", std::process::id()));
        fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
        let root = work.join(format!("spillway-{}", self.version));
        let made = tree::lay_out(&programs, &root).and_then(|()| then(&programs, &root));
        fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
        made
    }

    fn deb(&self, programs: &Programs, tree: &Path) -> Result<PathBuf> {
        let control = control::Control {
            version: &self.version,
            architecture: architecture(),
            libc: libraries::libc(programs)?,
        };
        let name = format!("spillway_{}_{}.deb", self.version, architecture());
        archive::deb(&control, tree, self.epoch, &self.out.join(name))
    }

    fn tarball(&self, tree: &Path) -> Result<PathBuf> {
        let name = format!("spillway-{}-{}-linux.tar.gz", self.version, std::env::consts::ARCH);
        archive::tarball(tree, self.epoch, &self.out.join(name))
    }
}

/// As Debian calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
struct Workspace {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    version: String,
}

/// The version of all crates.
fn version_of_the_tree() -> Result<String> {
    let path = workspace::root().join("Cargo.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(manifest.workspace.package.version)
}

/// `SOURCE_DATE_EPOCH`, or when the last commit was made.
fn epoch() -> Result<u64> {
    let said = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => {
            let mut git = Command::new("git");
            git.current_dir(workspace::root()).args(["log", "-1", "--format=%ct"]);
            process::read(&mut git).context("time of the last commit; or set SOURCE_DATE_EPOCH")?
        }
    };
    said.trim().parse().with_context(|| format!("SOURCE_DATE_EPOCH: {said:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_one_of_debians_without_revision() {
        for good in ["0.1.0", "0.1.0~before", "1.0+git2"] {
            assert!(Release::new(good.into()).is_ok(), "{good}");
        }
        for bad in ["", "v1", "1-1", "1:0", "../1", "1 2"] {
            assert!(Release::new(bad.into()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_tree_has_a_version() {
        assert_eq!(version_of_the_tree().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
