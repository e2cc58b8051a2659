use std::{collections::BTreeMap, str::FromStr};

use anyhow::{Context as _, Result, bail, ensure};

use super::line::{Labels, sample};

/// What kind of metric a family is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
    /// How many were at most so large.
    Histogram,
    /// Labels only.
    Info,
}

/// A metric family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// What it means.
    pub help: Option<String>,
    /// What kind it is.
    pub kind: Option<Kind>,
    /// Samples by name and labels.
    pub samples: BTreeMap<(String, Labels), f64>,
}

/// A histogram of a family.
#[derive(Debug, Default)]
struct Histogram {
    /// Upper bounds, and how many were at most so large.
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "counter" => Self::Counter,
            "gauge" => Self::Gauge,
            "histogram" => Self::Histogram,
            "info" => Self::Info,
            other => bail!("{other} is no type of ours"),
        })
    }
}

impl Family {
    pub(super) fn sample(&mut self, family: &str, line: &str) -> Result<()> {
        let (name, labels, value) = sample(line)?;
        let suffix = name.strip_prefix(family).context("a sample of another family")?;
        let known: &[&str] = match self.kind.context("no TYPE")? {
            Kind::Counter => &["_total"],
            Kind::Gauge => &[""],
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Info => &["_info"],
        };
        ensure!(known.contains(&suffix), "its type has no {suffix}");
        ensure!(labels.contains_key("le") == (suffix == "_bucket"), "le is for buckets");
        match self.kind {
            Some(Kind::Info) => ensure!(value == 1.0, "an info is 1"),
            Some(Kind::Counter) => ensure!(value >= 0.0 && value.is_finite(), "no count"),
            _ => ensure!(!value.is_nan(), "no number"),
        }
        ensure!(self.samples.insert((name, labels), value).is_none(), "the same labels twice");
        Ok(())
    }

    pub(super) fn check(&self) -> Result<()> {
        ensure!(self.help.as_ref().is_some_and(|help| help.ends_with('.')), "no HELP in sentences");
        ensure!(self.kind.is_some(), "no TYPE");
        if self.kind == Some(Kind::Histogram) {
            self.check_histogram()?;
        }
        Ok(())
    }

    /// Of each histogram, told by its other labels, the buckets rise to the count.
    fn check_histogram(&self) -> Result<()> {
        let mut histograms: BTreeMap<Labels, Histogram> = BTreeMap::new();
        for ((name, labels), value) in &self.samples {
            let mut labels = labels.clone();
            let le = labels.remove("le");
            let histogram = histograms.entry(labels).or_default();
            match le {
                Some(le) => histogram.buckets.push((le.parse()?, *value)),
                None if name.ends_with("_count") => histogram.count = Some(*value),
                None => {}
            }
        }
        ensure!(!histograms.is_empty(), "no bucket");
        for Histogram { mut buckets, count } in histograms.into_values() {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            ensure!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "buckets fall");
            let last = buckets.last().context("no bucket")?;
            ensure!(last.0 == f64::INFINITY && Some(last.1) == count, "+Inf is not the count");
        }
        Ok(())
    }
}
