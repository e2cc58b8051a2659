//! What a program that ended has left, seen from the sandbox around it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

/// A program, map or link of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpfObject {
    kind: &'static str,
    id: u64,
}

impl BpfObject {
    /// A kind ("prog", "map" or "link") with an id.
    pub const fn new(kind: &'static str, id: u64) -> Self {
        Self { kind, id }
    }

    /// Whether the kernel has it.
    ///
    /// # Errors
    /// When bpftool cannot be run.
    pub fn exists(&self) -> Result<bool> {
        let id = self.id.to_string();
        let output = Command::new("bpftool").args([self.kind, "show", "id", &id]).output()?;
        Ok(output.status.success())
    }
}

/// The objects that are pinned below a directory, but arrays of programs; none if it is not there (any more).
pub fn pinned_below(directory: &Path) -> Vec<BpfObject> {
    let mut objects = Vec::new();
    // What is taken away while we look is no object.
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            objects.extend(pinned_below(&path));
        } else {
            objects.extend(["prog", "map", "link"].iter().find_map(|kind| pinned(kind, &path)));
        }
    }
    objects
}

fn pinned(kind: &'static str, path: &Path) -> Option<BpfObject> {
    let output =
        Command::new("bpftool").args(["-j", kind, "show", "pinned"]).arg(path).output().ok()?;
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    // Opened by its id in the moment of its removal, an array of programs stays for good: the kernel clears it once and
    // counts that twice (kernel/bpf/arraymap.c, `prog_array_map_clear`). To ask whether it is gone would keep it.
    (shown["type"] != "prog_array").then_some(())?;
    Some(BpfObject { kind, id: shown["id"].as_u64()? })
}

/// A mount in this mount namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    id: u64,
    at: String,
}

/// All mounts here. Whatever others do changes none of their ids, and makes none: the sandbox's mounts are private. But
/// a mount goes from here too if others remove the directory that it is on, and its options are those of its file
/// system, which others can change.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn mounts() -> Result<BTreeSet<Mount>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        let id = fields.next()?.parse().ok()?;
        // What stands behind a path of a directory that was removed.
        let at = fields.nth(3)?.trim_end_matches("//deleted").to_owned();
        Some(Mount { id, at })
    };
    let parsed = mounts.lines().map(|line| mount(line).with_context(|| line.to_owned()));
    parsed.collect()
}

/// A process other than this one.
#[derive(Debug)]
pub struct Other {
    /// Its id.
    pub pid: u32,
    /// The process that started it.
    pub parent: u32,
    /// Its network namespace, as `net:[NUMBER]`.
    pub network: Option<PathBuf>,
}

/// All processes in the sandbox but its first, which is this one. Ended ones that nobody has waited
/// for are left out: orphans come to this process, and it waits only for its own.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn others() -> Result<Vec<Other>> {
    let mut others = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some((state, parent)) = stat(pid) else { continue };
        if pid != 1 && state != "Z" && state != "X" {
            let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok();
            others.push(Other { pid, parent, network });
        }
    }
    Ok(others)
}

/// State and parent of a process (proc(5), `/proc/PID/stat`).
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ');
    Some((after_name.next()?.to_owned(), after_name.next()?.parse().ok()?))
}
