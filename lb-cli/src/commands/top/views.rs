//! Each view as rows of text: columns, cells, sorting and filtering.

use std::cmp::Ordering;

use ratatui::layout::Constraint;

use super::{
    operator_views::{conditions_view, history_view, overrides_view},
    sample::Snapshot,
    screen::{Tab, TabState},
    traffic_views::{backends_view, drops_view, regions_view, services_view},
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) heading: &'static str,
    /// Whether it holds numbers: aligned to the right, sorted from the largest.
    pub(super) number: bool,
    /// Maximum width in characters; longer text is cut.
    max_width: u16,
}

impl Column {
    pub(super) const fn text(heading: &'static str, max_width: u16) -> Self {
        Self { heading, number: false, max_width }
    }

    pub(super) const fn number(heading: &'static str) -> Self {
        Self { heading, number: true, max_width: 10 }
    }
}

/// How good or bad the state of a row is; colours follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Warning,
    Bad,
}

/// A cell, with the number that it is sorted by.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) number: Option<f64>,
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: None }
    }

    /// A number a second; `None`: unknown.
    pub(super) fn rate(rate: Option<f64>) -> Self {
        Self {
            text: rate.map_or_else(|| "-".into(), format_si),
            number: Some(rate.unwrap_or(-1.0)),
        }
    }

    /// A count; `None`: unknown.
    pub(super) fn number(number: Option<u64>) -> Self {
        let text = number.map_or_else(|| "-".into(), |number| number.to_string());
        Self { text, number: Some(number.map_or(-1.0, |number| number as f64)) }
    }

    pub(super) fn percent(share: Option<f64>) -> Self {
        let text = share.map_or_else(|| "-".into(), |share| format!("{:.0}%", share * 100.0));
        Self { text, number: Some(share.unwrap_or(-1.0)) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct ViewRow {
    pub(super) cells: Vec<Cell>,
    pub(super) tone: Tone,
}

#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<ViewRow>,
    /// The column that names the object of a row, if the last column is a sentence.
    pub(super) name_column: Option<usize>,
    /// Text in place of rows if there are none.
    pub(super) empty: &'static str,
}

/// Builds the view of a tab, for a screen of that width.
pub(super) fn build_view(tab: Tab, snapshot: &Snapshot, width: u16) -> View {
    match tab {
        Tab::Regions => regions_view(snapshot, width),
        Tab::Services => services_view(snapshot),
        Tab::Backends => backends_view(snapshot),
        Tab::Drops => drops_view(snapshot),
        Tab::Overrides => overrides_view(snapshot),
        Tab::History => history_view(snapshot),
        Tab::Conditions => conditions_view(snapshot),
    }
}

impl View {
    /// The sentence of a row with the name of its object: the table may be too narrow for it.
    pub(super) fn sentence(&self, row: usize) -> Option<String> {
        let cells = &self.rows.get(row)?.cells;
        Some(format!("{}: {}", cells.get(self.name_column?)?.text, cells.last()?.text))
    }

    /// Keeps only rows that contain a text, ignoring case.
    pub(super) fn filtered(mut self, text: &str) -> Self {
        let text = text.to_lowercase();
        self.rows.retain(|row| row.cells.iter().any(|c| c.text.to_lowercase().contains(&text)));
        self
    }

    /// Sorts numbers from the largest and names alphabetically; equal rows keep their order.
    pub(super) fn sorted(mut self, state: TabState) -> Self {
        if let Some(by) = state.sort {
            self.rows.sort_by(|a, b| {
                let order = compare(&a.cells[by], &b.cells[by]);
                if state.reversed { order.reverse() } else { order }
            });
        } else if state.reversed {
            self.rows.reverse();
        }
        self
    }

    /// Column widths by content; the last column takes the rest.
    pub(super) fn widths(&self) -> Vec<Constraint> {
        let last = self.columns.len().saturating_sub(1);
        let width = |(at, column): (usize, &Column)| {
            if at == last {
                return Constraint::Fill(1);
            }
            // Leave room for the sort mark.
            let heading = column.heading.len() + 1;
            let cells = self.rows.iter().map(|row| row.cells[at].text.chars().count());
            let widest = cells.chain([heading]).max().unwrap_or(0);
            Constraint::Length(u16::try_from(widest).unwrap_or(u16::MAX).min(column.max_width))
        };
        self.columns.iter().enumerate().map(width).collect()
    }
}

fn compare(a: &Cell, b: &Cell) -> Ordering {
    match (a.number, b.number) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        _ => a.text.cmp(&b.text),
    }
}

/// A number with one decimal place and an SI prefix: k, M or G.
pub(super) fn format_si(number: f64) -> String {
    let (scaled, letter) = match number {
        n if n >= 999_950_000.0 => (n / 1e9, "G"),
        n if n >= 999_950.0 => (n / 1e6, "M"),
        n if n >= 999.95 => (n / 1e3, "k"),
        n => (n, ""),
    };
    if scaled == 0.0 { "0".into() } else { format!("{scaled:.1}{letter}") }
}
