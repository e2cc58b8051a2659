//! Two revisions in one run, or another balancer and this tree: each fills and runs its own objects, in processes that take
//! turns.

mod table;
mod whole_runs;

use std::env::current_exe;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use lb_tests::turns::by_turns;

use crate::effort::Effort;
use crate::peer_program::PeerSource;
use crate::question::{CaseName, Sample, medians};
use crate::serve::{Server, serves};

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
    /// Round by round, and again where the floor moved: another balancer's program.
    SteadyRounds,
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
    /// Cases that were thrown away: the floor never stood still.
    pub(crate) thrown_away: Vec<CaseName>,
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
        thrown_away: Vec::new(),
    })
}

/// Measures another balancer's packet program and this tree's. Where the floor moves, what was measured is thrown away.
///
/// # Errors
/// A program that cannot be loaded or does not do what is asked of it, or a floor that stands still in no case.
pub(crate) fn beside(
    own_objects: &Path,
    source: &PeerSource,
    effort: &Effort,
) -> Result<Comparison> {
    let own = current_exe().context("find our own program")?;
    let mut here = Server::start(&own, own_objects, effort.realtime)?;
    let mut there = Server::start_with(&own, own_objects, effort.realtime, Some(source))?;
    let names: Vec<_> = there.cases.iter().filter(|name| effort.includes(name)).cloned().collect();
    ensure!(!names.is_empty(), "no case of other balancers has {:?} in its name", effort.only);
    let (mut rows, mut thrown_away) = (Vec::new(), Vec::new());
    for name in names {
        match steady_rounds(&mut here, &mut there, &name, effort)? {
            Some(row) => rows.push(row),
            None => thrown_away.push(name),
        }
    }
    ensure!(!rows.is_empty(), "the floor stood still in no case: this machine does other work");
    let other = source.script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (mode, [only_here, only_there]) = (Mode::SteadyRounds, Default::default());
    Ok(Comparison { other, mode, rows, only_here, only_there, thrown_away })
}

/// How far the floor may move between the halves of a measurement and between the sides, as a part of it. The kernel counts
/// whole nanoseconds, so that one more is no movement.
const MOST_DRIFT: f64 = 0.03;
const RESOLUTION: f64 = 1.0;
/// How often a case is measured until the floor stands still.
const TRIES: usize = 10;

/// A case, measured while the floor stood still; none if it never does.
fn steady_rounds(
    here: &mut Server,
    there: &mut Server,
    name: &CaseName,
    effort: &Effort,
) -> Result<Option<Row>> {
    for _ in 0..TRIES {
        let samples = rounds(here, there, name, effort)?;
        let drift = drift(&samples);
        if drift <= MOST_DRIFT {
            return Ok(Some(Row::new(name, &samples)));
        }
        eprintln!("  thrown away: the floor moved by {:.1} %", drift * 100.0);
    }
    Ok(None)
}

/// How far the floor moved: the highest over the lowest of its medians, of each half of the rounds of each side, less 1.
fn drift(samples: &[Vec<Sample>]) -> f64 {
    let halves = samples.iter().flat_map(|side| {
        let (first, second) = side.split_at(side.len() / 2);
        [first, second]
    });
    let floors: Vec<f64> = halves.map(|half| medians(half).floor).collect();
    let most = floors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = floors.into_iter().fold(f64::INFINITY, f64::min);
    if most - least <= RESOLUTION { 0.0 } else { most / least - 1.0 }
}

/// Case by case, round by round.
fn round_by_round(here: &mut Server, there: &mut Server, effort: &Effort) -> Result<Vec<Row>> {
    let both = |name: &&CaseName| effort.includes(name) && there.cases.contains(name);
    let names: Vec<CaseName> = here.cases.iter().filter(both).cloned().collect();
    let mut rows = Vec::new();
    for name in names {
        rows.push(Row::new(&name, &rounds(here, there, &name, effort)?));
    }
    Ok(rows)
}

/// One case: the samples of the other side, and of this tree.
fn rounds(
    here: &mut Server,
    there: &mut Server,
    name: &CaseName,
    effort: &Effort,
) -> Result<Vec<Vec<Sample>>> {
    eprintln!("{name}");
    let mut sides = [there, here];
    by_turns(sides.len(), effort.rounds(name.unit), |side| {
        sides[side].round(name, effort.packets(name.unit))
    })
}

impl Row {
    /// The medians of a case's [`rounds`].
    fn new(name: &CaseName, samples: &[Vec<Sample>]) -> Self {
        let [there, here] = [0, 1].map(|side: usize| medians(&samples[side]));
        Self { name: name.clone(), there, here }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floors(all: &[&[f64]]) -> Vec<Vec<Sample>> {
        let sample = |&floor: &f64| Sample { value: 100.0, floor };
        all.iter().map(|side| side.iter().map(sample).collect()).collect()
    }

    #[test]
    fn a_floor_that_stands_still_does_not_drift_whatever_single_rounds_do() {
        let still = floors(&[&[50.0, 50.0, 90.0, 50.0, 50.0, 50.0], &[50.0; 6]]);
        assert_eq!(drift(&still), 0.0);
        // What it may be by rounding.
        assert_eq!(drift(&floors(&[&[22.0, 22.0, 23.0, 23.0], &[22.0; 4]])), 0.0);
    }

    #[test]
    fn a_floor_moves_in_time_or_from_side_to_side() {
        let in_time = floors(&[&[50.0, 50.0, 55.0, 55.0], &[50.0, 50.0, 55.0, 55.0]]);
        assert!((drift(&in_time) - 0.1).abs() < 1e-9);
        let between_sides = floors(&[&[50.0; 4], &[52.0; 4]]);
        assert!((drift(&between_sides) - 0.04).abs() < 1e-9);
    }
}
