//! Both revisions side by side: a table for people, `against.json` for programs.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Comparison, Mode, Row};
use crate::question::{CaseName, Unit};

impl Comparison {
    /// The table, one line a case, and how it was made.
    pub(crate) fn table(&self) -> String {
        let Self { other, mode, .. } = self;
        let mut out = match mode {
            Mode::Rounds => format!("{other} and this tree by turns, round by round: medians\n"),
            Mode::SteadyRounds => format!(
                "{other} and this tree by turns, round by round, while the floor stood still: medians\n"
            ),
            Mode::WholeRuns => format!(
                "{other} cannot be asked for single rounds: whole quick runs of its bench by turns \
                 with as many rounds of this tree, medians\n"
            ),
        };
        out += &self.part(Unit::Nanoseconds, "ns a packet", "above");
        out += &self.part(Unit::Mpps, "million packets a second", "ratio");
        out += &list("thrown away, since the floor moved", &self.thrown_away);
        out += &list("only in this tree", &self.only_here);
        out += &list(&format!("only in {other}"), &self.only_there);
        out
    }

    fn part(&self, unit: Unit, what: &str, against_floor: &str) -> String {
        let mut rows = self.rows.iter().filter(|row| row.name.unit == unit).peekable();
        if rows.peek().is_none() {
            return String::new();
        }
        let side = |name: &str| format!("{name:>13}{:>8}{against_floor:>8}", "floor");
        let mut out = format!(
            "\n{what:<34}{:>11}{}{}{:>13}\n",
            "flows",
            side(&self.other),
            side("this tree"),
            "this/that"
        );
        for row in rows {
            let places = if unit == Unit::Nanoseconds { 0 } else { 2 };
            let side = |sample: crate::question::Sample| {
                let compared = against(unit, sample);
                format!(
                    "{:>13.places$}{:>8.places$}{compared:>8.places$}",
                    sample.value, sample.floor
                )
            };
            let ratio = row.ratio().map_or("–".into(), |ratio| format!("{ratio:.2}"));
            let CaseName { case, flows, .. } = &row.name;
            out +=
                &format!("{case:<34}{flows:>11}{}{}{ratio:>13}\n", side(row.there), side(row.here));
        }
        out
    }

    /// Writes `against.json` into a folder.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        let mode = match self.mode {
            Mode::Rounds => "rounds",
            Mode::WholeRuns => "whole runs",
            Mode::SteadyRounds => "steady rounds",
        };
        let all = json!({ "other": self.other, "mode": mode, "rows": rows,
                          "thrown_away": self.thrown_away });
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join("against.json");
        std::fs::write(&path, serde_json::to_vec_pretty(&all)?)
            .with_context(|| path.display().to_string())
    }
}

impl Row {
    /// This tree over the other: of the nanoseconds above the floor, or of the ratios to the floor. None where what it
    /// is to be divided by is not above the floor.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let [here, there] = [self.here, self.there].map(|sample| against(self.name.unit, sample));
        (there > 0.0).then(|| here / there)
    }

    fn to_json(&self) -> Value {
        let Self { name, there, here } = self;
        json!({ "case": name.case, "flows": name.flows, "unit": name.unit, "other": there, "this": here,
                "ratio": self.ratio() })
    }
}

/// What counts of a sample: nanoseconds above the floor, or the ratio to it.
fn against(unit: Unit, sample: crate::question::Sample) -> f64 {
    match unit {
        Unit::Nanoseconds => sample.value - sample.floor,
        Unit::Mpps => sample.value / sample.floor,
    }
}

fn list(what: &str, names: &[CaseName]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    format!("\n{what}: {}\n", names.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Sample;

    fn row(unit: Unit, there: (f64, f64), here: (f64, f64)) -> Row {
        let sample = |(value, floor)| Sample { value, floor };
        let name = CaseName { case: "udp".into(), flows: 7, unit };
        Row { name, there: sample(there), here: sample(here) }
    }

    #[test]
    fn times_are_compared_above_the_floor_and_rates_over_it() {
        let times = row(Unit::Nanoseconds, (155.0, 55.0), (110.0, 60.0));
        assert_eq!(times.ratio(), Some(0.5));
        let rates = row(Unit::Mpps, (1.0, 2.0), (1.5, 2.0));
        assert_eq!(rates.ratio(), Some(1.5));
        assert_eq!(row(Unit::Nanoseconds, (55.0, 55.0), (60.0, 55.0)).ratio(), None);
    }

    #[test]
    fn the_table_has_both_sides_and_says_what_is_missing() {
        let comparison = Comparison {
            other: "abc1234".into(),
            mode: Mode::WholeRuns,
            rows: vec![row(Unit::Nanoseconds, (155.0, 55.0), (110.0, 60.0))],
            only_here: vec![CaseName { case: "new".into(), flows: 1, unit: Unit::Mpps }],
            only_there: vec![],
            thrown_away: vec![],
        };
        let table = comparison.table();
        let line = table.lines().find(|line| line.starts_with("udp")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words, ["udp", "7", "155", "55", "100", "110", "60", "50", "0.50"]);
        assert!(table.starts_with("abc1234 cannot be asked for single rounds"), "{table}");
        assert!(table.ends_with("only in this tree: new, 1 flows\n"), "{table}");
        assert!(!table.contains("million"), "{table}");
    }
}
