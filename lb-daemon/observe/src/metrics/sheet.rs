//! Writes an exposition, family by family.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};

use lb_base::durations::Durations;

use super::definition::{Definition, Kind};

#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Count(u64),
    Level(f64),
    Info,
}

pub(super) struct Sheet<'a>(DescriptorEncoder<'a>);

impl<'a> Sheet<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// A family with a sample for each set of label values, in the order of the labels' names.
    pub(super) fn family<'l, L: AsRef<[&'l str]>>(
        &mut self,
        definition: &Definition,
        samples: impl IntoIterator<Item = (L, Value)>,
    ) -> fmt::Result {
        let unit = definition.unit();
        let (help, kind) = (format!("{}.", definition.help), definition.metric_type());
        let mut family = self.0.encode_descriptor(definition.name, &help, unit.as_ref(), kind)?;
        for (values, value) in samples {
            let names = definition.labels.iter().copied();
            let labels: Vec<(&str, &str)> = names.zip(values.as_ref().iter().copied()).collect();
            match value {
                Value::Info => family.encode_info(&labels)?,
                _ if labels.is_empty() => number(&mut family, definition, value)?,
                _ => number(&mut family.encode_family(&labels)?, definition, value)?,
            }
        }
        Ok(())
    }

    /// A family of one sample without labels.
    pub(super) fn one(&mut self, definition: &Definition, value: Value) -> fmt::Result {
        self.family(definition, [([], value)])
    }

    /// A family of histograms, one for each set of label values, in the order of the labels' names.
    pub(super) fn durations<'l, 'd, L: AsRef<[&'l str]>>(
        &mut self,
        definition: &Definition,
        samples: impl IntoIterator<Item = (L, &'d Durations)>,
    ) -> fmt::Result {
        let unit = definition.unit();
        let (help, kind) = (format!("{}.", definition.help), definition.metric_type());
        let mut family = self.0.encode_descriptor(definition.name, &help, unit.as_ref(), kind)?;
        for (values, durations) in samples {
            let names = definition.labels.iter().copied();
            let labels: Vec<(&str, &str)> = names.zip(values.as_ref().iter().copied()).collect();
            let read = durations.read();
            let write = |metric: &mut MetricEncoder<'_>| {
                metric.encode_histogram::<NoLabelSet>(read.sum, read.count, &read.buckets, None)
            };
            match labels.is_empty() {
                true => write(&mut family)?,
                false => write(&mut family.encode_family(&labels)?)?,
            }
        }
        Ok(())
    }

    /// A metric whose value the library keeps.
    pub(super) fn kept(
        &mut self,
        definition: &Definition,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        let unit = definition.unit();
        let (help, kind) = (format!("{}.", definition.help), definition.metric_type());
        metric.encode(self.0.encode_descriptor(definition.name, &help, unit.as_ref(), kind)?)
    }
}

fn number(encoder: &mut MetricEncoder<'_>, definition: &Definition, value: Value) -> fmt::Result {
    match (definition.kind, value) {
        (Kind::Counter, Value::Count(count)) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&count, None)
        }
        (_, Value::Count(count)) => encoder.encode_gauge(&count),
        (_, Value::Level(level)) => encoder.encode_gauge(&level),
        (_, Value::Info) => Ok(()),
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Count(is.into())
    }
}

impl From<f64> for Value {
    fn from(level: f64) -> Self {
        Self::Level(level)
    }
}
