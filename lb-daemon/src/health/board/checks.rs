//! Which checks fail, by the names that pools have for them.

use super::{Board, ProbeEntry};
use crate::{
    health::{Health, Probed},
    metrics::Check,
};

impl Board {
    /// The checks that a probe is.
    pub(in crate::health) fn known_as<'b>(
        &'b self,
        probed: &'b Probed,
    ) -> impl Iterator<Item = Check> + 'b {
        let judges = self.probes.get(probed).into_iter().flat_map(|probe| &probe.judges);
        judges.flat_map(move |key| {
            let checks = self.targets.get(key).into_iter().flat_map(|target| &target.checks);
            let is_it = checks.filter(move |(_, by)| **by == *probed);
            is_it.map(move |(name, _)| (key.0.clone(), key.1, name.clone()))
        })
    }

    /// All that fail.
    pub(in crate::health) fn failing(&self) -> impl Iterator<Item = Check> + '_ {
        let fails = |probe: &ProbeEntry| {
            probe.says.as_ref().is_some_and(|says| says.health != Health::Passing)
        };
        let failing = self.probes.iter().filter(move |(_, probe)| fails(probe));
        failing.flat_map(|(probed, _)| self.known_as(probed))
    }
}
