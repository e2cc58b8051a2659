//! A root for the guest: busybox, one program with its libraries, and the BPF objects.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::{cpio::Archive, modules};
use lb_tests::{packets::objects, sample, sandbox::GUEST};

/// Where the guest finds them.
const PROGRAM: &str = "program";
const OBJECTS: &str = "objects";
const MODULES: &str = "modules";
/// Nobody debugs in there.
const STRIPPED: &str = "--strip-all";

/// What the guest does: its output and its exit status go to the serial console.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox ip link set lo up
export PATH=/bin
echo "guest: kernel $(/bin/busybox uname -r)"
"#;

/// What a guest has and does.
#[derive(Clone, Copy, Debug)]
pub struct Guest<'a> {
    /// An unpacked kernel package.
    pub kernel: &'a Path,
    /// What it runs as root, with [`GUEST`] set to `role`, and then turns itself off.
    pub program: &'a Path,
    /// An argument of the program's; empty: none.
    pub argument: &'a str,
    /// What the program is to be in this guest.
    pub role: &'a str,
    /// Programs that it may run from `/bin`.
    pub tools: &'a [&'a Path],
    /// Modules that are loaded first, and those that they need.
    pub modules: &'a [&'a str],
}

/// Makes the archive of a guest. `scratch` is a directory for files on the way.
///
/// # Errors
/// When a part is missing.
pub fn initramfs(guest: &Guest<'_>, scratch: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let mut directories = BTreeSet::new();
    for name in ["bin", "proc", "run", "sys", "tmp", "dev", OBJECTS, MODULES] {
        add_directory(&mut archive, &mut directories, Path::new(name));
    }
    archive.file("bin/busybox", &read(&busybox()?)?);
    let mut init = INIT.to_owned();
    for module in modules::with_needed(guest.kernel, guest.modules)? {
        let file = format!("{MODULES}/{}", module.name);
        archive.file(&file, &module.bytes);
        init += &format!("/bin/busybox insmod /{file}\n");
    }
    let argument = guest.argument.replace('\'', r"'\''");
    let argument = if argument.is_empty() { argument } else { format!("'{argument}'") };
    // What of the trials is run in there is what the host expects.
    if let Ok(number) = std::env::var(sample::VARIABLE) {
        init += &format!("export {}={number}\n", sample::VARIABLE);
    }
    init += &format!(
        "{GUEST}={} RUST_BACKTRACE=0 SPILLWAY_BPF_OBJECTS=/{OBJECTS} SPILLWAY_BIN_DIR=/bin /{PROGRAM} --color never {argument}\n\
         echo \"guest: exit $?\"\n/bin/busybox poweroff -f\n",
        guest.role
    );
    archive.file("init", init.as_bytes());
    archive.file(PROGRAM, &stripped(guest.program, scratch)?);
    let mut needed: BTreeSet<_> = libraries(guest.program)?.into_iter().collect();
    for program in guest.tools {
        let name = program.file_name().context("a program has a name")?;
        archive.file(&format!("bin/{}", name.display()), &stripped(program, scratch)?);
        needed.extend(libraries(program)?);
    }
    for library in needed {
        let name = library.strip_prefix("/").unwrap_or(&library).to_path_buf();
        if let Some(parent) = name.parent() {
            add_directory(&mut archive, &mut directories, parent);
        }
        archive.file(&name.to_string_lossy(), &read(&library)?);
    }
    for object in ["balancer.o", "bench.o", "receiver.o"] {
        archive.file(&format!("{OBJECTS}/{object}"), &read(&objects::directory().join(object))?);
    }
    Ok(archive.finish())
}

/// A program without what only a debugger reads.
fn stripped(program: &Path, scratch: &Path) -> Result<Vec<u8>> {
    let to = scratch.join(PROGRAM);
    let status = Command::new("strip").args([STRIPPED, "-o"]).arg(&to).arg(program).status();
    ensure!(status.context("start strip")?.success(), "strip {}", program.display());
    read(&to)
}

/// Adds a directory and those above it, each once.
fn add_directory(archive: &mut Archive, seen: &mut BTreeSet<PathBuf>, directory: &Path) {
    if directory.as_os_str().is_empty() || !seen.insert(directory.to_path_buf()) {
        return;
    }
    if let Some(parent) = directory.parent() {
        add_directory(archive, seen, parent);
    }
    archive.directory(&directory.to_string_lossy());
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Debian's busybox; it has to be the static one.
fn busybox() -> Result<PathBuf> {
    tool("busybox").context("Debian's package is busybox-static")
}

/// A program of the host's.
///
/// # Errors
/// When it is not in PATH.
pub fn tool(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).map(|directory| directory.join(name));
    let found = all.into_iter().find(|path| path.is_file());
    found.with_context(|| format!("{name}: not in PATH"))
}

/// The shared libraries of a program, and its loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("start ldd")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let paths = said.split_whitespace().filter(|word| word.starts_with('/'));
    let libraries: Vec<_> = paths.map(PathBuf::from).collect();
    ensure!(output.status.success() && !libraries.is_empty(), "ldd {}: {said}", program.display());
    Ok(libraries)
}
