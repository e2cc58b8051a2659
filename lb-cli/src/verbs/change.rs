//! What a generation changed, as everything that changes something prints it, and `watch`.

use lb_daemon::memory::Bytes;
use serde::Serialize;
use spillway_proto::v1::{self, change::Kind};

use crate::output::{Report, count};

/// One object that differs.
#[derive(Serialize)]
pub(crate) struct Change {
    kind: &'static str,
    object: String,
    details: Vec<String>,
    slots_moved: u64,
}

impl From<v1::Change> for Change {
    fn from(change: v1::Change) -> Self {
        let kind = match change.kind() {
            Kind::Added => "added",
            Kind::Removed => "removed",
            Kind::Changed | Kind::Unspecified => "changed",
        };
        Self {
            kind,
            object: change.object,
            details: change.details,
            slots_moved: change.slots_moved,
        }
    }
}

impl Change {
    /// A line for the object and one for each field: `~ pool web`, `    slots: 65537 -> 251`.
    pub(crate) fn lines(&self) -> String {
        let sign = match self.kind {
            "added" => '+',
            "removed" => '-',
            _ => '~',
        };
        let moved = match self.slots_moved {
            0 => String::new(),
            slots => format!(" ({} moved)", count(slots, "slot")),
        };
        let details: String = self.details.iter().map(|detail| format!("    {detail}\n")).collect();
        format!("{sign} {}{moved}\n{details}", self.object)
    }
}

/// What a call changed, or would.
#[derive(Serialize)]
pub(crate) struct Changes {
    pub(super) generation: u64,
    dry_run: bool,
    pub(super) changes: Vec<Change>,
    /// Kernel memory of the maps, where the daemon says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
}

/// Bytes.
#[derive(Serialize)]
struct Memory {
    needed: u64,
    /// While tables from before the change are there.
    peak: u64,
    /// `null`: none.
    limit: Option<u64>,
}

impl Changes {
    /// The answer's generation and changes.
    pub(crate) fn new(generation: u64, dry_run: bool, changes: Vec<v1::Change>) -> Self {
        let changes = changes.into_iter().map(Change::from).collect();
        Self { generation, dry_run, changes, memory: None }
    }

    /// The same with what the maps take.
    pub(crate) fn with(self, memory: Option<v1::MapMemory>) -> Self {
        let memory = memory.map(|memory| Memory {
            needed: memory.needed_bytes,
            peak: memory.peak_bytes,
            limit: memory.limit_bytes,
        });
        Self { memory, ..self }
    }
}

impl Report for Changes {
    fn table(&self) -> String {
        let generation = self.generation;
        let changes = count(self.changes.len() as u64, "change");
        let head = match (self.changes.is_empty(), self.dry_run) {
            (true, _) => format!("generation {generation} stays in force: nothing differs\n"),
            (false, true) => {
                format!("dry run: generation {generation} stays in force; it would be {changes}\n")
            }
            (false, false) => format!("generation {generation} is in force: {changes}\n"),
        };
        let memory = self.memory.as_ref().filter(|_| self.dry_run).map(Memory::line);
        let changes = self.changes.iter().map(Change::lines);
        [head].into_iter().chain(memory).chain(changes).collect()
    }
}

impl Memory {
    /// `the maps would take 72.5 MiB of kernel memory, 73.1 MiB until it has settled; limit 1 GiB`
    fn line(&self) -> String {
        let until = match self.peak {
            peak if peak > self.needed => format!(", {} until it has settled", Bytes(peak)),
            _ => String::new(),
        };
        let limit = self.limit.map(|limit| format!("; limit {}", Bytes(limit))).unwrap_or_default();
        format!("the maps would take {} of kernel memory{until}{limit}\n", Bytes(self.needed))
    }
}
