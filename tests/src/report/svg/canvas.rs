//! Lines, boxes and words on a white ground.

use std::fmt::Write as _;

use super::escape;

/// Where a text stands relative to its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A picture that is being drawn. Writing to a string cannot fail, so nothing here does.
#[derive(Debug)]
pub(super) struct Canvas(String);

impl Canvas {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let title = escape(title);
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
             fill=\"#333\">\n<title>{title}</title>\n<rect width=\"100%\" height=\"100%\" \
             fill=\"#fff\"/>\n<text x=\"64\" y=\"28\" font-size=\"18\" \
             font-weight=\"bold\">{title}</text>\n"
        ))
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        let (anchor, text) = (anchor.name(), escape(text));
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    pub(super) fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{fill}\"/>"
        );
    }

    /// A line across, from `x` to `to`.
    pub(super) fn across(&mut self, x: f64, to: f64, y: f64) {
        let _ = writeln!(
            self.0,
            "<line x1=\"{x:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
        );
    }

    /// A line through points, each marked by a dot.
    pub(super) fn path(&mut self, points: &[(f64, f64)], stroke: &str, dashed: bool) {
        let all: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let _ = writeln!(
            self.0,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"{dash}/>",
            all.join(" ")
        );
        for (x, y) in points {
            let _ =
                writeln!(self.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{stroke}\"/>");
        }
    }

    pub(super) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}
