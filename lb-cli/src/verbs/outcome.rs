//! What a change does to open connections and to the kernel's memory.

use std::collections::BTreeMap;

use lb_daemon::memory::Bytes;
use serde::Serialize;
use spillway_proto::v1::{self, movement};

use crate::output::Grid;

/// Open connections of an object that do not just stay.
#[derive(Serialize)]
pub(super) struct Movement {
    object: String,
    effect: Effect,
    /// Share of the object's open connections at home, 0 to 1.
    share: f64,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    Settle,
    AtOnce,
    End,
    /// One that a later daemon knows and this program not.
    Unknown,
}

impl Effect {
    fn words(self) -> &'static str {
        match self {
            Self::Settle => {
                "stay for the settle time; those that send nothing in its last third may be reset"
            }
            Self::AtOnce => "go to another backend at once, which resets TCP",
            Self::End => "are not balanced any more",
            Self::Unknown => "meet with what this version of spillway has no word for",
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
        Self { object: movement.object, effect, share: movement.share }
    }
}

/// A share of connections: `all`, `16.7%`, `< 0.1%`.
fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "< 0.1%".into(),
        percent if percent >= 99.95 => "all".into(),
        percent => format!("{percent:.1}%"),
    }
}

/// What becomes of open connections, in lines; `None`: it is not known.
pub(super) fn movements(movements: Option<&[Movement]>) -> String {
    let Some(movements) = movements else {
        return "open connections: not known which move\n".into();
    };
    if movements.is_empty() {
        return "open connections: none moves\n".into();
    }
    let mut grid = Grid::bare().right([1]);
    for movement in movements {
        let object = format!("  {}", movement.object);
        grid.row([object, share(movement.share), movement.effect.words().into()]);
    }
    format!("open connections, by the tables alone, whatever the health:\n{}", grid.lines())
}

/// Kernel memory of the maps, bytes.
#[derive(Serialize)]
pub(super) struct Memory {
    needed: u64,
    /// While tables from before the change are there.
    peak: u64,
    /// `null`: none.
    limit: Option<u64>,
    /// Each map's.
    maps: BTreeMap<String, u64>,
}

impl From<v1::MapMemory> for Memory {
    fn from(memory: v1::MapMemory) -> Self {
        Self {
            needed: memory.needed_bytes,
            peak: memory.peak_bytes,
            limit: memory.limit_bytes,
            maps: memory.maps.into_iter().map(|map| (map.map, map.bytes)).collect(),
        }
    }
}

impl Memory {
    /// `kernel memory: the maps would take 72.5 MiB, 73.1 MiB until it has settled; limit 1 GiB`
    pub(super) fn line(&self) -> String {
        let until = match self.peak {
            peak if peak > self.needed => format!(", {} until it has settled", Bytes(peak)),
            _ => String::new(),
        };
        let limit = self.limit.map(|limit| format!("; limit {}", Bytes(limit))).unwrap_or_default();
        format!("kernel memory: the maps would take {}{until}{limit}\n", Bytes(self.needed))
    }

    /// A line for each map.
    pub(super) fn maps(&self) -> String {
        let mut grid = Grid::bare().wide().right([1]);
        for (map, bytes) in &self.maps {
            grid.row([format!("  {map}"), Bytes(*bytes).to_string()]);
        }
        grid.lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(object: &str, effect: movement::Effect, share: f64) -> Movement {
        v1::Movement { object: object.into(), effect: effect.into(), share }.into()
    }

    #[test]
    fn what_moves_is_told_object_by_object_within_80_columns() {
        let moving = [
            of("pool web", movement::Effect::Settle, 1.0 / 6.0),
            of("pool web: backend 10.0.0.1", movement::Effect::AtOnce, 1.0),
            of("service web", movement::Effect::End, 0.000_01),
        ];
        assert_eq!(
            movements(Some(&moving)),
            "\
open connections, by the tables alone, whatever the health:
  pool web                     16.7%  stay for the settle time; those that send
                                      nothing in its last third may be reset
  pool web: backend 10.0.0.1     all  go to another backend at once, which
                                      resets TCP
  service web                 < 0.1%  are not balanced any more
"
        );
        assert_eq!(movements(Some(&[])), "open connections: none moves\n");
        assert_eq!(movements(None), "open connections: not known which move\n");
        assert_eq!(
            serde_json::to_value(&moving[1]).unwrap(),
            serde_json::json!({
                "object": "pool web: backend 10.0.0.1", "effect": "at_once", "share": 1.0
            })
        );
    }

    #[test]
    fn memory_is_told_in_all_and_map_by_map() {
        let map = |map: &str, bytes| v1::MapBytes { map: map.into(), bytes };
        let memory = |limit_bytes| {
            Memory::from(v1::MapMemory {
                needed_bytes: 3 << 19,
                peak_bytes: 2 << 20,
                limit_bytes,
                maps: vec![map("TABLES", 1 << 20), map("RECORDS", 1 << 19)],
            })
        };
        let all = "kernel memory: the maps would take 1.5 MiB, 2 MiB until it has settled";
        assert_eq!(memory(None).line(), format!("{all}\n"));
        assert_eq!(memory(Some(1 << 30)).line(), format!("{all}; limit 1 GiB\n"));
        assert_eq!(memory(None).maps(), "  RECORDS  512 KiB\n  TABLES     1 MiB\n");
    }
}
