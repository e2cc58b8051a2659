//! The compiler and linker of the packet programs.
//!
//! The compiler's LLVM must be the linker's, and the user's Rust is not ours to change: so a
//! compiler of Debian's is unpacked, not installed, into the cache, and a linker built for it.

mod linker;
mod offer;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::apt::{self, Lists};
use super::cache::{self, Entry};
use crate::process;
use crate::programs;
use crate::ui;
use crate::workspace;
use offer::Offer;

/// The target of every packet program.
pub(crate) const TARGET: &str = "bpfel-unknown-none";

/// Stands for the linker, and calls it with the arguments in another order.
const LINK: &str = "xtask/src/setup/toolchain/link.sh";

/// Goes up when the contents of a finished folder change while its name does not.
const RECIPE: &str = "1";

/// What the cache's folders begin with; versions follow.
const PREFIX: &str = "bpf-toolchain-";

/// A compiler and a linker for [`TARGET`].
pub(crate) struct Toolchain {
    pub(crate) rustc: PathBuf,
    pub(crate) linker: PathBuf,
    /// For `RUSTC_WORKSPACE_WRAPPER`, where there is one.
    pub(crate) clippy: Option<PathBuf>,
    /// Where the loader finds the libraries that were unpacked.
    libraries: Option<OsString>,
}

impl Toolchain {
    /// One that the user names, or one in the cache that works.
    pub(crate) fn find() -> Result<Option<Self>> {
        if let Some(named) = Self::named()? {
            return Ok(Some(named));
        }
        let root = cache::root()?;
        let ending = format!("-bpf-linker-{}", linker::VERSION);
        let mut newest = None;
        for entry in fs::read_dir(&root).with_context(|| root.display().to_string())?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = name.starts_with(PREFIX) && name.ends_with(&ending);
            let entry = Entry::new(&root, &name, RECIPE);
            if is_ours && entry.is_finished() {
                newest = newest.max(Some((fs::metadata(&entry.path)?.modified()?, entry.path)));
            }
        }
        let Some((_, dir)) = newest else { return Ok(None) };
        let toolchain = Self::at(&dir)?;
        if let Err(error) = toolchain.try_out() {
            ui::note(&format!("{}: {error:#}: made again", dir.display()));
            fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
            return Ok(None);
        }
        Ok(Some(toolchain))
    }

    /// `SPILLWAY_BPF_RUSTC` and `SPILLWAY_BPF_LINKER`: for systems other than Debian.
    fn named() -> Result<Option<Self>> {
        let variable = |name| env::var_os(name).map(PathBuf::from);
        match (variable("SPILLWAY_BPF_RUSTC"), variable("SPILLWAY_BPF_LINKER")) {
            (Some(rustc), Some(linker)) => {
                let named = Self { rustc, linker, clippy: None, libraries: None };
                named.try_out()?;
                Ok(Some(named))
            }
            (None, None) => Ok(None),
            _ => bail!("SPILLWAY_BPF_RUSTC and SPILLWAY_BPF_LINKER: set both or none"),
        }
    }

    /// The one in a folder of the cache.
    fn at(dir: &Path) -> Result<Self> {
        let usr = dir.join("root/usr");
        let libraries = env::join_paths(library_folders(dir)?)?;
        let clippy = Some(usr.join("bin/clippy-driver")).filter(|clippy| clippy.is_file());
        Ok(Self {
            rustc: usr.join("bin/rustc"),
            linker: dir.join("linker/bin/bpf-linker"),
            clippy,
            libraries: Some(libraries),
        })
    }

    /// Lets a command run the compiler.
    pub(crate) fn equip(&self, command: &mut Command) {
        command.env("RUSTC", &self.rustc);
        // The compiler is a stable one; aya-ebpf asks for inline assembly of this target.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", workspace::root().join(LINK));
        command.env("SPILLWAY_LINKER", &self.linker);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
    }

    fn rustc(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.rustc);
        self.equip(&mut command);
        process::read(command.args(args))
    }

    /// Whether the compiler comes with a built `core` for the target.
    pub(crate) fn has_core(&self) -> Result<bool> {
        let sysroot = self.rustc(&["--print", "sysroot"])?;
        Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir())
    }

    /// Runs both: a library of the system's may have gone since.
    fn try_out(&self) -> Result<()> {
        self.rustc(&["-vV"])?;
        let mut linker = Command::new(&self.linker);
        self.equip(&mut linker);
        process::read(linker.arg("--version")).map(drop)
    }
}

