//! Shares over time as a picture.

use std::fmt::{Result, Write as _};

use super::escape;
use crate::report::{Colour, Event, Series};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 96.0;
/// Height of the panel of shares.
const SHARES: f64 = 260.0;
/// Height of the panel of rates, and the room above it.
const RATES: f64 = 60.0;
const GAP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// Draws stacked shares over time, the rate of answers below, and events as marked lines.
pub fn svg(title: &str, series: &Series, colours: &[Colour], events: &[Event]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = Picture { series, colours, events }.write(&mut text, title);
    text
}

struct Picture<'a> {
    series: &'a Series,
    colours: &'a [Colour],
    events: &'a [Event],
}

impl Picture<'_> {
    fn write(&self, out: &mut String, title: &str) -> Result {
        let height = TOP + SHARES + GAP + RATES + BOTTOM;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
             fill=\"#333\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" \
             fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"28\" font-size=\"18\" \
             font-weight=\"bold\">{}</text>",
            escape(title),
            escape(title)
        )?;
        self.grid(out)?;
        self.bars(out)?;
        self.marks(out)?;
        self.legend(out)?;
        writeln!(out, "</svg>")
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / self.series.length().max(self.series.step) * (WIDTH - LEFT - RIGHT)
    }

    fn grid(&self, out: &mut String) -> Result {
        for percent in [0, 25, 50, 75, 100] {
            let y = TOP + SHARES * (1.0 - f64::from(percent) / 100.0);
            let (label, right) = (y + 4.0, WIDTH - RIGHT);
            writeln!(
                out,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{label}\" text-anchor=\"end\">{percent} %</text>",
                LEFT - 8.0
            )?;
        }
        let bottom = TOP + SHARES + GAP + RATES;
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0}/s</text>\
             <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>",
            LEFT - 8.0,
            bottom - RATES + 10.0,
            self.series.peak() as f64 / self.series.step,
            LEFT - 8.0,
        )?;
        let mut seconds = 0.0;
        while seconds <= self.series.length() {
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{seconds:.0} s</text>",
                self.x(seconds),
                bottom + 20.0
            )?;
            seconds += tick(self.series.length());
        }
        Ok(())
    }

    fn bars(&self, out: &mut String) -> Result {
        let peak = self.series.peak().max(1) as f64;
        let bottom = TOP + SHARES + GAP + RATES;
        for (stretch, counts) in self.series.counts.iter().enumerate() {
            let from = self.x(stretch as f64 * self.series.step);
            // Neighbours overlap a little, or a seam shows between them.
            let width = self.x((stretch + 1) as f64 * self.series.step) - from + 0.3;
            let Some(shares) = self.series.shares(stretch) else { continue };
            let mut y = TOP + SHARES;
            for (share, colour) in
                shares.iter().zip(self.colours).filter(|(share, _)| **share > 0.0)
            {
                y -= share * SHARES;
                writeln!(
                    out,
                    "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
                     fill=\"{}\"/>",
                    share * SHARES,
                    colour.web
                )?;
            }
            let rate = counts.iter().sum::<u64>() as f64 / peak * RATES;
            writeln!(
                out,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{rate:.1}\" \
                 fill=\"#999\"/>",
                bottom - rate
            )?;
        }
        Ok(())
    }

    fn marks(&self, out: &mut String) -> Result {
        for (number, event) in self.events.iter().enumerate() {
            let x = self.x(event.at);
            // Labels take turns on three lines, so that neighbours do not cover each other.
            let label = TOP - 44.0 + (number % 3) as f64 * 15.0;
            writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"#333\" \
                 stroke-dasharray=\"4 3\"/><text x=\"{:.1}\" y=\"{label}\">{}</text>",
                label + 3.0,
                TOP + SHARES + GAP + RATES,
                x + 3.0,
                escape(&event.what)
            )?;
        }
        Ok(())
    }

    fn legend(&self, out: &mut String) -> Result {
        let x = WIDTH - RIGHT + 20.0;
        for (number, (name, colour)) in self.series.names.iter().zip(self.colours).enumerate() {
            // As they are stacked: the first lies lowest.
            let y = TOP + SHARES - 14.0 - number as f64 * 22.0;
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"14\" fill=\"{}\"/>\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                colour.web,
                x + 22.0,
                y + 12.0,
                escape(name)
            )?;
        }
        Ok(())
    }
}

/// Seconds from a label to the next: no more than a dozen of them.
fn tick(length: f64) -> f64 {
    let steps = [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
    steps.into_iter().find(|step| length / step <= 12.0).unwrap_or(1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_room() {
        assert_eq!((tick(24.0), tick(60.0), tick(61.0), tick(640.0)), (5.0, 5.0, 10.0, 100.0));
    }

    #[test]
    fn each_share_has_a_rectangle_of_its_height() {
        let answers = [("a".to_owned(), vec![0.0, 0.2, 0.4]), ("b".to_owned(), vec![0.6])];
        let series = Series::new(0.0, 1.0, &answers);
        let colours = [Colour::of(0, 0), Colour::of(1, 0)];
        let events = [Event { at: 0.5, what: "a < b".into() }];
        let picture = svg("shares", &series, &colours, &events);
        // Three quarters and one quarter of 260 units.
        assert!(picture.contains("height=\"195.0\" fill=\"#1b4f8a\""), "{picture}");
        assert!(picture.contains("height=\"65.0\" fill=\"#a8480c\""), "{picture}");
        assert!(picture.contains("a &lt; b"), "{picture}");
        assert!(picture.trim_end().ends_with("</svg>"), "{picture}");
    }
}
