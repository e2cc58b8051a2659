//! What the bench found: a table for people, JSON for programs.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::peers::{self, PeerFigures};
use crate::question::{CaseName, Sample, Unit};
use crate::tables::TableTime;

/// The medians of a case.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// The case.
    pub(crate) name: CaseName,
    /// Its medians.
    pub(crate) median: Sample,
}

impl Timing {
    /// As it stands in the report; older revisions are compared by these names.
    fn to_json(&self) -> Value {
        let (CaseName { case, flows, unit }, Sample { value, floor }) = (&self.name, self.median);
        match unit {
            Unit::Nanoseconds => {
                json!({ "case": case, "flows": flows, "ns": value, "floor_ns": floor,
                                         "above_floor_ns": value - floor })
            }
            Unit::Mpps => json!({ "case": case, "flows": flows, "mpps": value, "floor_mpps": floor,
                                  "ratio": value / floor }),
        }
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Of the packet path.
    pub(crate) timings: Vec<Timing>,
    /// How long tables take to build.
    pub(crate) tables: Vec<TableTime>,
    /// Spillway beside others.
    pub(crate) peers: Vec<PeerFigures>,
}

impl Report {
    /// The table, one line a case.
    pub(crate) fn table(&self) -> String {
        let mut out = self.part(Unit::Nanoseconds, "ns a packet", "above floor");
        out += &self.part(Unit::Mpps, "million packets a second", "ratio");
        for table in &self.tables {
            let TableTime { members, slots, .. } = table;
            out += &format!("table of {slots} slots, {members} members: {:.1} ms\n", table.ms());
        }
        if !self.peers.is_empty() {
            out += &format!("\n{}", peers::table(&self.peers));
        }
        out
    }

    fn part(&self, unit: Unit, what: &str, against_floor: &str) -> String {
        let mut rows = self.timings.iter().filter(|timing| timing.name.unit == unit).peekable();
        if rows.peek().is_none() {
            return String::new();
        }
        let mut out =
            format!("{what:<34}{:>11}{:>8}{:>8}{against_floor:>13}\n", "flows", "whole", "floor");
        for Timing { name, median: Sample { value, floor } } in rows {
            let (places, compared) = match unit {
                Unit::Nanoseconds => (0, value - floor),
                Unit::Mpps => (2, value / floor),
            };
            let CaseName { case, flows, .. } = name;
            out += &format!(
                "{case:<34}{flows:>11}{value:>8.places$}{floor:>8.places$}{compared:>13.places$}\n"
            );
        }
        out + "\n"
    }

    /// Writes `datapath.json` into a folder, or `peers.json` if the packet path was not measured.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let all: Vec<Value> = self
            .timings
            .iter()
            .map(Timing::to_json)
            .chain(self.tables.iter().map(|table| table.to_json()))
            .chain(self.peers.iter().map(|peer| peer.to_json()))
            .collect();
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let name = if self.timings.is_empty() { "peers.json" } else { "datapath.json" };
        let path = folder.join(name);
        std::fs::write(&path, serde_json::to_vec_pretty(&all)?)
            .with_context(|| path.display().to_string())
    }
}
