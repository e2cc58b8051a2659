//! What the user sees.

use std::io::Write as _;
use std::time::Instant;

use comfy_table::{CellAlignment, LineStyle, Table, presets};
use lb_tests::report::{Colour, Ink};

const GREEN: u8 = 34;
const RED: u8 = 160;
const YELLOW: u8 = 172;

/// Standard output, line by line.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Whether there is colour.
    pub(crate) ink: Ink,
    start: Instant,
    commands: Vec<String>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { ink: Ink::for_stdout(), start: Instant::now(), commands: Vec::new() }
    }

    /// Seconds since the demo began.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub(crate) fn line(&self, text: &str) {
        // Nobody to read it is no reason to stop.
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }

    pub(crate) fn title(&self, text: &str) {
        self.line(&self.ink.bold(text));
        self.line(&self.ink.dim(
            "Real programs and real packets, in network namespaces that vanish with this demo.",
        ));
    }

    pub(crate) fn heading(&self, text: &str) {
        self.line("");
        self.line(&self.ink.bold(text));
    }

    /// Something is done.
    pub(crate) fn done(&self, text: &str) {
        let (mark, time) = (self.ink.paint(GREEN, "✓"), self.time());
        self.line(&format!("  {time} {mark} {text}"));
    }

    /// Something happened.
    pub(crate) fn event(&self, text: &str) {
        let (mark, time) = (self.ink.paint(YELLOW, "●"), self.time());
        self.line(&format!("  {time} {mark} {}", self.ink.bold(text)));
    }

    /// A command, as it is typed on a node. It is shown and remembered.
    pub(crate) fn command(&mut self, node: &str, command: &str) {
        self.line(&self.ink.dim(&format!("           {node}# {command}")));
        self.commands.push(format!("{node}# {command}"));
    }

    /// All commands so far, one a line.
    pub(crate) fn commands(&self) -> String {
        self.commands.join("\n") + "\n"
    }

    /// What a command printed.
    pub(crate) fn quote(&self, text: &str) {
        for line in text.trim_end().lines() {
            self.line(&format!("           {line}"));
        }
    }

    /// Who answered in the last second.
    pub(crate) fn second(&self, counts: &[(String, u64)], colours: &[Colour]) {
        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        let mut text = format!("  {} ", self.time());
        for ((name, count), colour) in counts.iter().zip(colours) {
            let share = if total == 0 { 0.0 } else { *count as f64 / total as f64 };
            // Twelve cells for one whole.
            let cells = (share * 12.0).round() as usize;
            let glyph = if self.ink == Ink::Coloured { '█' } else { colour.glyph };
            let bar = glyph.to_string().repeat(cells);
            let percent =
                if *count == 0 { "  ·".into() } else { format!("{:2.0}%", share * 100.0) };
            text += &format!("{name} {}{percent} ", self.ink.paint(colour.terminal, &bar));
        }
        self.line(&format!("{text} {}", self.ink.dim(&format!("{total}/s"))));
    }

    pub(crate) fn failure(&self, error: &anyhow::Error) {
        let mark = self.ink.paint(RED, "✗");
        // Nobody to read it is no reason to stop.
        let _ = writeln!(std::io::stderr().lock(), "  {mark} demo: {error:#}");
    }

    fn time(&self) -> String {
        self.ink.dim(&format!("{:6.1} s", self.seconds()))
    }
}

/// A table with a rule under its header.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let ruled = presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());
    table.load_style(ruled).set_header(header);
    table
}

/// Numbers stand at the right, from a column on.
pub(crate) fn align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A share; a dot where there is none.
pub(crate) fn percent(part: u64, total: u64) -> String {
    match (part, total) {
        (0, _) | (_, 0) => "·".into(),
        _ => format!("{:.1} %", part as f64 / total as f64 * 100.0),
    }
}
