//! Shares over time as a chart of characters.

use std::fmt::Write as _;

use super::{Colour, Event, Ink, Series};

/// Draws stacked shares: a column for each stretch of time, `height` rows for 100 %. Events are
/// marked below by letters that the legend explains.
pub fn chart(
    series: &Series,
    colours: &[Colour],
    events: &[Event],
    height: usize,
    ink: Ink,
) -> String {
    let columns: Vec<_> = (0..series.counts.len()).map(|n| column(series, n, height)).collect();
    let mut text = String::new();
    for row in (0..height).rev() {
        let label = match row {
            _ if row + 1 == height => "100 %",
            _ if row + 1 == height.div_ceil(2) => " 50 %",
            0 => "  0 %",
            _ => "     ",
        };
        let _ = write!(text, "  {label} ┤");
        for cells in &columns {
            text.push_str(&cell(cells.get(row).copied().flatten(), colours, ink));
        }
        text.push('\n');
    }
    text.push_str(&axis(series, events));
    text.push_str(&legend(series, colours, ink));
    for (event, letter) in events.iter().zip('a'..) {
        let _ = writeln!(text, "        {letter}  {:5.1} s  {}", event.at, event.what);
    }
    text
}

/// Which backend has each row of a column, from below; rows are dealt by largest remainder, so that
/// they add up.
fn column(series: &Series, stretch: usize, height: usize) -> Vec<Option<usize>> {
    let Some(shares) = series.shares(stretch) else { return vec![None; height] };
    let exact: Vec<f64> = shares.iter().map(|share| share * height as f64).collect();
    let mut rows: Vec<usize> = exact.iter().map(|rows| rows.floor() as usize).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()).then(a.cmp(b)));
    let missing = height - rows.iter().sum::<usize>();
    for backend in order.into_iter().take(missing) {
        rows[backend] += 1;
    }
    let stacked = rows.iter().enumerate();
    stacked.flat_map(|(backend, rows)| std::iter::repeat_n(Some(backend), *rows)).collect()
}

fn cell(backend: Option<usize>, colours: &[Colour], ink: Ink) -> String {
    match backend.map(|backend| colours[backend]) {
        None => " ".into(),
        Some(colour) if ink == Ink::Coloured => ink.paint(colour.terminal, "█"),
        Some(colour) => colour.glyph.into(),
    }
}

fn axis(series: &Series, events: &[Event]) -> String {
    let mut line: Vec<char> = vec!['─'; series.counts.len()];
    let mut marks: Vec<char> = vec![' '; series.counts.len()];
    for (event, letter) in events.iter().zip('a'..) {
        // Two events in one stretch stand beside each other.
        let at = (event.at / series.step) as usize;
        let free = (at..marks.len()).find(|place| marks[*place] == ' ');
        if let Some(place) = free {
            marks[place] = letter;
            line[place] = '┴';
        }
    }
    let marks: String = marks.into_iter().collect();
    let length = format!("{:.0} s", series.length());
    let width = series.counts.len().saturating_sub(1 + length.chars().count());
    format!(
        "        └{}\n         {}\n         0{:width$}{length}\n",
        line.into_iter().collect::<String>(),
        marks.trim_end(),
        "",
    )
}

fn legend(series: &Series, colours: &[Colour], ink: Ink) -> String {
    let mut text = String::from("\n        ");
    for (backend, name) in series.names.iter().enumerate() {
        let _ = write!(text, "{} {name}   ", cell(Some(backend), colours, ink));
    }
    text.trim_end().to_owned() + "\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_and_gaps_stay_empty() {
        let answers = [
            ("a".to_owned(), vec![0.0, 0.1, 0.2, 2.5]),
            ("b".to_owned(), vec![0.3, 0.4]),
            ("c".to_owned(), vec![0.5]),
        ];
        let series = Series::new(0.0, 1.0, &answers);
        // 3 : 2 : 1 of four rows is 2 : 1.33 : 0.67, so 2 : 1 : 1.
        assert_eq!(column(&series, 0, 4), [Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!(column(&series, 1, 4), [None; 4]);
        assert_eq!(column(&series, 2, 4), [Some(0); 4]);
    }

    #[test]
    fn a_plain_chart_reads_without_colour() {
        let answers = [("a".to_owned(), vec![0.0, 1.0, 3.2]), ("b".to_owned(), vec![0.5, 2.0])];
        let series = Series::new(0.0, 1.0, &answers);
        let colours = [Colour::of(0, 0), Colour::of(0, 1)];
        let events = [Event { at: 1.5, what: "b falls".into() }];
        assert_eq!(
            chart(&series, &colours, &events, 2, Ink::Plain),
            "  100 % ┤▓█▓█\n   50 % ┤██▓█\n        └─┴──\n          a\n         04 s\n\n        \
             █ a   ▓ b\n\n        a    1.5 s  b falls\n"
        );
    }
}
