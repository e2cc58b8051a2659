//! Bars of characters, one a line.

use std::fmt::Write as _;

use super::Ink;

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What stands before it.
    pub label: String,
    /// Its length, not negative.
    pub value: f64,
    /// What stands behind it.
    pub note: String,
    /// Index among the 256 colours of a terminal.
    pub colour: u8,
}

/// Bars that are compared with each other.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What stands above them.
    pub heading: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// Draws bars, the longest of `width` characters; eighths of a character count.
pub fn bars(bars: &[Bar], width: usize, ink: Ink) -> String {
    const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let longest = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let most = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let mut text = String::new();
    for Bar { label, value, note, colour } in bars {
        let eighths = (value / most * width as f64 * 8.0).round() as usize;
        let mut drawn = "█".repeat(eighths / 8);
        drawn.extend((!eighths.is_multiple_of(8)).then(|| EIGHTHS[eighths % 8 - 1]));
        let line = format!("  {label:>longest$} ┤{} {note}", ink.paint(*colour, &drawn));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_in_proportion() {
        let bar = |label: &str, value| Bar {
            label: label.into(),
            value,
            note: format!("{value}"),
            colour: 25,
        };
        let text = bars(&[bar("5", 1.0), bar("10", 4.0), bar("0", 0.0)], 5, Ink::Plain);
        assert_eq!(text, "   5 ┤█▎ 1\n  10 ┤█████ 4\n   0 ┤ 0\n");
    }
}
