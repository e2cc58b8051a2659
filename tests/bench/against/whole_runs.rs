//! A revision whose bench cannot serve: its whole program runs, again and again, by turns with as many rounds of ours.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use lb_tests::turns::by_turns;
use serde::Deserialize;

use super::{Other, Row};
use crate::effort::Effort;
use crate::question::{CaseName, Sample, Unit, medians};
use crate::serve::Server;

/// Whole runs of each.
const fn turns(quick: bool) -> usize {
    if quick { 3 } else { 7 }
}

/// What a case came to in each run.
type Run = Vec<(CaseName, Sample)>;

/// Measures both. Answers the cases of the other one, and those of both.
pub(super) fn measure(
    here: &mut Server,
    other: &Other,
    effort: &Effort,
    out: &Path,
) -> Result<(Vec<CaseName>, Vec<Row>)> {
    // As much as the other one measures when it is told to be quick.
    let short = Effort { quick: true, ..effort.clone() };
    let turns = turns(effort.quick);
    let mut number = 0;
    let mut sides = by_turns(2, turns, |side| {
        number += 1;
        eprintln!("run {number} of {}", 2 * turns);
        if side == 0 { run_whole(other, out) } else { run_ours(here, &short) }
    })?;
    let (Some(ours), Some(theirs)) = (sides.pop(), sides.pop()) else { bail!("no sides") };
    let cases = |runs: &[Run]| -> Vec<CaseName> {
        runs.first().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let there_cases = cases(&theirs);
    let rows = cases(&ours).into_iter().filter(|name| there_cases.contains(name));
    let row = |name: CaseName| {
        let (there, here) = (of_case(&theirs, &name), of_case(&ours, &name));
        Row { name, there: medians(&there), here: medians(&here) }
    };
    let rows = rows.map(row).collect();
    Ok((there_cases, rows))
}

fn of_case(runs: &[Run], name: &CaseName) -> Vec<Sample> {
    let samples = runs.iter().flatten().filter(|(found, _)| found == name);
    samples.map(|(_, sample)| *sample).collect()
}

/// One run of ours: all cases, one after the other.
fn run_ours(here: &mut Server, effort: &Effort) -> Result<Run> {
    let names = here.cases.clone();
    let mut run = Vec::new();
    for name in names.into_iter().filter(|name| effort.includes(name)) {
        let rounds = 0..effort.rounds(name.unit);
        let packets = effort.packets(name.unit);
        let samples = rounds.map(|_| here.round(&name, packets)).collect::<Result<Vec<_>>>()?;
        run.push((name, medians(&samples)));
    }
    Ok(run)
}

/// One run of the other's bench.
fn run_whole(other: &Other, out: &Path) -> Result<Run> {
    let folder = out.join("against");
    let beside = other.program.parent().context("a bench program has a folder")?;
    let output = Command::new(&other.program)
        .args(["--quick", "--out"])
        .arg(&folder)
        .arg("--objects")
        .arg(&other.objects)
        .env("SPILLWAY_BIN_DIR", beside)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{}: start", other.program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: its bench failed ({}): {}", other.name, output.status, said.trim());
    }
    let path = folder.join("datapath.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

/// An entry of `datapath.json`; what is neither a time nor a rate is passed over.
#[derive(Deserialize)]
struct Entry {
    case: String,
    flows: Option<u64>,
    ns: Option<f64>,
    floor_ns: Option<f64>,
    mpps: Option<f64>,
    floor_mpps: Option<f64>,
}

fn parse(text: &str) -> Result<Run> {
    let entries: Vec<Entry> = serde_json::from_str(text)?;
    let read = |entry: Entry| match entry {
        Entry { case, flows: Some(flows), ns: Some(value), floor_ns: Some(floor), .. } => {
            Some((CaseName { case, flows, unit: Unit::Nanoseconds }, Sample { value, floor }))
        }
        Entry { mpps: Some(value), floor_mpps: Some(floor), .. } => {
            // There was one such case then, under another name.
            let case = "veth, XDP_TX".into();
            Some((CaseName { case, flows: 100_000, unit: Unit::Mpps }, Sample { value, floor }))
        }
        _ => None,
    };
    Ok(entries.into_iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries as the bench of d597208 wrote them.
    #[test]
    fn older_files_are_read() {
        let text = r#"[
  { "above_floor_ns": 71.0, "case": "tcp established", "floor_ns": 55.0, "flows": 1, "ns": 126.0 },
  { "case": "veth, ipv4 tcp established", "floor_mpps": 1.5, "mpps": 1.2, "ratio": 0.8 },
  { "balanced_us": 900.0, "case": "curl, fresh connection", "connections": 100, "direct_us": 800.0 },
  { "case": "table build", "members": 10, "ms": 1.5, "slots": 65537 }
]"#;
        let established =
            CaseName { case: "tcp established".into(), flows: 1, unit: Unit::Nanoseconds };
        let veth = CaseName { case: "veth, XDP_TX".into(), flows: 100_000, unit: Unit::Mpps };
        let expected = [
            (established, Sample { value: 126.0, floor: 55.0 }),
            (veth, Sample { value: 1.2, floor: 1.5 }),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        assert!(parse("{}").is_err());
    }
}
