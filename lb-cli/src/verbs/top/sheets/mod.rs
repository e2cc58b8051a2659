//! Each view as rows of text: what is shown, sorted and filtered.

mod backends;
pub(super) mod drops;
mod regions;
mod services;

use std::cmp::Ordering;

use ratatui::layout::Constraint;

use super::{
    rates::Now,
    screen::{Look, Tab},
};

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) heading: &'static str,
    /// Whether numbers stand in it: to the right, and sorted from the largest.
    pub(super) number: bool,
    /// Most characters of it; what is longer is cut.
    most: u16,
}

impl Column {
    const fn text(heading: &'static str, most: u16) -> Self {
        Self { heading, number: false, most }
    }

    const fn number(heading: &'static str) -> Self {
        Self { heading, number: true, most: 10 }
    }
}

/// What a row is to be looked at with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Doubtful,
    Bad,
}

/// A cell, with what it is sorted by.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    number: Option<f64>,
}

impl Cell {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: None }
    }

    /// A number a second; `None`: it is not known.
    fn rate(rate: Option<f64>) -> Self {
        Self { text: rate.map_or_else(|| "-".into(), si), number: Some(rate.unwrap_or(-1.0)) }
    }

    fn percent(share: Option<f64>) -> Self {
        let text = share.map_or_else(|| "-".into(), |share| format!("{:.0}%", share * 100.0));
        Self { text, number: Some(share.unwrap_or(-1.0)) }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    pub(super) tone: Tone,
}

/// A view.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// The column that names what a row is about, where its last column is a sentence.
    named_by: Option<usize>,
    /// What is said where there are no rows.
    pub(super) empty: &'static str,
}

/// The rows of a view, for a screen of that width.
pub(super) fn sheet(tab: Tab, now: &Now, width: u16) -> Sheet {
    match tab {
        Tab::Regions => regions::sheet(now, width),
        Tab::Services => services::sheet(now),
        Tab::Backends => backends::sheet(now),
        Tab::Drops => drops::sheet(now),
    }
}

impl Sheet {
    /// The sentence of a row, with what it is about: the screen may be too narrow for it.
    pub(super) fn sentence(&self, row: usize) -> Option<String> {
        let cells = &self.rows.get(row)?.cells;
        Some(format!("{}: {}", cells.get(self.named_by?)?.text, cells.last()?.text))
    }

    /// Only the rows with a text in them, whatever its case.
    pub(super) fn filtered(mut self, text: &str) -> Self {
        let text = text.to_lowercase();
        self.rows.retain(|row| row.cells.iter().any(|c| c.text.to_lowercase().contains(&text)));
        self
    }

    /// Sorted as a look wants it: numbers from the largest, names from the first. Equal rows stay in
    /// their order.
    pub(super) fn sorted(mut self, look: Look) -> Self {
        if let Some(by) = look.sort {
            self.rows.sort_by(|a, b| {
                let order = compare(&a.cells[by], &b.cells[by]);
                if look.reversed { order.reverse() } else { order }
            });
        } else if look.reversed {
            self.rows.reverse();
        }
        self
    }

    /// As wide as what is in them; the last takes the rest.
    pub(super) fn widths(&self) -> Vec<Constraint> {
        let last = self.columns.len().saturating_sub(1);
        let width = |(at, column): (usize, &Column)| {
            if at == last {
                return Constraint::Fill(1);
            }
            // Room for the mark of sorting.
            let heading = column.heading.len() + 1;
            let cells = self.rows.iter().map(|row| row.cells[at].text.chars().count());
            let widest = cells.chain([heading]).max().unwrap_or(0);
            Constraint::Length(u16::try_from(widest).unwrap_or(u16::MAX).min(column.most))
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

/// A number with three digits or so, and a letter for thousands, millions, thousand millions.
pub(super) fn si(number: f64) -> String {
    let (scaled, letter) = match number {
        n if n >= 999_950_000.0 => (n / 1e9, "G"),
        n if n >= 999_950.0 => (n / 1e6, "M"),
        n if n >= 999.95 => (n / 1e3, "k"),
        n => (n, ""),
    };
    if scaled == 0.0 { "0".into() } else { format!("{scaled:.1}{letter}") }
}
