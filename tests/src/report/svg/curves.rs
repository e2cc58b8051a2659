//! Curves over a scale, with a logarithmic height.

use super::canvas::{Anchor, Canvas};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 300.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend says.
    pub name: String,
    /// `#rrggbb`.
    pub colour: &'static str,
    /// Whether it is somebody else's.
    pub dashed: bool,
    /// Points, by rising x; all y above zero.
    pub points: Vec<(f64, f64)>,
}

/// Draws curves, with the names of both scales.
pub fn curves(title: &str, across: &str, up: &str, curves: &[Curve]) -> String {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, title);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|point| point.0).fold(1.0, f64::max);
    // Whole decades around all heights.
    let low = all().map(|point| point.1.log10()).fold(f64::INFINITY, f64::min).min(3.0).floor();
    let high = all().map(|point| point.1.log10()).fold(low + 1.0, f64::max).ceil();
    let x = |value: f64| LEFT + value / most * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| TOP + (high - value.log10()) / (high - low) * (HEIGHT - TOP - BOTTOM);

    let mut decade = low;
    while decade <= high {
        let value = 10_f64.powf(decade);
        canvas.across(LEFT, WIDTH - RIGHT, y(value));
        canvas.text(LEFT - 8.0, y(value) + 4.0, Anchor::End, &format!("{value:.0}"));
        decade += 1.0;
    }
    let mut ticks: Vec<f64> = all().map(|point| point.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    for tick in ticks {
        canvas.text(x(tick), HEIGHT - BOTTOM + 18.0, Anchor::Middle, &format!("{tick}"));
    }
    canvas.text(x(most / 2.0), HEIGHT - BOTTOM + 40.0, Anchor::Middle, across);
    canvas.text(LEFT - 8.0, TOP - 12.0, Anchor::End, up);

    for (number, curve) in curves.iter().enumerate() {
        let points: Vec<_> = curve.points.iter().map(|point| (x(point.0), y(point.1))).collect();
        canvas.path(&points, curve.colour, curve.dashed);
        let (left, row) = (WIDTH - RIGHT + 20.0, TOP + 10.0 + number as f64 * 22.0);
        canvas.path(&[(left, row), (left + 24.0, row)], curve.colour, curve.dashed);
        canvas.text(left + 34.0, row + 4.0, Anchor::Start, &curve.name);
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_is_as_high_as_another() {
        let points = vec![(5.0, 100.0), (10.0, 1000.0), (20.0, 10_000.0)];
        let curve = Curve { name: "a & b".into(), colour: "#1b4f8a", dashed: false, points };
        let picture = curves("latency", "requests/s", "ms", &[curve]);
        // 300 units for two decades, 576 for twenty requests a second.
        assert!(picture.contains("points=\"228.0,360.0 372.0,210.0 660.0,60.0\""), "{picture}");
        assert!(picture.contains("a &amp; b"), "{picture}");
        assert!(picture.ends_with("</svg>\n"), "{picture}");
    }
}
