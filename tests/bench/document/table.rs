//! Tables of Markdown, and numbers in them.

/// What stands in the place of a number that was not measured.
const UNKNOWN: &str = "–";

/// A table, to be written.
pub(super) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty one: the first column names what the others tell of it.
    pub(super) fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Its lines.
    pub(super) fn text(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let align = format!("|---|{}\n", "---:|".repeat(self.heads.len() - 1));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.heads) + &align + &rows
    }
}

/// A number with so many places behind the point.
pub(super) fn figure(value: impl Figure, places: usize) -> String {
    let value = value.number();
    if value.is_nan() {
        return UNKNOWN.into();
    }
    let text = format!("{value:.places$}");
    match text.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", grouped(whole)),
        None => grouped(&text),
    }
}

/// A whole number.
pub(super) fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// What can stand in a table.
pub(super) trait Figure {
    /// NaN: not measured.
    fn number(self) -> f64;
}

impl Figure for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Figure for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Figure for usize {
    fn number(self) -> f64 {
        self as f64
    }
}

/// Groups of three digits, from the right.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut out = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits_in_groups() {
        assert_eq!(figure(1_234_567.0, 0), "1,234,567");
        assert_eq!(figure(-1234.56, 1), "-1,234.6");
        assert_eq!(figure(0.857, 2), "0.86");
        assert_eq!(figure(f64::NAN, 2), UNKNOWN);
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
    }

    #[test]
    fn a_table_is_lines_of_cells() {
        let mut table = Table::new(&["a", "b"]);
        table.row(["x".into(), "1".into()]);
        assert_eq!(table.text(), "| a | b |\n|---|---:|\n| x | 1 |\n");
    }
}
