//! A histogram of several at once, as bars beside each other.

use super::canvas::{Anchor, Canvas};
use crate::report::Histogram;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 90.0;
const BOTTOM: f64 = 60.0;

/// Draws it, each row in its colour (`#rrggbb`).
pub fn histogram(title: &str, histogram: &Histogram, colours: &[&str]) -> String {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, title);
    let most = histogram.most().max(1) as f64;
    let (bottom, height) = (HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM);
    for half in 0..=2 {
        let count = most * f64::from(half) / 2.0;
        let y = bottom - count / most * height;
        canvas.across(LEFT, WIDTH - RIGHT, y);
        canvas.text(LEFT - 8.0, y + 4.0, Anchor::End, &format!("{count:.0}"));
    }
    let bins = histogram.bins();
    let step = (WIDTH - LEFT - RIGHT) / bins.len().max(1) as f64;
    let bar = step * 0.8 / histogram.rows.len().max(1) as f64;
    for (bin, label) in bins.iter().enumerate() {
        let left = LEFT + bin as f64 * step;
        canvas.text(left + step / 2.0, bottom + 18.0, Anchor::Middle, label);
        for (row, (_, counts)) in histogram.rows.iter().enumerate() {
            let x = left + step * 0.1 + row as f64 * bar;
            let tall = counts[bin] as f64 / most * height;
            canvas.rectangle(x, bottom - tall, bar, tall, colours[row % colours.len()]);
            if counts[bin] > 0 {
                let count = counts[bin].to_string();
                canvas.text(x + bar / 2.0, bottom - tall - 4.0, Anchor::Middle, &count);
            }
        }
    }
    canvas.text(WIDTH / 2.0, bottom + 42.0, Anchor::Middle, "response time");
    for (row, (name, _)) in histogram.rows.iter().enumerate() {
        let left = LEFT + row as f64 * 300.0;
        canvas.rectangle(left, 44.0, 14.0, 14.0, colours[row % colours.len()]);
        canvas.text(left + 22.0, 56.0, Anchor::Start, name);
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_counts() {
        let rows =
            [("a".to_owned(), vec![0.002, 0.002, 0.002, 60.0]), ("b".to_owned(), vec![0.02])];
        let picture = histogram("times", &Histogram::new(&rows), &["#1b4f8a", "#a8480c"]);
        // Three fill 270 units, one has 90.
        assert!(picture.contains("height=\"270.0\" fill=\"#1b4f8a\""), "{picture}");
        assert!(picture.contains("height=\"90.0\" fill=\"#1b4f8a\""), "{picture}");
        assert!(picture.contains("height=\"90.0\" fill=\"#a8480c\""), "{picture}");
    }
}
