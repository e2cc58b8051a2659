//! Colours that tell regions apart by hue and backends by lightness, in print and on a terminal.

use std::io::IsTerminal as _;

/// A colour for each backend of a region: region in order, then backend in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// `#rrggbb`, for pictures.
    pub web: &'static str,
    /// Index among the 256 of a terminal.
    pub terminal: u8,
    /// A character that tells it apart where there is no colour.
    pub glyph: char,
}

const BLUES: [Colour; 3] = [
    Colour { web: "#1b4f8a", terminal: 25, glyph: '█' },
    Colour { web: "#3f8fd2", terminal: 39, glyph: '▓' },
    Colour { web: "#a3d0f5", terminal: 153, glyph: '▒' },
];
const ORANGES: [Colour; 3] = [
    Colour { web: "#a8480c", terminal: 130, glyph: '#' },
    Colour { web: "#ea8a2e", terminal: 208, glyph: '+' },
    Colour { web: "#f8cf9b", terminal: 223, glyph: ':' },
];

impl Colour {
    /// The colour of the n-th backend of a region, both counted from 0. Beyond three of two they
    /// come round again.
    pub fn of(region: usize, backend: usize) -> Self {
        let hue = if region.is_multiple_of(2) { BLUES } else { ORANGES };
        hue[backend % hue.len()]
    }
}

/// Whether and how to write in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Plain text.
    Plain,
    /// Escape sequences of a terminal.
    Coloured,
}

impl Ink {
    /// Colour on a terminal, unless `NO_COLOR` is set or it is a dumb one.
    pub fn for_stdout() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !dumb && !unwanted {
            Self::Coloured
        } else {
            Self::Plain
        }
    }

    /// A text in a terminal's colour.
    pub fn paint(self, terminal: u8, text: &str) -> String {
        match self {
            Self::Plain => text.into(),
            Self::Coloured => format!("\x1b[38;5;{terminal}m{text}\x1b[0m"),
        }
    }

    /// A text that stands back.
    pub fn dim(self, text: &str) -> String {
        match self {
            Self::Plain => text.into(),
            Self::Coloured => format!("\x1b[2m{text}\x1b[0m"),
        }
    }

    /// A text that stands out.
    pub fn bold(self, text: &str) -> String {
        match self {
            Self::Plain => text.into(),
            Self::Coloured => format!("\x1b[1m{text}\x1b[0m"),
        }
    }
}
