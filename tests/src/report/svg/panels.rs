//! Bars in panels below each other, each panel to its own scale.

use super::canvas::{Anchor, Canvas};
use crate::report::Panel;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 56.0;
/// Heights of a panel's heading and of a bar with the gap below it.
const HEADING: f64 = 34.0;
const STEP: f64 = 22.0;

/// Draws panels whose bars have these colours (`#rrggbb`), in order.
pub fn panels(title: &str, panels: &[Panel], colours: &[&str]) -> String {
    let tall = |panel: &Panel| HEADING + STEP * panel.bars.len() as f64;
    let height = TOP + panels.iter().map(tall).sum::<f64>() + STEP;
    let mut canvas = Canvas::new(WIDTH, height, title);
    let mut y = TOP;
    for Panel { heading, bars } in panels {
        canvas.text(LEFT, y + HEADING - 12.0, Anchor::Start, heading);
        y += HEADING;
        let most = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
        for (bar, colour) in bars.iter().zip(colours.iter().cycle()) {
            let long = bar.value / most * (WIDTH - LEFT - RIGHT);
            canvas.text(LEFT - 8.0, y + 12.0, Anchor::End, &bar.label);
            canvas.rectangle(LEFT, y, long, STEP - 6.0, colour);
            canvas.text(LEFT + long + 8.0, y + 12.0, Anchor::Start, &bar.note);
            y += STEP;
        }
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Bar;

    #[test]
    fn each_panel_has_a_scale_of_its_own() {
        let bar = |value| Bar { label: "a".into(), value, note: format!("{value}"), colour: 25 };
        let panel = |values: [f64; 2]| Panel { heading: "p".into(), bars: values.map(bar).into() };
        let picture = panels("times", &[panel([1.0, 4.0]), panel([50.0, 100.0])], &["#1", "#2"]);
        // The longest have 660 units.
        for (width, colour) in [("165.0", "#1"), ("330.0", "#1"), ("660.0", "#2")] {
            let drawn = format!("width=\"{width}\" height=\"16.0\" fill=\"{colour}\"");
            assert!(picture.contains(&drawn), "{drawn}: {picture}");
        }
    }
}
