//! The views of what operators did and must know: overrides, history and conditions.

use super::{
    sample::Snapshot,
    views::{Cell, Column, Tone, View, ViewRow},
};
use crate::{
    commands::{history::Generation, overrides::OverrideRow},
    output::whole_seconds,
};

/// A moment as tables show it; `None`: unknown, or never.
fn moment(at: Option<&str>) -> Cell {
    Cell::text(at.map_or_else(|| "-".into(), whole_seconds))
}

/// What is known, or a dash.
fn known(text: &str) -> Cell {
    Cell::text(if text.is_empty() { "-" } else { text })
}

/// Overrides, with who set them and why.
pub(super) fn overrides_view(snapshot: &Snapshot) -> View {
    let columns = vec![
        Column::text("OVERRIDE", 44),
        Column::text("UNTIL", 20),
        Column::text("WHO", 24),
        Column::text("WHY", 0),
    ];
    let rows = snapshot.reading.status.overrides.iter().map(|it| {
        let row = OverrideRow::new(it.clone());
        let cells = vec![
            Cell::text(row.named()),
            moment(row.until.as_deref()),
            known(&row.who),
            Cell::text(row.remarks()),
        ];
        ViewRow { cells, tone: Tone::Warning }
    });
    View { columns, rows: rows.collect(), name_column: Some(0), empty: "no override is in force" }
}

/// The last generations, the newest first, with who applied them and why.
pub(super) fn history_view(snapshot: &Snapshot) -> View {
    let columns = vec![
        Column::number("GENERATION"),
        Column::text("APPLIED", 20),
        Column::number("CHANGES"),
        Column::text("WHO", 24),
        Column::text("WHY", 0),
    ];
    let rows = snapshot.reading.generations.iter().map(|it| {
        let tone = match (it.current, it.unusable.is_empty()) {
            (_, false) => Tone::Bad,
            (true, true) => Tone::Good,
            (false, true) => Tone::Plain,
        };
        let generation = Generation::new(it.clone());
        let cells = vec![
            Cell::number(Some(generation.number)),
            moment(generation.applied_at.as_deref()),
            Cell::number(generation.changes),
            known(&generation.who),
            known(&generation.remarks()),
        ];
        ViewRow { cells, tone }
    });
    View { columns, rows: rows.collect(), name_column: Some(0), empty: "nothing was applied yet" }
}

/// What is wrong though the daemon goes on.
pub(super) fn conditions_view(snapshot: &Snapshot) -> View {
    let columns = vec![
        Column::text("CONDITION", 30),
        Column::text("SINCE", 20),
        Column::text("WHAT IS WRONG", 0),
    ];
    let rows = snapshot.reading.status.conditions.iter().map(|it| {
        let since = it.since.as_ref().map(ToString::to_string);
        let cells = vec![Cell::text(&it.subject), moment(since.as_deref()), Cell::text(&it.text)];
        ViewRow { cells, tone: Tone::Bad }
    });
    View { columns, rows: rows.collect(), name_column: Some(0), empty: "nothing is wrong" }
}
