//! The bench: the packet path, or the daemon, measured by the program `bench` of lb-tests.

mod against;
mod git;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::build::{self, Programs};
use crate::cli::BenchArgs;
use crate::demo;
use crate::process;
use crate::setup::{self, Purpose, Wants};
use crate::ui;
use crate::workspace;

/// `cargo xtask bench`.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    // Before anything is installed or built: a revision or a script that there is not ends it.
    let commit = args.against.as_deref().map(git::commit).transpose()?;
    let peer = args.peers.as_ref().and_then(Option::as_ref);
    let peer = peer.map(|it| script(it)).transpose()?;
    let ready = setup::ensure(&Wants::purpose(purpose(&args.args)), args.no_install)?;
    build::everything(ready, true, Programs::All)?;
    let mut all: Vec<OsString> = Vec::new();
    for (flag, is_given) in [("--quick", args.quick), ("--document", args.document)] {
        all.extend(is_given.then(|| flag.into()));
    }
    if let Some(script) = peer {
        all.extend(["--peer-program".into(), script.into()]);
    } else if args.peers.is_some() {
        all.push("--peers".into());
    }
    if args.document {
        all.extend(facts(args)?);
    }
    if let (Some(revision), Some(commit)) = (&args.against, commit) {
        all.extend(against::build(revision, &commit)?.arguments());
    }
    all.extend(args.args.iter().cloned());
    let code = demo::as_root("bench", "the bench: network namespaces, BPF programs", &all)?;
    if args.document && code == ExitCode::SUCCESS {
        let (from, to) = (workspace::target().join("bench/performance.md"), document());
        fs::copy(&from, &to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
        ui::note(&format!("{} is written", to.display()));
    }
    Ok(code)
}

/// The script of another balancer's program, wherever it is run.
fn script(path: &Path) -> Result<PathBuf> {
    ensure!(path.is_file(), "--peers: {}: no such file", path.display());
    Ok(std::path::absolute(path)?)
}

/// What the machine must have. The bench of the daemon has servers of its own.
fn purpose(args: &[OsString]) -> Purpose {
    if args.iter().any(|arg| arg == "control") { Purpose::Control } else { Purpose::Bench }
}

/// The page that the bench writes.
fn document() -> PathBuf {
    workspace::root().join("docs/performance.md")
}

/// What the page says of the run and the bench cannot know.
fn facts(args: &BenchArgs) -> Result<Vec<OsString>> {
    let root = workspace::root();
    let head = git::commit("HEAD")?;
    let changes = process::read(&mut git::git(root, &["status", "--porcelain"]))?;
    let commit = describe(&head, &changes);
    let date = process::read(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
    let mut words = vec!["cargo xtask bench --document".to_owned()];
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.extend(args.args.iter().map(|word| word.to_string_lossy().into_owned()));
    let command = words.join(" ");
    let facts = [("--commit", commit), ("--date", date.trim().to_owned()), ("--command", command)];
    Ok(facts.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]).collect())
}

/// A commit as the page names it. The page itself may have changed.
fn describe(head: &str, changes: &str) -> String {
    let others = changes.lines().any(|line| line.get(3..) != Some("docs/performance.md"));
    let with = if others { " with changes" } else { "" };
    format!("{}{with}", git::short(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_measured_without_other_servers() {
        let purpose = |words: &[&str]| purpose(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(purpose(&["control", "--only", "storm"]), Purpose::Control);
        assert_eq!(purpose(&["--realtime", "control"]), Purpose::Control);
        assert_eq!(purpose(&["--only", "udp"]), Purpose::Bench);
        assert_eq!(purpose(&[]), Purpose::Bench);
    }

    #[test]
    fn a_tree_with_changes_says_so() {
        let head = "0123456789abcdef";
        assert_eq!(describe(head, ""), "0123456789");
        assert_eq!(describe(head, " M docs/performance.md\n"), "0123456789");
        assert_eq!(describe(head, " M src/a.rs\n"), "0123456789 with changes");
        let both = " M docs/performance.md\n?? new.rs\n";
        assert_eq!(describe(head, both), "0123456789 with changes");
    }
}
