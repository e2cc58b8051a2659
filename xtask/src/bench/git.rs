//! What git knows of revisions.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;
use crate::workspace;

/// git in a folder.
pub(super) fn git<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(args);
    command
}

/// The commit of a revision, in full.
pub(super) fn commit(revision: &str) -> Result<String> {
    commit_in(workspace::root(), revision)
}

fn commit_in(folder: &Path, revision: &str) -> Result<String> {
    let name = format!("{revision}^{{commit}}");
    let mut command = git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &name]);
    let (output, _) = process::output(command.stderr(Stdio::null()))?;
    if !output.status.success() {
        bail!("{revision}: not a revision of this repository");
    }
    let text = String::from_utf8(output.stdout).context("git rev-parse")?;
    Ok(text.trim().to_owned())
}

/// A commit's name in tables and folders.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_commit_or_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let run = |args: &[&str]| process::read(&mut git(folder.path(), args)).unwrap();
        run(&["init", "--quiet"]);
        let author = ["-c", "user.name=n", "-c", "user.email=e"];
        run(&[&author[..], &["commit", "--quiet", "--allow-empty", "-m", "first"]].concat());
        let head = run(&["rev-parse", "HEAD"]);
        assert_eq!(commit_in(folder.path(), "HEAD").unwrap(), head.trim());
        for wrong in ["no-such-branch", "--help", ""] {
            let error = commit_in(folder.path(), wrong).unwrap_err();
            assert_eq!(error.to_string(), format!("{wrong}: not a revision of this repository"));
        }
        assert_eq!(short(head.trim()).len(), 10);
    }
}
