//! What the subjects found: rows of figures, as lines for people and as JSON for programs.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) case: String,
    figures: Vec<(&'static str, Unit, f64)>,
}

/// What a figure is counted in; the end of its name in JSON says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Milliseconds,
    Seconds,
    Count,
    Cores,
    Mebibytes,
    PerSecond,
}

impl Unit {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Milliseconds => "_ms",
            Self::Seconds => "_s",
            Self::Count => "",
            Self::Cores => "_cores",
            Self::Mebibytes => "_mib",
            Self::PerSecond => "_per_s",
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::Milliseconds if value < 10.0 => format!("{value:.2} ms"),
            Self::Milliseconds => format!("{value:.0} ms"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Count => format!("{value:.0}"),
            Self::Cores => format!("{value:.2} cores"),
            Self::Mebibytes => format!("{value:.0} MiB"),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }
}

impl Row {
    /// A row without figures.
    pub(crate) fn new(case: impl Into<String>) -> Self {
        Self { case: case.into(), figures: Vec::new() }
    }

    /// Adds a time in milliseconds.
    pub(crate) fn ms(self, name: &'static str, time: Duration) -> Self {
        self.with(name, Unit::Milliseconds, time.as_secs_f64() * 1e3)
    }

    /// Adds a time in seconds.
    pub(crate) fn seconds(self, name: &'static str, seconds: f64) -> Self {
        self.with(name, Unit::Seconds, seconds)
    }

    /// Adds a number of things.
    pub(crate) fn count(self, name: &'static str, count: u64) -> Self {
        self.with(name, Unit::Count, count as f64)
    }

    /// Adds CPU time a second.
    pub(crate) fn cores(self, name: &'static str, cores: f64) -> Self {
        self.with(name, Unit::Cores, cores)
    }

    /// Adds memory.
    pub(crate) fn memory(self, name: &'static str, bytes: u64) -> Self {
        self.with(name, Unit::Mebibytes, bytes as f64 / f64::from(1 << 20))
    }

    /// Adds a number a second.
    pub(crate) fn rate(self, name: &'static str, rate: f64) -> Self {
        self.with(name, Unit::PerSecond, rate)
    }

    /// Adds p50, p99, worst and number of times.
    pub(crate) fn times(self, times: &Times) -> Self {
        self.ms("p50", times.quantile(500))
            .ms("p99", times.quantile(990))
            .ms("worst", times.quantile(1000))
            .count("samples", times.len() as u64)
    }

    fn with(mut self, name: &'static str, unit: Unit, value: f64) -> Self {
        self.figures.push((name, unit, value));
        self
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("case".into(), json!(format!("control, {}", self.case)));
        for (name, unit, value) in &self.figures {
            let name = format!("{}{}", name.replace([' ', '.'], "_"), unit.suffix());
            // A count is whole in JSON too.
            let value = if *unit == Unit::Count { json!(*value as u64) } else { json!(value) };
            object.insert(name, value);
        }
        object.into()
    }
}

/// The table: a line a row.
pub(crate) fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.case.len()).max().unwrap_or_default();
    let mut out = String::new();
    for Row { case, figures } in rows {
        let figures: Vec<_> = figures
            .iter()
            .map(|(name, unit, value)| format!("{name} {}", unit.format(*value)))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{case:<width$}  {}", figures.join(", "));
    }
    out
}

/// Writes `control.json` into a folder.
///
/// # Errors
/// A folder or file that cannot be written.
pub(crate) fn write(rows: &[Row], folder: &Path) -> Result<()> {
    let all: Vec<Value> = rows.iter().map(Row::to_json).collect();
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join("control.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&all)?)
        .with_context(|| path.display().to_string())
}

/// Measured times, in order of length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times(Vec<Duration>);

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        Self(times)
    }
}

impl Times {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The quantile by nearest rank, per mille; of no times zero.
    pub(crate) fn quantile(&self, per_mille: usize) -> Duration {
        let rank = (self.0.len() * per_mille).div_ceil(1000).max(1);
        self.0.get(rank - 1).or(self.0.last()).copied().unwrap_or_default()
    }

    /// With the times that were not measured because their subject waited: after each time longer than `period` those
    /// of the events that would have begun every `period` meanwhile, as HdrHistogram corrects for coordinated omission.
    pub(crate) fn with_omitted(&self, period: Duration) -> Self {
        assert!(!period.is_zero(), "events follow one another in no time");
        let omitted = |&time: &Duration| {
            std::iter::successors(Some(time), move |time| {
                time.checked_sub(period).filter(|left| !left.is_zero())
            })
        };
        self.0.iter().flat_map(omitted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(times: impl IntoIterator<Item = u64>) -> Times {
        times.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn quantiles_are_measured_times_by_nearest_rank() {
        let times = ms((1..=1000).rev());
        let at = |per_mille| times.quantile(per_mille).as_millis();
        assert_eq!([at(500), at(990), at(999), at(1000)], [500, 990, 999, 1000]);
        let few = ms([3, 1, 2]);
        assert_eq!([0, 500, 990, 1000].map(|it| few.quantile(it).as_millis()), [1, 2, 3, 3]);
        assert_eq!(ms([]).quantile(500), Duration::ZERO);
    }

    #[test]
    fn a_long_time_counts_for_all_that_would_have_waited() {
        assert_eq!(
            ms([5, 1000]).with_omitted(Duration::from_millis(300)),
            ms([5, 1000, 700, 400, 100])
        );
        assert_eq!(ms([5, 300]).with_omitted(Duration::from_millis(300)), ms([5, 300]));
    }

    #[test]
    fn rows_are_lines_and_json() {
        let row = Row::new("failover quiet")
            .ms("p99.9", Duration::from_micros(1234))
            .count("samples", 7)
            .memory("peak resident", 3 << 20);
        let expected = json!({
            "case": "control, failover quiet", "p99_9_ms": 1.234, "samples": 7, "peak_resident_mib": 3.0,
        });
        assert_eq!(row.to_json(), expected);
        let rows = [row, Row::new("x").seconds("cpu", 0.5)];
        let lines = "failover quiet  p99.9 1.23 ms, samples 7, peak resident 3 MiB\n\
                     x               cpu 0.50 s\n";
        assert_eq!(table(&rows), lines);
    }
}
