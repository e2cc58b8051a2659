//! Tables of Markdown, numbers in them, and curves of letters.

use std::time::Duration;

/// A table, to be written.
pub(crate) struct Table {
    lines: String,
}

impl Table {
    pub(crate) fn new(heads: &[&str]) -> Self {
        let align = "---:|".repeat(heads.len());
        Self { lines: format!("| {} |\n|{align}\n", heads.join(" | ")) }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.lines += &format!("| {} |\n", cells.join(" | "));
    }

    pub(crate) fn text(self) -> String {
        self.lines
    }
}

/// A whole number, with its digits in groups.
pub(crate) fn number(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Two or three digits that count.
fn short(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value >= 9.95 => number(value),
        value if value >= 0.095 => format!("{value:.1}"),
        value if value >= 0.0095 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// Bytes in the unit that suits them: kB is 1,000 bytes.
pub(crate) fn bytes(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{} GB", short(value / 1e9)),
        value if value >= 1e6 => format!("{} MB", short(value / 1e6)),
        value if value >= 1e3 => format!("{} kB", short(value / 1e3)),
        value => format!("{} B", short(value)),
    }
}

/// A portion of one, as a percentage.
pub(crate) fn percent(portion: f64) -> String {
    format!("{} %", short(100.0 * portion))
}

/// A time; `None`: it did not come to an end.
pub(crate) fn seconds(time: Option<Duration>) -> String {
    time.map_or("never".into(), |time| format!("{:.1} s", time.as_secs_f64()))
}

/// A bar for each value, as long as its logarithm to the base of two above the least of them.
pub(crate) fn curve(
    axis: &str,
    points: &[(String, f64)],
    figure: impl Fn(f64) -> String,
) -> String {
    let least = points.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    let width = points.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    let bar = |value: f64| match value > 0.0 && least > 0.0 {
        true => "#".repeat((value / least).log2().round() as usize + 1),
        false => String::new(),
    };
    let line = |(label, value): &(String, f64)| {
        format!("{label:>width$} {axis} {} {}\n", bar(*value), figure(*value))
    };
    points.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_count() {
        assert_eq!([12_345_678.0, 999.0, 0.0].map(number), ["12,345,678", "999", "0"]);
        assert_eq!(
            [0.0, 9.0, 1_234.0, 4.6e6, 2e10].map(bytes),
            ["0 B", "9.0 B", "1.2 kB", "4.6 MB", "20 GB"]
        );
        assert_eq!(
            [0.5, 0.012, 0.0001, 0.000_01].map(percent),
            ["50 %", "1.2 %", "0.01 %", "0.001 %"]
        );
        assert_eq!(seconds(Some(Duration::from_millis(1_500))), "1.5 s");
        assert_eq!(seconds(None), "never");
    }

    #[test]
    fn bars_are_logarithms() {
        let points = [("2".to_owned(), 10.0), ("16".to_owned(), 80.0)];
        assert_eq!(curve("x", &points, number), " 2 x # 10\n16 x #### 80\n");
    }

    #[test]
    fn a_table_is_lines_of_cells() {
        let mut table = Table::new(&["a", "b"]);
        table.row(["x".into(), "1".into()]);
        assert_eq!(table.text(), "| a | b |\n|---:|---:|\n| x | 1 |\n");
    }
}
