//! What a generation changed, as `apply` and `watch` print it.

use serde::Serialize;
use spillway_proto::v1::{self, change::Kind};

use crate::output::count;

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
