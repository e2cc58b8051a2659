//! BPF objects, by their ids, as bpftool sees them.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

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

/// The objects that are pinned below a directory; none if it is not there (any more).
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
    Some(BpfObject { kind, id: shown["id"].as_u64()? })
}
