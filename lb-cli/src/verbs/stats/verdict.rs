//! Packets by verdict, of either role.

use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};
use serde::Serialize;

use crate::{output::Grid, verbs::verdicts::action_word};

/// Packets under each verdict.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Verdicts(pub(super) Vec<Row>);

#[derive(Serialize)]
pub(super) struct Row {
    verdict: &'static str,
    action: &'static str,
    packets: u64,
    bytes: u64,
}

impl FromIterator<(Verdict, VerdictCounter)> for Verdicts {
    fn from_iter<I: IntoIterator<Item = (Verdict, VerdictCounter)>>(counters: I) -> Self {
        let row = |(verdict, counter): (Verdict, VerdictCounter)| Row {
            verdict: verdict.name(),
            action: action_word(verdict.action()),
            packets: counter.packets,
            bytes: counter.bytes,
        };
        Self(counters.into_iter().map(row).collect())
    }
}

impl Verdicts {
    /// The verdicts that any packet got; the others are only in the other form.
    pub(super) fn table(&self) -> String {
        let seen = || self.0.iter().filter(|v| v.packets > 0);
        if seen().next().is_none() {
            return "no packets yet\n".into();
        }
        let mut grid = Grid::new(["VERDICT", "ACTION", "PACKETS", "BYTES"]).right([2, 3]);
        for v in seen() {
            let (verdict, action) = (v.verdict.into(), v.action.into());
            grid.row([verdict, action, v.packets.to_string(), v.bytes.to_string()]);
        }
        grid.lines()
    }
}
