//! Who is judged by which probe, and what was told of whom.

mod checks;

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use super::{Health, HealthChange, Probed, Said, Target};
use crate::model::Name;

/// A target: pool and address.
type TargetKey = (Name, IpAddr);

/// What a probe says, and why if it does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) health: Health,
    pub(super) why: String,
    /// Whether nothing comes of the host, where `health` is not about that.
    pub(super) silent: bool,
    /// What the backend said of itself, as far as it stands.
    pub(super) said: Said,
}

impl Judgement {
    fn is_silent(&self) -> bool {
        self.silent || self.health == Health::Silent
    }
}

/// Probes, targets, and the edges between them. Does no work of its own.
#[derive(Debug, Default)]
pub(super) struct Board {
    probes: HashMap<Arc<Probed>, ProbeEntry>,
    targets: HashMap<TargetKey, TargetEntry>,
}

#[derive(Debug, Default)]
struct ProbeEntry {
    says: Option<Judgement>,
    judges: Vec<TargetKey>,
}

#[derive(Debug)]
struct TargetEntry {
    checks: Vec<(Name, Arc<Probed>)>,
    /// What was told since the last configuration.
    told: Option<Verdict>,
    /// Whether anything was ever told.
    known: bool,
}

/// What the checks of a target say together, why, and what it says of itself.
type Verdict = (Health, String, Said);

/// What follows from a new configuration.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Probes to start.
    pub(super) start: Vec<Arc<Probed>>,
    /// Probes that nobody names any more.
    pub(super) stop: Vec<Arc<Probed>>,
    /// What running probes say of all targets that use them.
    pub(super) changes: Vec<HealthChange>,
}

impl Board {
    /// Takes a new set of targets. Probes that stay keep what they said, and it is told again: a
    /// target that went and came back between two sets looks as if it had stayed, but whoever
    /// listens has forgotten it.
    pub(super) fn configure(&mut self, targets: &[Target]) -> Configured {
        let mut configured = Configured::default();
        self.probes.values_mut().for_each(|probe| probe.judges.clear());
        let mut former = std::mem::take(&mut self.targets);
        for target in targets {
            let key = (target.pool.clone(), target.address);
            let checks = target
                .checks
                .iter()
                .flat_map(|(name, check)| {
                    let probes = target.probes(check).into_iter();
                    probes.map(move |probed| (name.clone(), probed))
                })
                .map(|(name, probed)| (name, self.judged_by(probed, &key, &mut configured.start)))
                .collect();
            let known = former.remove(&key).is_some_and(|entry| entry.known);
            self.targets.insert(key, TargetEntry { checks, told: None, known });
        }
        let unused = self.probes.extract_if(|_, probe| probe.judges.is_empty());
        configured.stop.extend(unused.map(|(probed, _)| probed));
        for target in targets {
            configured.changes.extend(self.news(&(target.pool.clone(), target.address)));
        }
        configured
    }

    /// Takes what a probe says from now on, and tells what that changes.
    pub(super) fn record(&mut self, probed: &Probed, says: Judgement) -> Vec<HealthChange> {
        let Some(probe) = self.probes.get_mut(probed) else { return Vec::new() };
        probe.says = Some(says);
        let judges = probe.judges.clone();
        judges.iter().filter_map(|key| self.news(key)).collect()
    }

    /// Notes that `probed` judges `key`; it is one to start if it is new.
    fn judged_by(
        &mut self,
        probed: Probed,
        key: &TargetKey,
        start: &mut Vec<Arc<Probed>>,
    ) -> Arc<Probed> {
        match self.probes.entry(Arc::new(probed)) {
            Entry::Occupied(mut known) => {
                known.get_mut().judges.push(key.clone());
                known.key().clone()
            }
            Entry::Vacant(new) => {
                let probed = new.key().clone();
                start.push(probed.clone());
                new.insert(ProbeEntry { says: None, judges: vec![key.clone()] });
                probed
            }
        }
    }

    /// The change to tell of a target, if there is one.
    fn news(&mut self, key: &TargetKey) -> Option<HealthChange> {
        let target = self.targets.get_mut(key)?;
        let verdict = verdict(&target.checks, &self.probes)?;
        if target.told.as_ref() == Some(&verdict) {
            return None;
        }
        let (health, reason, said) = target.told.insert(verdict).clone();
        let first = !std::mem::replace(&mut target.known, true);
        let (pool, address) = key.clone();
        Some(HealthChange { pool, address, health, reason, first, said })
    }
}

/// One failing check decides, the first in the order given; for health every check must have spoken,
/// and for silence every one must say so: one that does not is proof of the host's life.
fn verdict(
    checks: &[(Name, Arc<Probed>)],
    probes: &HashMap<Arc<Probed>, ProbeEntry>,
) -> Option<Verdict> {
    let says = |probed| probes.get(probed).and_then(|probe: &ProbeEntry| probe.says.as_ref());
    let mut said = Said::default();
    for (name, judgement) in checks.iter().filter_map(|(name, probed)| Some((name, says(probed)?)))
    {
        said.join(name.as_str(), &judgement.said);
    }
    let failing = checks.iter().find_map(|(name, probed)| {
        let says = says(probed).filter(|says| says.health != Health::Passing)?;
        Some(match probed.through {
            None => format!("check {name}: {}", says.why),
            Some(through) => format!("check {name} of {}: {}", through.vip, says.why),
        })
    });
    if let Some(reason) = failing {
        let silent =
            checks.iter().all(|(_, probed)| says(probed).is_some_and(Judgement::is_silent));
        return Some((if silent { Health::Silent } else { Health::Failing }, reason, said));
    }
    let reason = if checks.is_empty() { "no checks" } else { "all checks pass" };
    let spoken = checks.iter().all(|(_, probed)| says(probed).is_some());
    spoken.then(|| (Health::Passing, reason.to_owned(), said))
}

#[cfg(test)]
mod tests;
