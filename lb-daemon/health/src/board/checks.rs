//! Which checks fail, by the names that pools have for them.

use super::{Board, Judgement, ProbeEntry};
use crate::{Check, Probed};

impl Board {
    /// The checks that a probe is part of, and whether each fails: one through the tunnel has a probe for
    /// each VIP.
    pub(crate) fn checks_of<'b>(
        &'b self,
        probed: &'b Probed,
    ) -> impl Iterator<Item = (Check, bool)> + 'b {
        self.known_as(probed).map(|check| {
            let (pool, address, name) = &check;
            let target = self.targets.get(&(pool.clone(), *address));
            let mut parts = target.into_iter().flat_map(|target| &target.checks);
            let fails = parts.any(|(of, by)| of == name && self.probes.get(by).is_some_and(fails));
            (check, fails)
        })
    }

    /// The checks that a probe is part of.
    fn known_as<'b>(&'b self, probed: &'b Probed) -> impl Iterator<Item = Check> + 'b {
        let judges = self.probes.get(probed).into_iter().flat_map(|probe| &probe.judges);
        judges.flat_map(move |key| {
            let checks = self.targets.get(key).into_iter().flat_map(|target| &target.checks);
            let is_it = checks.filter(move |(_, by)| **by == *probed);
            is_it.map(move |(name, _)| (key.0.clone(), key.1, name.clone()))
        })
    }

    /// All that fail.
    pub(crate) fn failing(&self) -> impl Iterator<Item = Check> + '_ {
        let failing = self.probes.iter().filter(|(_, probe)| fails(probe));
        failing.flat_map(|(probed, _)| self.known_as(probed))
    }
}

fn fails(probe: &ProbeEntry) -> bool {
    probe.says.as_ref().is_some_and(Judgement::fails)
}
