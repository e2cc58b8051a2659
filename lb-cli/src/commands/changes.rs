//! What a generation changes: objects, open connections and kernel memory. Every command that changes
//! something prints it, and so does `watch`.

use std::collections::BTreeMap;

use lb_base::bytes::ByteSize;
use serde::Serialize;
use spillway_proto::v1::{self, change::Kind, movement};

use super::fleet::BalancerGenerations;
use crate::output::{Grid, Report, count};

/// An object of the configuration.
#[derive(Serialize)]
pub(crate) struct ObjectReference {
    /// `configuration`, `region`, `health_check`, `pool`, `group`, `backend` or `service`.
    kind: String,
    /// Of a group the region, of a backend the address; `null`: it is the configuration itself.
    name: Option<String>,
    /// Of a backend or group.
    pool: Option<String>,
}

impl From<v1::ObjectReference> for ObjectReference {
    fn from(message: v1::ObjectReference) -> Self {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let kind = enum_word(message.kind().as_str_name(), "KIND_");
        Self { kind, name: given(message.name), pool: given(message.pool) }
    }
}

/// `health_check` of `KIND_HEALTH_CHECK`.
pub(crate) fn enum_word(value: &str, prefix: &str) -> String {
    match value.strip_prefix(prefix).unwrap_or(value) {
        // A value that only a newer daemon knows.
        "UNSPECIFIED" => "unknown".into(),
        word => word.to_lowercase(),
    }
}

/// A consequence of a change that its author may not have intended.
#[derive(Serialize)]
pub(crate) struct Warning {
    /// Like `pool_unserved`.
    reason: String,
    object: Option<ObjectReference>,
    pub(super) text: String,
}

impl From<v1::Warning> for Warning {
    fn from(message: v1::Warning) -> Self {
        Self {
            reason: enum_word(message.reason().as_str_name(), "WARNING_REASON_"),
            object: message.object.map(Into::into),
            text: message.text,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Change {
    kind: &'static str,
    object: Option<ObjectReference>,
    /// The object in words.
    text: String,
    fields: Vec<FieldChange>,
    slots_moved: u64,
}

#[derive(Serialize)]
struct FieldChange {
    field: String,
    /// Of a field of a group.
    region: Option<String>,
    old: String,
    new: String,
    /// All of it in words.
    text: String,
}

impl From<v1::FieldChange> for FieldChange {
    fn from(message: v1::FieldChange) -> Self {
        let v1::FieldChange { field, old, new, region, text } = message;
        let region = Some(region).filter(|region| !region.is_empty());
        Self { field, region, old, new, text }
    }
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
            object: change.object.map(Into::into),
            text: change.text,
            fields: change.fields.into_iter().map(Into::into).collect(),
            slots_moved: change.slots_moved,
        }
    }
}

impl Change {
    /// One line for the object and one per changed field: `~ pool web`, `    slots: 65537 -> 251`.
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
        let fields: String =
            self.fields.iter().map(|field| format!("    {}\n", field.text)).collect();
        format!("{sign} {}{moved}\n{fields}", self.text)
    }
}

/// What a call changed, or would change.
#[derive(Serialize)]
pub(crate) struct Changes {
    pub(super) generation: u64,
    dry_run: bool,
    pub(super) changes: Vec<Change>,
    /// Effects on open connections; `null`: unknown.
    movements: Option<Vec<Movement>>,
    /// `null`: nothing changes.
    memory: Option<MapMemory>,
    warnings: Vec<Warning>,
    /// What each live balancer of the fleet has in force; empty: no fleet, or nothing changed.
    pub(super) balancers: BalancerGenerations,
}

impl Changes {
    pub(crate) fn new(result: v1::ApplyResult, dry_run: bool) -> Self {
        let v1::ApplyResult {
            generation,
            changes,
            memory,
            movements,
            warnings,
            movements_unknown,
            balancers,
        } = result;
        let movements = movements.into_iter().map(Movement::from).collect();
        Self {
            generation,
            dry_run,
            changes: changes.into_iter().map(Change::from).collect(),
            movements: (!movements_unknown).then_some(movements),
            memory: memory.map(MapMemory::from),
            warnings: warnings.into_iter().map(Warning::from).collect(),
            balancers: balancers.into(),
        }
    }

