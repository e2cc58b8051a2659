//! Verdicts as the document tells them: number, label and action.

use anyhow::{Context as _, Result};

const DOCUMENT: &str = include_str!("../../../docs/verdicts.md");

/// A line of the document's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Index of its counter.
    pub number: u32,
    /// Its label.
    pub name: &'static str,
    /// What the driver is told: the number of the XDP action (`XDP_DROP` 1, `XDP_PASS` 2, `XDP_TX`
    /// 3, `XDP_REDIRECT` 4; include/uapi/linux/bpf.h).
    pub action: u32,
}

/// All verdicts of the document.
///
/// # Errors
/// When a line of its table is not understood.
pub fn all() -> Result<Vec<Verdict>> {
    let lines = DOCUMENT.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    lines.map(|line| parse(line).with_context(|| format!("docs/verdicts.md: {line}"))).collect()
}

/// The verdict with a label.
///
/// # Errors
/// When the document has none.
pub fn named(name: &str) -> Result<Verdict> {
    let found = all()?.into_iter().find(|verdict| verdict.name == name);
    found.with_context(|| format!("docs/verdicts.md: no verdict {name}"))
}

fn parse(line: &'static str) -> Option<Verdict> {
    let mut cells = line.trim_matches('|').split('|').map(str::trim);
    let number = cells.next()?.parse().ok()?;
    let name = cells.next()?.trim_matches('`');
    let action = match cells.next()? {
        "drop" => 1,
        "pass" => 2,
        "transmit" => 3,
        "redirect" => 4,
        _ => return None,
    };
    Some(Verdict { number, name, action })
}
