//! Aligned columns without frames.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use super::WIDTH;

/// A table whose last column takes what room is left and is wrapped; no other is ever broken.
pub(crate) struct Grid {
    table: Table,
    right: Vec<usize>,
}

impl Grid {
    /// A table with these headings.
    pub(crate) fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        let mut grid = Self::bare();
        grid.table.set_header(headings);
        grid
    }

    /// A table without headings.
    pub(crate) fn bare() -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(WIDTH);
        Self { table, right: Vec::new() }
    }

    /// The same table with these columns, counted from 0, aligned to the right: numbers.
    #[must_use]
    pub(crate) fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right = columns.into_iter().collect();
        self
    }

    /// The same table as wide as its words are; nothing is wrapped.
    #[must_use]
    pub(crate) fn wide(mut self) -> Self {
        self.table.set_content_arrangement(ContentArrangement::Disabled);
        self
    }

    /// One more row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells);
    }

    /// The lines, without blanks at their ends.
    pub(crate) fn lines(mut self) -> String {
        let last = self.table.column_count().saturating_sub(1);
        for column in self.table.column_iter_mut() {
            if column.index < last {
                column.set_padding((0, 2)).set_constraint(ColumnConstraint::ContentWidth);
            } else {
                column.set_padding((0, 0));
            }
            if self.right.contains(&column.index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_only_the_last_column_is_wrapped() {
        let mut grid = Grid::new(["NAME", "PACKETS", "WHY"]).right([1]);
        let address = "2001:db8:1111:2222:3333:4444:5555:6666";
        grid.row([address.into(), "5".into(), "a reason that is rather long for one line".into()]);
        grid.row(["b".into(), "12345678".into(), "short".into()]);
        assert_eq!(
            grid.lines(),
            "\
NAME                                     PACKETS  WHY
2001:db8:1111:2222:3333:4444:5555:6666         5  a reason that is rather long
                                                  for one line
b                                       12345678  short
"
        );
    }
}
