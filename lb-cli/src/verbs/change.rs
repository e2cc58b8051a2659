//! What a generation changed, as everything that changes something prints it, and `watch`.

use serde::Serialize;
use spillway_proto::v1::{self, change::Kind};

use super::outcome::{Memory, Movement, movements};
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
    /// Open connections that do not just stay; `null`: not known.
    movements: Option<Vec<Movement>>,
    /// `null`: nothing changes.
    memory: Option<Memory>,
    /// What its author should know, on standard error.
    #[serde(skip)]
    warnings: Vec<String>,
}

impl Changes {
    /// What the daemon answers.
    pub(crate) fn new(applied: v1::ApplyResponse, dry_run: bool) -> Self {
        let v1::ApplyResponse {
            generation,
            changes,
            memory,
            movements,
            warnings,
            movements_unknown,
        } = applied;
        let movements = movements.into_iter().map(Movement::from).collect();
        Self {
            generation,
            dry_run,
            changes: changes.into_iter().map(Change::from).collect(),
            movements: (!movements_unknown).then_some(movements),
            memory: memory.map(Memory::from),
            warnings,
        }
    }

    /// Nothing, in this generation.
    pub(crate) fn none(generation: u64, dry_run: bool) -> Self {
        Self::new(v1::ApplyResponse { generation, ..v1::ApplyResponse::default() }, dry_run)
    }

    /// Of a dry run what would become of connections and memory.
    fn outcome(&self, maps: impl FnOnce(&Memory) -> String) -> String {
        if !self.dry_run || self.changes.is_empty() {
            return String::new();
        }
        let memory = self.memory.as_ref().map(|memory| memory.line() + &maps(memory));
        movements(self.movements.as_deref()) + &memory.unwrap_or_default()
    }

    fn lines(&self) -> String {
        let generation = self.generation;
        let changes = count(self.changes.len() as u64, "change");
        let head = match (self.changes.is_empty(), self.dry_run) {
            (true, _) => format!("generation {generation} stays in force: nothing differs\n"),
            (false, true) => {
                format!("dry run: generation {generation} stays in force; it would be {changes}\n")
            }
            (false, false) => format!("generation {generation} is in force: {changes}\n"),
        };
        [head].into_iter().chain(self.changes.iter().map(Change::lines)).collect()
    }
}

impl Report for Changes {
    fn table(&self) -> String {
        self.lines() + &self.outcome(|_| String::new())
    }

    fn wide(&self) -> String {
        self.lines() + &self.outcome(Memory::maps)
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
