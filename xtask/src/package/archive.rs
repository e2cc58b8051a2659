//! One file of a tree of files. The same tree gives the same bytes, whoever packs it and when.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::control::Control;
use super::tree::{SETTINGS, files, set_mode};
use crate::process;
use crate::programs;
use crate::workspace;

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// A Debian package.
pub(super) fn deb(control: &Control<'_>, tree: &Path, epoch: u64, to: &Path) -> Result<PathBuf> {
    if programs::find("dpkg-deb").is_none() {
        bail!("dpkg-deb: not found; a .deb is made where there is dpkg, on Debian and its like");
    }
    let all = files(tree)?;
    let below = |path: &PathBuf| path.strip_prefix(tree).map(Path::to_owned).unwrap_or_default();
    let kept = all.iter().map(below).filter(|path| path.starts_with(SETTINGS));
    let conffiles: String = kept.map(|path| format!("/{}\n", path.display())).collect();
    let mut bytes = 0;
    for file in &all {
        bytes += fs::metadata(file).with_context(|| file.display().to_string())?.len();
    }
    let mut md5sum = Command::new("md5sum");
    let sums = process::read(md5sum.current_dir(tree).args(all.iter().map(below)))?;

    let meta = tree.join("DEBIAN");
    fs::create_dir_all(&meta).with_context(|| meta.display().to_string())?;
    let write = |name: &str, text: &str, mode| {
        let path = meta.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        set_mode(&path, mode)
    };
    write("control", &control.text(bytes.div_ceil(1024)), 0o644)?;
    write("conffiles", &conffiles, 0o644)?;
    write("md5sums", &sums, 0o644)?;
    for script in SCRIPTS {
        let path = workspace::root().join("packaging/debian").join(script);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        write(script, &text, 0o755)?;
    }
    settle(tree, epoch)?;
    let mut pack = Command::new("dpkg-deb");
    pack.env("SOURCE_DATE_EPOCH", epoch.to_string());
    pack.args(["--root-owner-group", "-Zgzip", "--build"]).args([tree, to]);
    process::read(&mut pack)?;
    fs::remove_dir_all(&meta).with_context(|| meta.display().to_string())?;
    Ok(to.to_owned())
}

/// A tarball with one directory in it, named as the tree.
pub(super) fn tarball(tree: &Path, epoch: u64, to: &Path) -> Result<PathBuf> {
    let note = tree.join("INSTALL.md");
    let source = workspace::root().join("packaging/INSTALL.md");
    fs::copy(&source, &note).with_context(|| source.display().to_string())?;
    set_mode(&note, 0o644)?;
    settle(tree, epoch)?;
    let (parent, name) = (tree.parent().context("a tree has a parent")?, tree.file_name());
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch}")).args(["--format=gnu", "--use-compress-program=gzip -9n"]);
    tar.arg("--file").arg(to).arg("--directory").arg(parent).arg(name.unwrap_or_default());
    process::read(&mut tar)?;
    fs::remove_file(&note).with_context(|| note.display().to_string())?;
    Ok(to.to_owned())
}

/// One time for all, and directories that everybody may look into.
fn settle(tree: &Path, epoch: u64) -> Result<()> {
    let mut find = Command::new("find");
    find.arg(tree).args(["-type", "d", "-exec", "chmod", "755", "{}", "+"]);
    process::read(&mut find)?;
    let mut touch = Command::new("find");
    touch.arg(tree).args(["-exec", "touch", "--no-dereference", &format!("--date=@{epoch}")]);
    process::read(touch.args(["{}", "+"]))?;
    Ok(())
}
