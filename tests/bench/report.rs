//! What the bench found: a table for people, `datapath.json` for programs.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use lb_tests::test_run::throughput::Throughput;

use crate::{cases::Timing, requests::Requests};

/// Everything that was measured.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Nanoseconds a packet.
    pub(crate) timings: Vec<Timing>,
    /// Packets a second.
    pub(crate) throughput: Throughput,
    /// Microseconds a request.
    pub(crate) requests: Requests,
    /// Members and median time of a table of 65537 slots.
    pub(crate) tables: Vec<(u16, Duration)>,
}

impl Report {
    /// The table, one line a case.
    pub(crate) fn table(&self) -> String {
        let mut out = format!(
            "{:<24}{:>10}{:>8}{:>8}{:>13}\n",
            "ns a packet", "flows", "whole", "floor", "above floor"
        );
        for timing in &self.timings {
            out += &format!(
                "{:<24}{:>10}{:>8.0}{:>8.0}{:>13.0}\n",
                timing.case.name,
                timing.case.flows,
                timing.ns,
                timing.floor_ns,
                timing.ns - timing.floor_ns
            );
        }
        let Throughput { mpps, floor_mpps } = self.throughput;
        let ratio = mpps / floor_mpps;
        out += &format!(
            "\nveth pair: {mpps:.2} million packets a second, floor {floor_mpps:.2}, ratio {ratio:.2}\n"
        );
        let Requests { connections, direct_us, balanced_us } = self.requests;
        out += &format!(
            "{connections} fresh curl connections each way, medians: direct {direct_us:.0} us, \
             balanced {balanced_us:.0} us, ratio {:.2}\n",
            balanced_us / direct_us
        );
        for (members, time) in &self.tables {
            let ms = time.as_secs_f64() * 1e3;
            out += &format!("table of 65537 slots, {members} members: {ms:.1} ms\n");
        }
        out
    }

    /// Writes `datapath.json` into a folder.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let tables = self.tables.iter().map(|(members, time)| {
            json!({ "case": "table build", "members": members, "slots": 65_537,
                    "ms": time.as_secs_f64() * 1e3 })
        });
        let all: Vec<Value> = self
            .timings
            .iter()
            .map(|timing| timing.to_json())
            .chain([self.throughput.to_json(), self.requests.to_json()])
            .chain(tables)
            .collect();
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join("datapath.json");
        std::fs::write(&path, serde_json::to_vec_pretty(&all)?)
            .with_context(|| path.display().to_string())
    }
}
