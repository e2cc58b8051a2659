//! How often something took how long.

use std::fmt::Write as _;

use super::Ink;

/// Upper ends of the bins, seconds: two a decade, since a millisecond and a minute are to be seen in
/// one picture.
const ENDS: [f64; 10] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

/// Counts of several things by the same bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// A name and the count of each bin.
    pub rows: Vec<(String, Vec<u64>)>,
    /// The first and the last bin that anything is in.
    used: (usize, usize),
}

impl Histogram {
    /// Sorts times (seconds) into bins; a bin has its lower end and not its upper one.
    pub fn new(times: &[(String, Vec<f64>)]) -> Self {
        let bin = |time: f64| ENDS.iter().take_while(|end| time >= **end).count();
        let used: Vec<usize> =
            times.iter().flat_map(|(_, times)| times.iter().map(|time| bin(*time))).collect();
        let first = used.iter().min().copied().unwrap_or(0);
        let last = used.iter().max().copied().unwrap_or(0);
        let rows = times.iter().map(|(name, times)| {
            let mut counts = vec![0; last - first + 1];
            times.iter().for_each(|time| counts[bin(*time) - first] += 1);
            (name.clone(), counts)
        });
        Self { rows: rows.collect(), used: (first, last) }
    }

    /// Names of its bins.
    pub fn bins(&self) -> Vec<String> {
        let (first, last) = self.used;
        let name = |bin: usize| match bin {
            0 => format!("below {}", time(ENDS[0])),
            _ if bin == ENDS.len() => format!("from {}", time(ENDS[bin - 1])),
            _ => range(ENDS[bin - 1], ENDS[bin]),
        };
        (first..=last).map(name).collect()
    }

    /// The largest count of all.
    pub fn most(&self) -> u64 {
        self.rows.iter().flat_map(|(_, counts)| counts).max().copied().unwrap_or(0)
    }

    /// As lines of characters, `width` for the largest count; `colours` are a terminal's.
    pub fn text(&self, width: usize, colours: &[u8], ink: Ink) -> String {
        let mut text = String::new();
        let most = self.most().max(1);
        let longest = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (bin, label) in self.bins().iter().enumerate() {
            if self.rows.iter().all(|(_, counts)| counts[bin] == 0) {
                let _ = writeln!(text, "  {label:>10}  {:longest$} ┤", "");
                continue;
            }
            for (row, (name, counts)) in self.rows.iter().enumerate() {
                let label = if row == 0 { label } else { "" };
                let count = counts[bin];
                // Something is seen of everything that is there.
                let cells = (count as f64 / most as f64 * width as f64).ceil() as usize;
                let bar = ink.paint(colours[row % colours.len()], &"█".repeat(cells));
                let count = if count == 0 { String::new() } else { format!(" {count}") };
                let line = format!("  {label:>10}  {name:<longest$} ┤{bar}{count}");
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        text
    }
}

/// From a time to another, the unit said once if it is one.
fn range(from: f64, to: f64) -> String {
    let (from, to) = (time(from), time(to));
    match from.split_once(' ') {
        Some((number, unit)) if to.ends_with(&format!(" {unit}")) => format!("{number}–{to}"),
        _ => format!("{from}–{to}"),
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_their_bins() {
        let times =
            [("nginx".to_owned(), vec![0.003, 0.0099, 60.0]), ("we".to_owned(), vec![0.01])];
        let histogram = Histogram::new(&times);
        assert_eq!(histogram.rows[0].1, [2, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(histogram.rows[1].1, [0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let bins = histogram.bins();
        assert_eq!((bins[0].as_str(), bins[8].as_str()), ("3–10 ms", "30–100 s"));
        assert_eq!(bins[4], "300 ms–1 s");
        assert_eq!(histogram.most(), 2);
    }

    #[test]
    fn the_text_shows_whatever_is_there() {
        let times = [("a".to_owned(), vec![0.001; 40]), ("bc".to_owned(), vec![0.002])];
        assert_eq!(
            Histogram::new(&times).text(20, &[25], Ink::Plain),
            "  below 3 ms  a  ┤████████████████████ 40\n\
             \x20             bc ┤█ 1\n"
        );
    }
}
