//! Another revision, built the way it builds itself: a worktree of it in `target/against`, with a target folder of its
//! own. Both are kept, so that the next run against it builds nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::git::{git, short};
use crate::cargo;
use crate::process;
use crate::ui;
use crate::workspace;

/// What cargo made here of other people's crates serves there too: these folders of a target folder are copied.
const REUSED: [&str; 4] = ["release/build", "release/deps", "release/.fingerprint", "packet-build"];

/// A revision that is built.
pub(super) struct Built {
    name: String,
    folder: PathBuf,
}

impl Built {
    /// What the bench is told of it.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        vec![
            "--against".into(),
            self.bench().into(),
            "--against-objects".into(),
            self.objects().into(),
            "--against-name".into(),
            self.name.clone().into(),
        ]
    }

    fn bench(&self) -> PathBuf {
        self.folder.join("target/release/bench")
    }

    fn objects(&self) -> PathBuf {
        self.folder.join("target/bpf")
    }
}

/// Builds a commit, which the user named `revision`.
pub(super) fn build(revision: &str, commit: &str) -> Result<Built> {
    let folder = workspace::target().join("against").join(short(commit));
    let built = Built { name: short(commit).to_owned(), folder };
    ui::heading(&format!("{revision} ({}) in {}", built.name, built.folder.display()));
    check_out(&built.folder, commit)?;
    let mut command = cargo::cargo();
    command.env_remove("CARGO_TARGET_DIR").current_dir(&built.folder);
    command.args(["xtask", "build", "--release"]);
    let status = process::run(command)?;
    ensure!(
        status.success(),
        "{revision}: its own `cargo xtask build --release` failed ({status})"
    );
    for part in [built.bench(), built.objects().join("bench.o")] {
        ensure!(part.is_file(), "{revision}: has no bench: its build made no {}", part.display());
    }
    Ok(built)
}

/// Has the folder hold the commit and nothing else but its target folder.
fn check_out(folder: &Path, commit: &str) -> Result<()> {
    let root = workspace::root();
    // Forgets those whose folders were deleted.
    process::check(git(root, &["worktree", "prune"]))?;
    if folder.join(".git").exists() {
        process::check(git(folder, &["checkout", "--quiet", "--force", "--detach", commit]))?;
        return process::check(git(folder, &["clean", "--quiet", "--force", "-d"]));
    }
    // What an earlier run left that was killed before it had a worktree, or before it had a target folder.
    let target = folder.with_extension("target");
    for left in [folder, &target] {
        if left.exists() {
            fs::remove_dir_all(left).with_context(|| left.display().to_string())?;
        }
    }
    reuse(&workspace::target(), &target)?;
    let mut command = git(root, &["worktree", "add", "--quiet", "--detach"]);
    command.arg(folder).arg(commit);
    process::check(command)?;
    fs::rename(&target, folder.join("target")).with_context(|| target.display().to_string())
}

/// Copies what was built before into a new target folder. Crates of the tree have other sources in the worktree, which is
/// made afterwards: cargo tells by their time that they are newer.
fn reuse(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.join("release")).with_context(|| to.display().to_string())?;
    for part in REUSED.iter().filter(|part| from.join(part).is_dir()) {
        let mut command = Command::new("cp");
        command.args(["--archive", "--reflink=auto", "--no-target-directory"]);
        command.arg(from.join(part)).arg(to.join(part));
        process::check(command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reused_keeps_its_time_and_the_rest_stays_behind() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (from.path(), to.path().join("new"));
        for file in ["release/deps/a.rlib", "release/bench", "debug/deps/b.rlib", "packet-build/c"]
        {
            fs::create_dir_all(from.join(file).parent().unwrap()).unwrap();
            fs::write(from.join(file), file).unwrap();
        }
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let copied = "release/deps/a.rlib";
        fs::File::options()
            .write(true)
            .open(from.join(copied))
            .unwrap()
            .set_modified(time)
            .unwrap();
        reuse(from, &to).unwrap();
        assert_eq!(fs::metadata(to.join(copied)).unwrap().modified().unwrap(), time);
        assert!(to.join("packet-build/c").is_file());
        assert!(!to.join("release/bench").exists() && !to.join("debug").exists());
    }
}
