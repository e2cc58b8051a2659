//! Tables for people.

use comfy_table::{CellAlignment, LineStyle, Table, presets};

/// A table with a rule under its header.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let ruled = presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());
    table.load_style(ruled).set_header(header);
    table
}

/// Numbers stand at the right, from a column on.
pub(crate) fn align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A share; a dot where there is none.
pub(crate) fn percent(part: u64, total: u64) -> String {
    match (part, total) {
        (0, _) | (_, 0) => "·".into(),
        _ => format!("{:.1} %", part as f64 / total as f64 * 100.0),
    }
}
