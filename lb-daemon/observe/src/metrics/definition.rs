//! Definitions of metrics: name, kind, unit, labels and help.

use prometheus_client::{metrics::MetricType, registry::Unit};

/// Prefix of all names.
pub const PREFIX: &str = "spillway";

/// A metric family.
#[derive(Debug)]
pub struct Definition {
    /// Without prefix, unit and suffix.
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Base,
    pub labels: &'static [&'static str],
    /// One or more sentences, the last without its full stop.
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises; starts at zero again with the object that it counts.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Cumulative buckets.
    Histogram,
    /// Always 1: the labels have the information.
    Info,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Things named by the metric.
    None,
    Bytes,
    Seconds,
    /// A share, 1 for the whole.
    Ratio,
}

impl Definition {
    /// Name of the family in the exposition.
    pub fn family(&self) -> String {
        match self.unit() {
            Some(unit) => format!("{PREFIX}_{}_{}", self.name, unit.as_str()),
            None => format!("{PREFIX}_{}", self.name),
        }
    }

    /// Name of the samples; those of a histogram have a further suffix.
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
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}