    /// No change, at this generation.
    pub(crate) fn none(generation: u64, dry_run: bool) -> Self {
        Self::new(v1::ApplyResult { generation, ..v1::ApplyResult::default() }, dry_run)
    }

    /// The effects on connections and memory, for a dry run only.
    fn effects(&self, maps: impl FnOnce(&MapMemory) -> String) -> String {
        if !self.dry_run || self.changes.is_empty() {
            return String::new();
        }
        let memory = self.memory.as_ref().map(|memory| memory.line() + &maps(memory));
        describe_movements(self.movements.as_deref()) + &memory.unwrap_or_default()
    }

    fn head(&self) -> String {
        let generation = self.generation;
        let changes = count(self.changes.len() as u64, "change");
        match (self.changes.is_empty(), self.dry_run) {
            (true, _) => format!("generation {generation} stays in force: nothing differs\n"),
            (false, true) => {
                format!(
                    "dry run: generation {generation} stays in force; it would make {changes}\n"
                )
            }
            (false, false) => format!("generation {generation} is in force: {changes}\n"),
        }
    }

    /// Each change, then its effects.
    fn details_with(&self, maps: impl FnOnce(&MapMemory) -> String) -> String {
        let lines: String = self.changes.iter().map(Change::lines).collect();
        lines + &self.effects(maps) + &self.balancers()
    }

    /// The table without its first line, for a command that has one of its own.
    pub(super) fn details(&self) -> String {
        self.details_with(|_| String::new())
    }

    pub(super) fn wide_details(&self) -> String {
        self.details_with(MapMemory::maps)
    }

    /// Where in the fleet the generation is in force, unless it was a dry run.
    fn balancers(&self) -> String {
        let line = self.balancers.line(self.generation).filter(|_| !self.dry_run);
        line.map_or_else(String::new, |line| line + "\n")
    }
}

impl Report for Changes {
    fn table(&self) -> String {
        self.head() + &self.details()
    }

    fn wide(&self) -> String {
        self.head() + &self.wide_details()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.iter().map(|warning| warning.text.clone()).collect()
    }
}

/// The effect of a change on the open connections of an object.
#[derive(Serialize)]
pub(super) struct Movement {
    object: Option<ObjectReference>,
    /// The object in words.
    text: String,
    effect: Effect,
    /// Share of the object's connections at home, 0 to 1.
    share: f64,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    Settle,
    AtOnce,
    End,
    /// An effect that only a newer daemon knows.
    Unknown,
}

impl Effect {
    fn describe(self) -> &'static str {
        match self {
            Self::Settle => {
                "stay for the settle time; those that send nothing in that time may be reset"
            }
            Self::AtOnce => "move to another backend at once, which resets TCP",
            Self::End => "are no longer balanced",
            Self::Unknown => "unknown to this version of spillway",
        }
    }
}

impl From<v1::Movement> for Movement {
    fn from(movement: v1::Movement) -> Self {
        let effect = match movement.effect() {
            movement::Effect::Settle => Effect::Settle,
            movement::Effect::AtOnce => Effect::AtOnce,
            movement::Effect::End => Effect::End,
            movement::Effect::Unspecified => Effect::Unknown,
        };
        let object = movement.object.map(Into::into);
        Self { object, text: movement.text, effect, share: movement.share }
    }
}

/// A share of connections: `all`, `16.7%`, `< 0.1%`.
pub(super) fn format_share(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "< 0.1%".into(),
        percent if percent >= 99.95 => "all".into(),
        percent => format!("{percent:.1}%"),
    }
}

/// The effects on open connections, one line each; `None`: unknown.
pub(super) fn describe_movements(movements: Option<&[Movement]>) -> String {
    let Some(movements) = movements else {
        return "open connections: unknown which of them move\n".into();
    };
    if movements.is_empty() {
        return "open connections: none move\n".into();
    }
    let mut grid = Grid::bare().right([1]);
    for movement in movements {
        let object = format!("  {}", movement.text);
        grid.row([object, format_share(movement.share), movement.effect.describe().into()]);
    }
    format!(
        "open connections that move or end (by the tables alone, ignoring health):\n{}",
        grid.lines()
    )
}

