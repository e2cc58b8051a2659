//! Which schema revision of configurations the members of a fleet understand.

use std::collections::BTreeMap;

use lb_model::Name;

use super::Snapshot;
use crate::DocumentError;

/// What a member's program understands, as far as etcd says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Understood {
    /// The schema revision.
    pub schema: u32,
    /// Of the program. Empty: unknown.
    pub version: String,
    /// Whether it says so now. Otherwise it did at its last start, and may be started again.
    pub is_alive: bool,
}

impl Snapshot {
    /// What each member understands. One whose value cannot be read is left out: only a newer program writes such values.
    pub fn understood(&self) -> BTreeMap<Name, Understood> {
        let members = self.members.iter().map(|(name, member)| {
            let alive = self.alive.get(name).map(|alive| &alive.document.body);
            let last = &member.document.body;
            let (schema, version) = match alive {
                Some(alive) => (alive.schema, &alive.version),
                None => (last.schema, &last.version),
            };
            let is_alive = alive.is_some();
            (name.clone(), Understood { schema, version: version.clone(), is_alive })
        });
        members.collect()
    }

    /// Overrides, homes and discovered backends whose values a newer version wrote. What they say is not in the snapshot.
    pub fn newer_values(&self) -> impl Iterator<Item = &DocumentError> {
        self.unreadable.iter().filter_map(|(key, error)| {
            // `/spillway/<fleet>/<folder>/…`
            let folder = key.split('/').nth(3)?;
            let is_shared = ["overrides", "homes", "discovered"].contains(&folder);
            (is_shared && matches!(error, DocumentError::Newer { .. })).then_some(error)
        })
    }
}
