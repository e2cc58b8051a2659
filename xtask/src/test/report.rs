//! What a run says while it runs, and what it came to. Steps that run beside each other share it.

use std::cmp::Reverse;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::artifacts::Cost;
use crate::process::Captured;
use crate::ui;

use super::tally::Tally;

/// Rows of the table of what took longest.
const SLOWEST: usize = 20;

/// Lines of what failed that are said once more at the end: of a long log often only that is kept.
const LAST_LINES: usize = 40;

/// Counts and times of everything that has ended.
#[derive(Default)]
pub(super) struct Report(Mutex<Ended>);

#[derive(Default)]
struct Ended {
    total: Tally,
    /// Tests of test programs among them.
    tests: u64,
    times: Vec<Timed>,
    steps: Vec<StepCost>,
    /// What failed, with the end of what it said.
    failures: String,
}

/// What everything came to.
pub(super) struct Summary {
    pub(super) total: Tally,
    /// What took longest, a line each.
    pub(super) slowest: String,
    /// Each step, in the order in which they ended.
    pub(super) steps: String,
    /// What failed, with the end of what it said; empty if nothing did.
    pub(super) failures: String,
}

/// What a test or a part of a step took.
struct Timed {
    name: String,
    time: Duration,
    /// None: it is part of a program's.
    cpu_time: Option<Duration>,
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu_time = self.cpu_time.map(ui::elapsed).unwrap_or_default();
        write!(f, "{:>12}  {cpu_time:>12}  {}", ui::elapsed(self.time), self.name)
    }
}

impl Timed {
    fn since(name: &str, start: Instant, cpu_time: Option<Duration>) -> Self {
        Self { name: name.to_owned(), time: start.elapsed(), cpu_time }
    }
}

/// What a step of the run took: those that run beside each other overlap.
struct StepCost {
    name: String,
    time: Duration,
    cost: Cost,
}

impl Report {
    /// A step begins.
    pub(super) fn begin(&self, step: &str) -> Instant {
        let _whole = self.lock();
        ui::heading(step);
        Instant::now()
    }

    /// A step, or one of its tests, ended by itself: `Err` is why it failed.
    pub(super) fn conclude<T>(
        &self,
        name: &str,
        start: Instant,
        outcome: &Result<T>,
    ) -> Result<()> {
        crate::signals::check()?;
        let tally = Tally::step(outcome.is_ok());
        let said = outcome.as_ref().err().map(|error| format!("{error:#}"));
        self.end(Timed::since(name, start, None), tally, said.as_deref(), None);
        Ok(())
    }

    /// A program ended whose output was kept: shown whole if it failed.
    pub(super) fn ran(&self, name: &str, start: Instant, captured: &Captured, tally: Tally) {
        let status = match captured.status {
            Ok(status) if !status.success() => Some(status.to_string()),
            Ok(_) => None,
            Err(exceeded) => Some(exceeded.to_string()),
        };
        let output = tally.is_failure().then(|| captured.output.trim_end());
        let timed = Timed::since(name, start, Some(captured.cpu_time));
        self.end(timed, tally, output, status.as_deref());
    }

    /// The same for a program of tests.
    pub(super) fn tested(&self, name: &str, start: Instant, captured: &Captured, tally: Tally) {
        self.lock().tests += tally.count();
        self.ran(name, start, captured, tally);
    }

    /// Whether any test of a test program was run.
    pub(super) fn has_tested(&self) -> bool {
        self.lock().tests > 0
    }

    fn end(&self, timed: Timed, tally: Tally, output: Option<&str>, status: Option<&str>) {
        let mut ended = self.lock();
        let (word, status) = match tally.is_failure() {
            true => ("FAILED", status.map(|status| format!(" ({status})")).unwrap_or_default()),
            false => ("ok", String::new()),
        };
        let mut line = format!("{word:<6} {timed}{status}");
        if tally.count() > 1 {
            let _ = write!(line, ": {tally}");
        }
        if let Some(output) = output {
            eprintln!("{output}");
            let lines: Vec<_> = output.lines().collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
            let _ = writeln!(ended.failures, "{last}\n    {line}");
        }
        ui::note(&line);
        ended.times.push(timed);
        ended.total += tally;
    }

    /// What a part of a step took.
    pub(super) fn time(&self, name: &str, time: Duration) {
        let timed = Timed { name: name.to_owned(), time, cpu_time: None };
        let mut ended = self.lock();
        ui::note(&format!("{:<6} {timed}", ""));
        ended.times.push(timed);
    }

    /// A step ended, which took so much.
    pub(super) fn step(&self, name: &str, start: Instant, cost: Cost) {
        self.lock().steps.push(StepCost { name: name.to_owned(), time: start.elapsed(), cost });
    }

    /// A test that was skipped for a reason of this run's.
    pub(super) fn skip(&self, name: &str, reason: &str) {
        let mut ended = self.lock();
        ui::note(&format!("skipped: {name}: {reason}"));
        ended.total.skipped.push(name.to_owned());
    }

    pub(super) fn finish(self) -> Summary {
        let Ended { total, mut times, steps, failures, .. } =
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let steps = steps.iter().fold(String::new(), |mut table, step| {
            let _ = writeln!(
                table,
                "    {:>12}  {:>12}  {:>6}  {}",
                ui::elapsed(step.time),
                ui::elapsed(step.cost.cpu_time),
                step.cost.units,
                step.name
            );
            table
        });
        times.sort_by_key(|it| Reverse(it.time));
        let rows = times.iter().take(SLOWEST);
        let slowest = rows.fold(String::new(), |mut table, timed| {
            let _ = writeln!(table, "    {timed}");
            table
        });
        Summary { total, slowest, steps, failures }
    }

    fn lock(&self) -> MutexGuard<'_, Ended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_slowest_stand_first_and_all_are_counted() {
        let report = Report::default();
        let now = Instant::now();
        for seconds in 0..30 {
            let start = now.checked_sub(Duration::from_secs(seconds)).unwrap();
            let outcome = if seconds == 7 { Err(anyhow!("broken")) } else { Ok(()) };
            report.conclude(&format!("step {seconds}"), start, &outcome).unwrap();
        }
        let cpu_time = Duration::from_secs(90);
        report.step("build", now, Cost { units: 42, cpu_time });
        report.step("unit", now, Cost::default());
        let Summary { total, slowest: table, steps, failures } = report.finish();
        let failures: Vec<_> = failures.lines().collect();
        assert_eq!(failures[0], "broken");
        assert!(failures[1].ends_with("step 7") && failures.len() == 2, "{failures:?}");
        let steps: Vec<Vec<_>> =
            steps.lines().map(|line| line.split_whitespace().skip(2).collect()).collect();
        assert_eq!(steps[0], ["1", "min", "30", "s", "42", "build"]);
        assert_eq!(steps[1], ["0.0", "s", "0", "unit"]);
        assert_eq!((total.passed, total.failed), (29, 1));
        let rows: Vec<_> = table.lines().collect();
        assert_eq!(rows.len(), SLOWEST);
        // Their times have what passed since as well.
        assert!(rows[0].ends_with(" s                step 29"), "{table}");
        assert!(rows[19].ends_with("                step 10"), "{table}");
    }
}
