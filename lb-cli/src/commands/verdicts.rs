//! `spillway verdicts`: every verdict that a packet can get. `docs/verdicts.md` holds the same table.

use lb_common::abi::verdict::Verdict;
use lb_inspect::stats::{action_word, sentence};
use serde::Serialize;

use crate::{
    arguments::Options,
    failure::Failure,
    output::{Grid, Report, print},
};

#[derive(Serialize)]
#[serde(transparent)]
struct Verdicts(Vec<VerdictRow>);

#[derive(Serialize)]
struct VerdictRow {
    number: u32,
    name: &'static str,
    action: &'static str,
    meaning: String,
}

/// # Errors
/// Stdout cannot be written.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    print(&Verdicts::all(), options.output)
}

impl Verdicts {
    fn all() -> Self {
        let row = |verdict: &Verdict| VerdictRow {
            number: *verdict as u32,
            name: verdict.name(),
            action: action_word(verdict.action()),
            meaning: sentence(verdict.meaning()),
        };
        Self(Verdict::ALL.iter().map(row).collect())
    }
}

impl Report for Verdicts {
    fn table(&self) -> String {
        let mut grid = Grid::new(["NO", "VERDICT", "ACTION", "MEANING"]).right([0]);
        for row in &self.0 {
            grid.row([
                row.number.to_string(),
                row.name.into(),
                row.action.into(),
                row.meaning.clone(),
            ]);
        }
        grid.lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected content of docs/verdicts.md.
    fn document() -> String {
        let rows = Verdicts::all().0;
        let table: String = rows
            .iter()
            .map(|r| format!("| {} | `{}` | {} | {} |\n", r.number, r.name, r.action, r.meaning))
            .collect();
        format!(
            "# Verdicts\n\n\
             Every packet that enters the balancer or the receiver is counted under exactly one of\n\
             these. `spillway stats` prints the counters. Numbers are never used again. A packet that is\n\
             counted as transmitted or redirected may still be lost in the driver, which\n\
             [other counters](observability.md#what-is-lost-after-the-program) show.\n\n\
             | number | verdict | action | meaning |\n|---:|---|---|---|\n{table}"
        )
    }

    #[test]
    fn the_document_is_the_enum() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verdicts.md");
        if std::env::var_os("SPILLWAY_WRITE_DOCS").is_some() {
            std::fs::write(path, document()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            written,
            document(),
            "docs/verdicts.md differs; regenerate it with \
             SPILLWAY_WRITE_DOCS=1 cargo test -p lb-cli the_document_is_the_enum"
        );
    }

    #[test]
    fn the_table_stays_within_eighty_columns() {
        let table = Verdicts::all().table();
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert!(table.starts_with("NO  VERDICT"), "{table}");
        assert_eq!(
            table.lines().filter(|line| line.contains(" too_large")).collect::<Vec<_>>(),
            ["12  too_large               drop      The packet does not fit the backend's MTU"],
        );
    }
}
