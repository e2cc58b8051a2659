//! bpf-linker, built against the LLVM that the compiler was unpacked with.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::library_folders;
use crate::cargo::{build_quickly, install};
use crate::process;
use crate::ui;

/// It has a feature for each LLVM it can be built with.
pub(super) const VERSION: &str = "0.13.0";

/// Builds into `dir/linker`. Only LLVM's shared library is needed, no development files: the
/// linker's build asks for `lib/libLLVM.so` below `LLVM_PREFIX` and nothing else.
pub(super) fn build(dir: &Path, llvm_major: u32) -> Result<()> {
    ui::heading(&format!("bpf-linker {VERSION} for LLVM {llvm_major} (about a minute)"));
    let prefix = dir.join("llvm");
    let lib = prefix.join("lib");
    fs::create_dir_all(&lib).with_context(|| lib.display().to_string())?;
    let libraries = library_folders(dir)?;
    symlink(llvm(&libraries)?, lib.join("libLLVM.so"))?;
    let mut command = install("bpf-linker", VERSION, &dir.join("linker"));
    command.args(["--no-default-features", "--features", &format!("llvm-{llvm_major}")]);
    build_quickly(&mut command);
    command.env("LLVM_PREFIX", &prefix);
    // For the link step: libraries that LLVM's own needs.
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries)?);
    process::check(command)
}

/// `libLLVM.so.22.1` and the like.
fn llvm(libraries: &[PathBuf]) -> Result<PathBuf> {
    let entries = libraries.iter().filter_map(|folder| fs::read_dir(folder).ok());
    let mut files = entries.flatten().flatten().map(|entry| entry.path());
    let is_llvm = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libLLVM.so."))
    };
    files.find(is_llvm).context("libLLVM: not in its package")
}
