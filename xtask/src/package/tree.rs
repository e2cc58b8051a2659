//! The files of a host, as they stand below its root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::programs::Programs;
use crate::process;
use crate::workspace;

/// Files of the source tree, and where they go; a folder goes with all that is in it.
const FILES: [(&str, &str); 14] = [
    ("packaging/systemd", "usr/lib/systemd/system"),
    ("packaging/sysusers.conf", "usr/lib/sysusers.d/spillway.conf"),
    ("packaging/sysctl.conf", "usr/lib/sysctl.d/50-spillway.conf"),
    ("packaging/etc", "etc/spillway"),
    ("packaging/examples", "usr/share/doc/spillway/examples"),
    ("packaging/observability", "usr/share/spillway/observability"),
    ("packaging/copyright", "usr/share/doc/spillway/copyright"),
    ("docs", "usr/share/doc/spillway/docs"),
    ("README.md", "usr/share/doc/spillway/README.md"),
    ("ARCHITECTURE.md", "usr/share/doc/spillway/ARCHITECTURE.md"),
    ("CONTRIBUTING.md", "usr/share/doc/spillway/CONTRIBUTING.md"),
    ("CHANGELOG.md", "usr/share/doc/spillway/CHANGELOG.md"),
    ("SECURITY.md", "usr/share/doc/spillway/SECURITY.md"),
    ("proto/spillway", "usr/share/doc/spillway/proto/spillway"),
];

/// What a shell loads completions from; `NAME` is the program's.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/NAME"),
    ("fish", "usr/share/fish/vendor_completions.d/NAME.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_NAME"),
];

/// Where settings are, which a package must not overwrite.
pub(super) const SETTINGS: &str = "etc";

/// Lays all of it out in a new directory.
pub(super) fn lay_out(programs: &Programs, root: &Path) -> Result<()> {
    binary(&programs.spillwayd, &root.join("usr/sbin/spillwayd"))?;
    binary(&programs.spillway, &root.join("usr/bin/spillway"))?;
    for (from, to) in FILES {
        copy(&workspace::root().join(from), &root.join(to))?;
    }
    for (program, section) in [(&programs.spillwayd, 8), (&programs.spillway, 1)] {
        manual(program, &root.join(format!("usr/share/man/man{section}")))?;
        for (shell, to) in COMPLETIONS {
            completions(program, shell, root, to)?;
        }
    }
    Ok(())
}

/// A program without what only a debugger reads; the names of functions stay, for backtraces.
fn binary(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    let mut strip = Command::new("strip");
    process::read(strip.args(["--strip-debug", "-o"]).args([to, from]))?;
    set_mode(to, 0o755)
}

fn manual(program: &Path, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    process::read(Command::new(program).arg("man").arg(directory))?;
    let pages = files(directory)?;
    ensure!(!pages.is_empty(), "{}: wrote no manual", program.display());
    // Without name and time of the page, so that equal pages are equal files.
    process::read(Command::new("gzip").args(["-9", "--no-name"]).args(&pages))?;
    files(directory)?.iter().try_for_each(|page| set_mode(page, 0o644))
}

fn completions(program: &Path, shell: &str, root: &Path, to: &str) -> Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let to = root.join(to.replace("NAME", &name));
    make_parent(&to)?;
    let script = process::read(Command::new(program).args(["completions", shell]))?;
    fs::write(&to, script).with_context(|| to.display().to_string())?;
    set_mode(&to, 0o644)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        make_parent(to)?;
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        return set_mode(to, 0o644);
    }
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Every file below a directory, in order.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a file has a directory")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())
}

/// Whatever the umask of who builds.
pub(super) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions).with_context(|| path.display().to_string())
}
