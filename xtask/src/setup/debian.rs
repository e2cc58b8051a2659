//! A Debian of this system's own release, to try the package in: made by debootstrap, kept as a tar
//! file.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::cache::{self, Entry};
use crate::process;
use crate::root;
use crate::ui;

const RECIPE: &str = "1";

/// Makes it, as root.
const SCRIPT: &str = include_str!("debian.sh");

/// What `/etc/os-release` calls the release, as `bookworm`.
pub(super) fn release() -> Result<String> {
    let path = "/etc/os-release";
    let text = fs::read_to_string(path).context(path)?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    match (field("ID").as_deref(), field("VERSION_CODENAME")) {
        (Some("debian"), Some(release)) => Ok(release),
        _ => bail!("{path}: not a release of Debian: the package cannot be tried here"),
    }
}

fn entry(release: &str) -> Result<Entry> {
    Ok(Entry::new(&cache::root()?, &format!("debian-{release}"), RECIPE))
}

/// Whether it must be made. On other systems there is none to make.
pub(crate) fn is_missing() -> Result<bool> {
    match release() {
        Ok(release) => Ok(!entry(&release)?.is_finished()),
        Err(_) => Ok(false),
    }
}

pub(crate) fn print() {
    ui::note(&format!(
        "{:<18} {:>8}  the package is tried in it; made by debootstrap in a minute (root)",
        "a Debian", "65 MB"
    ));
}

/// The tar file; made first if it is missing.
pub(crate) fn ensure() -> Result<PathBuf> {
    let release = release()?;
    let entry = entry(&release)?;
    if !entry.is_finished() {
        entry.fill(|dir| {
            ui::heading(&format!("a Debian {release}, into {}", dir.display()));
            make(&release, &dir.join("root.tar"))
        })?;
    }
    Ok(entry.path.join("root.tar"))
}

fn make(release: &str, tar: &Path) -> Result<()> {
    let mirror = mirror(release)?;
    // In namespaces of its own, with the tree in memory: nothing is left of it, however it ends.
    let mut args: Vec<OsString> =
        ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c"]
            .map(OsString::from)
            .to_vec();
    args.extend([SCRIPT, "debian", release, &mirror].map(OsString::from));
    args.extend([tar.into(), root::owner().into()]);
    process::check(root::job(
        "debootstrap: a Debian to try the package in",
        &[],
        OsStr::new("unshare"),
        &args,
    )?)
}

/// Where apt gets the release from.
pub(super) fn mirror(release: &str) -> Result<String> {
    let mut command = Command::new("apt-get");
    let format = "$(CODENAME) $(COMPONENT) $(REPO_URI)";
    command.args(["indextargets", "--format", format, "Created-By: Packages"]);
    let printed = process::read(&mut command)?;
    mirror_of(&printed, release)
        .with_context(|| format!("apt: none of its sources has main of {release}"))
}

fn mirror_of(targets: &str, release: &str) -> Option<String> {
    let prefix = format!("{release} main ");
    targets.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_release_itself() {
        let targets = "\
bookworm-security main file:/security
bookworm contrib file:/contrib
bookworm main file:/mirror/debian/
bookworm-updates main file:/updates
";
        assert_eq!(mirror_of(targets, "bookworm").as_deref(), Some("file:/mirror/debian/"));
        assert_eq!(mirror_of(targets, "trixie"), None);
    }
}