/// Every folder of libraries below the unpacked root.
fn library_folders(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for above in ["root/usr/lib", "root/lib"] {
        let Ok(entries) = fs::read_dir(dir.join(above)) else { continue };
        let is_triple = |path: &PathBuf| path.to_string_lossy().ends_with("-linux-gnu");
        folders.extend(entries.flatten().map(|entry| entry.path()).filter(is_triple));
    }
    ensure!(!folders.is_empty(), "{}: no libraries", dir.display());
    Ok(folders)
}

/// What there is to get.
pub(crate) struct Missing {
    lists: Lists,
    offer: Offer,
}

impl Missing {
    /// Asks apt for the newest.
    pub(crate) fn look_up() -> Result<Self> {
        if !apt::is_here() {
            bail!(
                "BPF toolchain: apt-get not found, so it cannot be fetched here; \
                 name one in SPILLWAY_BPF_RUSTC (a nightly rustc with rust-src) and \
                 SPILLWAY_BPF_LINKER (a bpf-linker built for the same LLVM)"
            );
        }
        let lists = Lists::open()?;
        let offer = Offer::of(&lists)?;
        Ok(Self { lists, offer })
    }

    pub(crate) fn print(&self) -> Result<()> {
        ui::note(&format!(
            "{:<18} {:>8}  compiles the packet programs: Rust {}, LLVM {}, into {}",
            "BPF toolchain",
            ui::megabytes(self.offer.bytes()),
            self.offer.rust,
            self.offer.llvm_major,
            cache::root()?.display()
        ));
        ui::note(&format!("{:<18} {:>8}  {}", "", "", self.offer.names().join(" ")));
        ui::note(&format!(
            "{:<18} {:>8}  links them; built from source, about a minute",
            format!("bpf-linker {}", linker::VERSION),
            "3 MB"
        ));
        Ok(())
    }

    /// Unpacks the compiler and builds the linker. Needs no root.
    pub(crate) fn get(&self) -> Result<()> {
        let offer = &self.offer;
        let name = format!(
            "{PREFIX}rust-{}-llvm-{}-bpf-linker-{}",
            offer.rust,
            offer.llvm_major,
            linker::VERSION
        );
        let entry = Entry::new(&cache::root()?, &name, RECIPE);
        entry.fill(|dir| {
            ui::heading(&format!("BPF toolchain, into {}", dir.display()));
            self.lists.unpack(&offer.names(), &dir.join("root"))?;
            drop(fs::remove_dir_all(dir.join("root/usr/share/doc")));
            let toolchain = Toolchain::at(dir)?;
            let version = toolchain.rustc(&["-vV"])?;
            offer.check(&version)?;
            linker::build(dir, offer.llvm_major)?;
            toolchain.try_out()
        })
    }
}

/// Whether `gcc` and a C library to link with are there: the prerequisites that are not ours.
pub(crate) fn check_prerequisites() -> Result<()> {
    ensure!(
        programs::find("cc").is_some(),
        "cc: not found; install a C compiler and the C library's headers (Debian: gcc libc6-dev)"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_most_object_files_is_linked_first_and_the_rest_in_its_order() {
        let mut link = Command::new(workspace::root().join(LINK));
        link.env("SPILLWAY_LINKER", "echo").args(["-o", "a b", "/x/libcore-1.rlib"]);
        link.args(["/x/libcompiler_builtins-2.rlib", "--btf"]);
        let said = process::read(&mut link).unwrap();
        assert_eq!(said.trim(), "/x/libcompiler_builtins-2.rlib -o a b /x/libcore-1.rlib --btf");
        let mut without = Command::new(workspace::root().join(LINK));
        let said = process::read(without.env("SPILLWAY_LINKER", "echo").args(["-o", "a"])).unwrap();
        assert_eq!(said.trim(), "-o a");
    }
}
