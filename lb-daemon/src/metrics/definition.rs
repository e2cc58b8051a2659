//! What a metric is called, and what it means.

use prometheus_client::{metrics::MetricType, registry::Unit};

/// Before the name of each metric.
pub const PREFIX: &str = "spillway";

/// A metric family.
#[derive(Debug)]
pub struct Definition {
    /// Its name without prefix, unit and suffix.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// Its base unit.
    pub unit: Base,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it means: a sentence without its full stop, then more sentences if need be.
    pub help: &'static str,
}

/// What kind a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, but begins anew with what it counts.
    Counter,
    /// It rises and falls.
    Gauge,
    /// How many were at most so large.
    Histogram,
    /// Always 1: the labels say it.
    Info,
}

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Things that the name says.
    None,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A share, 1 for the whole.
    Ratio,
}

impl Definition {
    /// The name that the family has in the exposition.
    pub fn family(&self) -> String {
        match self.unit() {
            Some(unit) => format!("{PREFIX}_{}_{}", self.name, unit.as_str()),
            None => format!("{PREFIX}_{}", self.name),
        }
    }

    /// The name that its samples have; a histogram's have more after it.
    pub fn sample(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.family()),
            Kind::Info => format!("{}_info", self.family()),
            Kind::Gauge | Kind::Histogram => self.family(),
        }
    }

    pub(super) fn unit(&self) -> Option<Unit> {
        match self.unit {
            Base::None => None,
            Base::Bytes => Some(Unit::Bytes),
            Base::Seconds => Some(Unit::Seconds),
            Base::Ratio => Some(Unit::Other("ratio".into())),
        }
    }

    pub(super) fn metric_type(&self) -> MetricType {
        match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
            Kind::Info => MetricType::Info,
        }
    }
}

impl Kind {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}
