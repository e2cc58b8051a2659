//! Verdicts as the document tells them: number, label and action.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow};

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
pub fn all() -> Result<&'static [Verdict]> {
    static ALL: LazyLock<Result<Vec<Verdict>, String>> = LazyLock::new(read);
    ALL.as_deref().map_err(|line| anyhow!("docs/verdicts.md: {line}"))
}

fn read() -> Result<Vec<Verdict>, String> {
    let lines = DOCUMENT.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    lines.map(|line| parse(line).ok_or_else(|| line.to_owned())).collect()
}

/// The verdict with a label.
///
/// # Errors
/// When the document has none.
pub fn named(name: &str) -> Result<Verdict> {
    let found = all()?.iter().find(|verdict| verdict.name == name).copied();
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
