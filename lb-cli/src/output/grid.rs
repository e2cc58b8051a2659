//! Aligned columns without frames, and text on lines of limited width.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Widest line of a table that can be wrapped.
pub(crate) const WIDTH: u16 = 80;

/// Least width of a wrapped last column, characters.
const READABLE: usize = 24;

/// How far the second line of a row is indented.
const INDENT: usize = 4;

/// A table whose last column takes the remaining width and is wrapped; other columns are never broken.
/// If too little width remains, the columns that do not fit go to an indented line under the row, and so
/// do their headings.
pub(crate) struct Grid {
    table: Table,
    right: Vec<usize>,
    headings: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    is_wide: bool,
}

impl Grid {
    pub(crate) fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        let mut grid = Self::bare();
        let headings: Vec<_> = headings.into_iter().map(str::to_owned).collect();
        grid.table.set_header(headings.clone());
        grid.headings = Some(headings);
        grid
    }

    pub(crate) fn bare() -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(WIDTH);
        Self { table, right: Vec::new(), headings: None, rows: Vec::new(), is_wide: false }
    }

    /// Aligns these columns, counted from 0, to the right.
    #[must_use]
    pub(crate) fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right = columns.into_iter().collect();
        self
    }

    /// Wraps nothing, however wide the table becomes.
    #[must_use]
    pub(crate) fn wide(mut self) -> Self {
        self.table.set_content_arrangement(ContentArrangement::Disabled);
        self.is_wide = true;
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().collect();
        self.table.add_row(cells.clone());
        self.rows.push(cells);
    }

    /// The lines without trailing blanks.
    pub(crate) fn lines(mut self) -> String {
        let folds = self.folds();
        if !self.is_wide && folds.len() > 1 {
            return self.folded(&folds);
        }
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

    /// Width of each column in characters.
    fn widths(&self) -> Vec<usize> {
        let rows = || self.headings.iter().chain(&self.rows);
        let mut widths = vec![0; rows().map(Vec::len).max().unwrap_or(0)];
        for row in rows() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    /// The columns at which the lines of a row begin.
    fn folds(&self) -> Vec<usize> {
        let widths = self.widths();
        let (mut folds, mut used) = (vec![0], 0);
        for (column, width) in widths.iter().enumerate() {
            let is_last = column + 1 == widths.len();
            let needed = if is_last { (*width).min(READABLE) } else { *width };
            if column > 0 && used + needed > usize::from(WIDTH) {
                folds.push(column);
                used = INDENT;
            }
            used += width + 2;
        }
        folds
    }

    /// The table with each row broken into lines at these columns.
    fn folded(&self, folds: &[usize]) -> String {
        let widths = self.widths();
        let rows = self.headings.iter().chain(&self.rows);
        rows.map(|row| self.folded_row(row, folds, &widths)).collect()
    }

    fn folded_row(&self, row: &[String], folds: &[usize], widths: &[usize]) -> String {
        let mut line = String::new();
        let mut lines = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            if column > 0 && folds.contains(&column) {
                lines += line.trim_end();
                lines += "\n";
                line = " ".repeat(INDENT);
            }
            if column + 1 == widths.len() {
                let before = line.chars().count();
                let room = usize::from(WIDTH).saturating_sub(before);
                let between = format!("\n{}", " ".repeat(before));
                line += &wrap(cell, room).join(&between);
            } else if self.right.contains(&column) {
                line += &format!("{cell:>width$}  ");
            } else {
                line += &format!("{cell:<width$}  ");
            }
        }
        lines + line.trim_end() + "\n"
    }
}

/// Breaks a text between words into lines of at most `width` characters. A longer word, such as a path,
/// stays whole so that it can be copied.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if used + 1 + length <= width => {
                *line += " ";
                *line += word;
                used += 1 + length;
            }
            _ => {
                lines.push(word.into());
                used = length;
            }
        }
    }
    lines
}

/// Lines of `name  value`, values aligned and wrapped.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let mut grid = Grid::bare();
    for (name, value) in fields {
        grid.row([(*name).into(), value.clone()]);
    }
    grid.lines()
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

    #[test]
    fn columns_without_room_stand_under_the_row_and_nothing_is_broken_letter_by_letter() {
        let mut grid = Grid::new(["NAME", "PACKETS", "HOST", "WHY"]).right([1]);
        let host = "a-host-whose-name-takes-a-good-part-of-the-line.example";
        let why =
            "a reason of so many words that it has to go over more than one line of this table";
        grid.row(["web".into(), "5".into(), host.into(), why.into()]);
        grid.row(["storefront".into(), "12345678".into(), "b".into(), "short".into()]);
        assert_eq!(
            grid.lines(),
            "\
NAME         PACKETS  HOST
    WHY
web                5  a-host-whose-name-takes-a-good-part-of-the-line.example
    a reason of so many words that it has to go over more than one line of this
    table
storefront  12345678  b
    short
"
        );
    }

    #[test]
    fn lines_break_between_words_and_never_in_one() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("/a/long/path x", 4), ["/a/long/path", "x"]);
        assert!(wrap(" ", 4).is_empty());
    }
}
