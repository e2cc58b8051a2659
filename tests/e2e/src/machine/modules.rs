//! Modules of a kernel that a guest is to have, with those that they need.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// A module, not compressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// Its name, with underscores.
    pub(super) name: String,
    /// The ELF object.
    pub(super) bytes: Vec<u8>,
}

/// The modules of these names in an unpacked package, each behind those that it needs; without those that the
/// kernel has built in.
///
/// # Errors
/// When one is not there or cannot be read.
pub(super) fn with_needed(kernel: &Path, names: &[&str]) -> Result<Vec<Module>> {
    let found = files(&kernel.join("lib/modules"))?;
    let mut modules = Vec::new();
    for name in names {
        add(name, &found, &mut modules)?;
    }
    Ok(modules)
}

/// What a package has by way of modules, by name.
#[derive(Default)]
struct Found {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

fn add(name: &str, found: &Found, modules: &mut Vec<Module>) -> Result<()> {
    if found.built_in.contains(name) || modules.iter().any(|module| module.name == name) {
        return Ok(());
    }
    let file = found.files.get(name);
    let file = file.with_context(|| format!("module {name}: the kernel has none"))?;
    let bytes = read(file)?;
    for needed in needed(&bytes) {
        add(&needed, found, modules)?;
    }
    modules.push(Module { name: name.to_owned(), bytes });
    Ok(())
}

/// What a module says that it needs: `depends=` of its `.modinfo` (scripts/mod/modpost.c of the kernel).
fn needed(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = module[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let value = String::from_utf8_lossy(value);
    value.split(',').filter(|name| !name.is_empty()).map(in_underscores).collect()
}

/// All modules below a folder.
fn files(folder: &Path) -> Result<Found> {
    let mut found = Found::default();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if name == "modules.builtin" {
                let list = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let names =
                    list.lines().filter_map(|line| line.rsplit('/').next()?.strip_suffix(".ko"));
                found.built_in.extend(names.map(in_underscores));
            } else if let Some((name, "ko" | "ko.xz")) = name.split_once('.') {
                found.files.insert(in_underscores(name), path);
            }
        }
    }
    Ok(found)
}

/// The kernel takes both for the same.
fn in_underscores(name: &str) -> String {
    name.replace('-', "_")
}

fn read(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "ko") {
        return fs::read(file).with_context(|| file.display().to_string());
    }
    let output = Command::new("busybox").args(["xz", "-dc"]).arg(file).output();
    let output = output.context("start busybox")?;
    ensure!(output.status.success(), "{}: {output:?}", file.display());
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_what_it_needs() {
        let elf =
            |info: &str| [b"\x7fELF..license=GPL\0", info.as_bytes(), b"\0retpoline=Y"].concat();
        assert_eq!(needed(&elf("depends=tunnel4,ip-tunnel")), ["tunnel4", "ip_tunnel"]);
        assert_eq!(needed(&elf("depends=")), [""; 0]);
        assert_eq!(needed(&elf("alias=pci")), [""; 0]);
    }
}
