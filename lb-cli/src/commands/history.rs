//! `spillway history`: the last generations, with who applied them and why.

use serde::Serialize;
use spillway_proto::v1;

use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    failure::Failure,
    output::{Grid, Report, print, whole_seconds},
};

#[derive(Serialize)]
struct History {
    /// The newest first.
    generations: Vec<Generation>,
}

#[derive(Serialize)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    /// `null`: its description is damaged.
    pub(crate) applied_at: Option<String>,
    /// Empty: unknown.
    pub(crate) who: String,
    why: String,
    /// Objects that it changed; `null`: unknown.
    pub(crate) changes: Option<u64>,
    current: bool,
    /// Why it cannot be used; `null`: nothing is known to be wrong with it.
    unusable: Option<String>,
    /// Whether it is the balancer's own, from before it joined its fleet.
    before_fleet: bool,
}

/// # Errors
/// The daemon does not answer.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let answer = block_on(async { DaemonClient::connect(&options).await?.generations().await })?;
    print(&History::new(answer), options.output)
}

impl History {
    fn new(answer: v1::ListGenerationsResponse) -> Self {
        Self { generations: answer.generations.into_iter().map(Generation::new).collect() }
    }
}

impl Generation {
    pub(crate) fn new(generation: v1::Generation) -> Self {
        Self {
            number: generation.number,
            applied_at: generation.applied_at.map(|at| at.to_string()),
            who: generation.who,
            why: generation.why,
            changes: generation.changes,
            current: generation.current,
            unusable: Some(generation.unusable).filter(|cause| !cause.is_empty()),
            before_fleet: generation.before_fleet,
        }
    }

    /// Why it was applied, and what is special about it.
    pub(crate) fn remarks(&self) -> String {
        let current = self.current.then(|| "in force".to_owned());
        let before = self.before_fleet.then(|| "from before the fleet".to_owned());
        let unusable = self.unusable.as_ref().map(|cause| format!("cannot be used: {cause}"));
        let why = Some(self.why.clone()).filter(|why| !why.is_empty());
        let notes: Vec<_> = current.into_iter().chain(before).chain(unusable).collect();
        let notes = (!notes.is_empty()).then(|| format!("({})", notes.join("; ")));
        why.into_iter().chain(notes).collect::<Vec<_>>().join(" ")
    }
}

impl Report for History {
    fn table(&self) -> String {
        if self.generations.is_empty() {
            return "nothing was applied yet\n".into();
        }
        let mut grid = Grid::new(["GENERATION", "APPLIED", "CHANGES", "WHO", "WHY"]).right([0, 2]);
        let known = |text: &str| if text.is_empty() { "-".into() } else { text.to_owned() };
        for generation in &self.generations {
            grid.row([
                generation.number.to_string(),
                generation.applied_at.as_deref().map_or_else(|| "-".into(), whole_seconds),
                generation.changes.map_or_else(|| "-".into(), |changes| changes.to_string()),
                known(&generation.who),
                known(&generation.remarks()),
            ]);
        }
        grid.lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> History {
        let generation = |number, who: &str, why: &str| v1::Generation {
            number,
            applied_at: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 250_000_000 }),
            who: who.into(),
            why: why.into(),
            changes: Some(2),
            ..v1::Generation::default()
        };
        let newest = v1::Generation {
            current: true,
            ..generation(12, "uid 0", "rollback to generation 9: web is slow")
        };
        let damaged = v1::Generation {
            number: 10,
            unusable: "piece ab is damaged".into(),
            ..v1::Generation::default()
        };
        let own = v1::Generation { before_fleet: true, ..generation(12, "uid 0", "") };
        let generations =
            vec![newest, generation(11, "certificate ci.example", "ticket 7"), damaged, own];
        History::new(v1::ListGenerationsResponse { generations })
    }

    #[test]
    fn each_generation_has_a_line_with_who_and_why() {
        assert_eq!(
            example().table(),
            "\
GENERATION  APPLIED               CHANGES  WHO
    WHY
        12  1970-01-12T13:46:40Z        2  uid 0
    rollback to generation 9: web is slow (in force)
        11  1970-01-12T13:46:40Z        2  certificate ci.example
    ticket 7
        10  -                           -  -
    (cannot be used: piece ab is damaged)
        12  1970-01-12T13:46:40Z        2  uid 0
    (from before the fleet)
"
        );
        assert_eq!(History { generations: Vec::new() }.table(), "nothing was applied yet\n");
        let json = serde_json::to_value(example()).unwrap();
        let first = serde_json::json!({
            "number": 12, "applied_at": "1970-01-12T13:46:40.250Z", "who": "uid 0",
            "why": "rollback to generation 9: web is slow", "changes": 2, "current": true, "unusable": null,
            "before_fleet": false,
        });
        assert_eq!(json["generations"][0], first);
    }
}
