//! Two revisions in one run: each fills and runs its own objects, in processes that take turns.

mod table;
mod whole_runs;

use std::env::current_exe;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::effort::Effort;
use crate::question::{CaseName, Sample};
use crate::serve::{Server, serves};
use crate::turns::{by_turns, medians};

/// Another revision, built.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    /// What tables call it.
    pub(crate) name: String,
    /// Its bench program, which stands beside its daemon.
    pub(crate) program: PathBuf,
    /// Its objects.
    pub(crate) objects: PathBuf,
}

/// How the other revision was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Round by round, each case in turn.
    Rounds,
    /// By whole runs of its bench, which cannot serve.
    WholeRuns,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// The other revision.
    pub(crate) other: String,
    /// How it was measured.
    pub(crate) mode: Mode,
    /// Cases of both, with the medians.
    pub(crate) rows: Vec<Row>,
    /// Cases that only one of the two has.
    pub(crate) only_here: Vec<CaseName>,
    /// Cases that only one of the two has.
    pub(crate) only_there: Vec<CaseName>,
}

/// A case of both revisions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The case.
    pub(crate) name: CaseName,
    /// Medians of the other revision.
    pub(crate) there: Sample,
    /// Medians of this one.
    pub(crate) here: Sample,
}

/// Measures both.
///
/// # Errors
/// A bench that does not start, or what it could not measure.
pub(crate) fn compare(
    own_objects: &Path,
    other: &Other,
    effort: &Effort,
    out: &Path,
) -> Result<Comparison> {
    let own = current_exe().context("find our own program")?;
    let mut here = Server::start(&own, own_objects, effort.realtime)?;
    let (mode, there_cases, rows) = if serves(&other.program)? {
        let mut there = Server::start(&other.program, &other.objects, effort.realtime)
            .with_context(|| other.name.clone())?;
        let rows = round_by_round(&mut here, &mut there, effort)?;
        (Mode::Rounds, there.cases.clone(), rows)
    } else {
        let (there_cases, rows) = whole_runs::measure(&mut here, other, effort, out)?;
        (Mode::WholeRuns, there_cases, rows)
    };
    ensure!(!rows.is_empty(), "{}: has none of these cases", other.name);
    let only = |cases: &[CaseName], others: &[CaseName]| {
        let alone = cases.iter().filter(|name| effort.includes(name) && !others.contains(name));
        alone.cloned().collect()
    };
    Ok(Comparison {
        other: other.name.clone(),
        mode,
        rows,
        only_here: only(&here.cases, &there_cases),
        only_there: only(&there_cases, &here.cases),
    })
}

/// Case by case, round by round.
fn round_by_round(here: &mut Server, there: &mut Server, effort: &Effort) -> Result<Vec<Row>> {
    let both = |name: &&CaseName| effort.includes(name) && there.cases.contains(name);
    let names: Vec<CaseName> = here.cases.iter().filter(both).cloned().collect();
    let mut rows = Vec::new();
    for name in names {
        eprintln!("{name}");
        let packets = effort.packets(name.unit);
        let mut sides = [&mut *there, &mut *here];
        let samples = by_turns(sides.len(), effort.rounds(name.unit), |side| {
            sides[side].round(&name, packets)
        })?;
        rows.push(Row { name, there: medians(&samples[0]), here: medians(&samples[1]) });
    }
    Ok(rows)
}