/// Kernel memory of the maps, bytes.
#[derive(Serialize)]
struct MapMemory {
    needed: u64,
    /// Needed while the tables from before the change still exist.
    peak: u64,
    /// `null`: no limit.
    limit: Option<u64>,
    /// By map.
    maps: BTreeMap<String, u64>,
}

impl From<v1::MapMemory> for MapMemory {
    fn from(memory: v1::MapMemory) -> Self {
        Self {
            needed: memory.needed_bytes,
            peak: memory.peak_bytes,
            limit: memory.limit_bytes,
            maps: memory.maps.into_iter().map(|map| (map.map, map.bytes)).collect(),
        }
    }
}

impl MapMemory {
    /// `kernel memory: the maps need 72.5 MiB, 73.1 MiB until the change has settled; limit 1 GiB`
    fn line(&self) -> String {
        let until = match self.peak {
            peak if peak > self.needed => {
                format!(", {} until the change has settled", ByteSize(peak))
            }
            _ => String::new(),
        };
        let limit =
            self.limit.map(|limit| format!("; limit {}", ByteSize(limit))).unwrap_or_default();
        format!("kernel memory: the maps need {}{until}{limit}\n", ByteSize(self.needed))
    }

    /// One line per map.
    fn maps(&self) -> String {
        let mut grid = Grid::bare().wide().right([1]);
        for (map, bytes) in &self.maps {
            grid.row([format!("  {map}"), ByteSize(*bytes).to_string()]);
        }
        grid.lines()
    }
}

/// A change in an answer, for tests: fields as `weight: 1 -> 2`.
#[cfg(test)]
pub(crate) fn change_message(
    kind: Kind,
    text: &str,
    fields: &[&str],
    slots_moved: u64,
) -> v1::Change {
    let field = |text: &&str| {
        let (field, values) = text.split_once(": ").unwrap();
        let (old, new) = values.split_once(" -> ").unwrap();
        v1::FieldChange {
            field: field.into(),
            old: old.into(),
            new: new.into(),
            region: String::new(),
            text: (*text).into(),
        }
    };
    v1::Change {
        kind: kind.into(),
        object: None,
        text: text.into(),
        fields: fields.iter().map(field).collect(),
        slots_moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn movement(object: &str, effect: movement::Effect, share: f64) -> Movement {
        let (text, effect) = (object.into(), effect.into());
        v1::Movement { object: None, effect, share, text }.into()
    }

    #[test]
    fn effects_are_listed_by_object_within_80_columns() {
        let moving = [
            movement("pool web", movement::Effect::Settle, 1.0 / 6.0),
            movement("pool web: backend 10.0.0.1", movement::Effect::AtOnce, 1.0),
            movement("service web", movement::Effect::End, 0.000_01),
        ];
        assert_eq!(
            describe_movements(Some(&moving)),
            "\
open connections that move or end (by the tables alone, ignoring health):
  pool web                     16.7%  stay for the settle time; those that send
                                      nothing in that time may be reset
  pool web: backend 10.0.0.1     all  move to another backend at once, which
                                      resets TCP
  service web                 < 0.1%  are no longer balanced
"
        );
        assert_eq!(describe_movements(Some(&[])), "open connections: none move\n");
        assert_eq!(describe_movements(None), "open connections: unknown which of them move\n");
        assert_eq!(
            serde_json::to_value(&moving[1]).unwrap(),
            serde_json::json!({
                "object": null, "text": "pool web: backend 10.0.0.1", "effect": "at_once", "share": 1.0
            })
        );
    }

    #[test]
    fn memory_is_printed_in_total_and_by_map() {
        let map = |map: &str, bytes| v1::MapBytes { map: map.into(), bytes };
        let memory = |limit_bytes| {
            MapMemory::from(v1::MapMemory {
                needed_bytes: 3 << 19,
                peak_bytes: 2 << 20,
                limit_bytes,
                maps: vec![map("TABLES", 1 << 20), map("ARRAYS", 1 << 19)],
            })
        };
        let all = "kernel memory: the maps need 1.5 MiB, 2 MiB until the change has settled";
        assert_eq!(memory(None).line(), format!("{all}\n"));
        assert_eq!(memory(Some(1 << 30)).line(), format!("{all}; limit 1 GiB\n"));
        assert_eq!(memory(None).maps(), "  ARRAYS  512 KiB\n  TABLES    1 MiB\n");
    }
}
