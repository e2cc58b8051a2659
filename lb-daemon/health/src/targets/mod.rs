//! Who is judged by which probe, and what was told of whom.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use super::{Check, Health, HealthChange, Probed, Row, Said, Target};
use lb_model::Name;

/// A target: pool and address.
type TargetKey = (Name, IpAddr);

/// What a probe says, and why if it does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) health: Health,
    /// The row of failures that has begun and decides nothing yet, as nothing was decided before it.
    pub(super) undecided: Option<Row>,
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

    fn fails(&self) -> bool {
        self.health != Health::Passing && self.undecided.is_none()
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
    /// Whether it waits for its first result.
    urgent: bool,
}

/// What the checks of a target say together, and what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    health: Health,
    undecided: Option<Row>,
    reason: String,
    said: Said,
}

/// What follows from a new configuration.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Probes to start.
    pub(super) start: Vec<Start>,
    /// Probes that nobody names any more.
    pub(super) stop: Vec<Arc<Probed>>,
}

/// A probe to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) probed: Arc<Probed>,
    /// The probe that asked the same until now, though at other times or with another rise and fall.
    pub(super) after: Option<Arc<Probed>>,
    /// Whether a target of it waits for its first result.
    pub(super) urgent: bool,
}

impl Board {
    /// Takes a new set of targets. Probes that stay keep what they said.
    pub(super) fn configure(&mut self, targets: &[Target]) -> Configured {
        let mut configured = Configured::default();
        self.probes.values_mut().for_each(|probe| probe.judges.clear());
        let former = std::mem::take(&mut self.targets);
        let mut fresh = Vec::new();
        for target in targets {
            let key = (target.pool.clone(), target.address);
            let checks = target
                .checks
                .iter()
                .flat_map(|(name, check)| {
                    let probes = target.probes(check).into_iter();
                    probes.map(move |probed| (name.clone(), probed))
                })
                .map(|(name, probed)| (name, self.judged_by(probed, &key, &mut fresh)))
                .collect();
            let known = former.get(&key).is_some_and(|entry| entry.known);
            let urgent = target.urgent;
            self.targets.insert(key, TargetEntry { checks, told: None, known, urgent });
        }
        configured.start = fresh.into_iter().map(|probed| self.start_of(probed, &former)).collect();
        let unused = self.probes.extract_if(|_, probe| probe.judges.is_empty());
        configured.stop.extend(unused.map(|(probed, _)| probed));
        configured
    }

    /// Takes what is known already of a probe that starts.
    pub(super) fn carry_over(&mut self, probed: &Probed, says: Judgement) {
        if let Some(probe) = self.probes.get_mut(probed) {
            probe.says = Some(says);
        }
    }

    /// After a new set of targets: tells again what the probes say of each. A target that went and came
    /// back between two sets looks as if it had stayed, but whoever listens has forgotten it.
    pub(super) fn tell_again(&mut self, targets: &[Target]) -> Vec<HealthChange> {
        let keys = targets.iter().map(|target| (target.pool.clone(), target.address));
        keys.filter_map(|key| self.news(&key)).collect()
    }

    /// How a new probe starts: after the one that asked the same for one of its targets, best under the
    /// same name.
    fn start_of(&self, probed: Arc<Probed>, former: &HashMap<TargetKey, TargetEntry>) -> Start {
        let judges = self.probes.get(&probed).map_or(&[][..], |probe| &probe.judges);
        let after = judges.iter().find_map(|key| {
            let now = &self.targets.get(key)?.checks;
            let before = &former.get(key)?.checks;
            let mut same = before.iter().filter(|(_, other)| other.asks_the_same(&probed));
            let has_name = |(name, _): &&(Name, Arc<Probed>)| {
                now.iter().any(|(other, by)| other == name && *by == probed)
            };
            let (_, after) = same.clone().find(has_name).or_else(|| same.next())?;
            Some(after.clone())
        });
        let waits = |key| self.targets.get(key).is_some_and(|target| target.urgent);
        let urgent = after.is_none() && judges.iter().any(waits);
        Start { probed, after, urgent }
    }

    /// Takes what a probe says from now on, and tells what that changes.
    pub(super) fn record(&mut self, probed: &Probed, says: Judgement) -> Vec<HealthChange> {
        let Some(probe) = self.probes.get_mut(probed) else { return Vec::new() };
        probe.says = Some(says);
        let judges = probe.judges.clone();
        judges.iter().filter_map(|key| self.news(key)).collect()
    }

    /// The checks that a probe is part of, and whether each fails: one through the tunnel has a probe for
    /// each VIP.
    pub(super) fn checks_of<'b>(
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
    pub(super) fn failing(&self) -> impl Iterator<Item = Check> + '_ {
        let failing = self.probes.iter().filter(|(_, probe)| fails(probe));
        failing.flat_map(|(probed, _)| self.known_as(probed))
    }

    /// Notes that `probed` judges `key`, and whether it is `fresh`.
    fn judged_by(
        &mut self,
        probed: Probed,
        key: &TargetKey,
        fresh: &mut Vec<Arc<Probed>>,
    ) -> Arc<Probed> {
        match self.probes.entry(Arc::new(probed)) {
            Entry::Occupied(mut known) => {
                known.get_mut().judges.push(key.clone());
                known.key().clone()
            }
            Entry::Vacant(new) => {
                let probed = new.key().clone();
                fresh.push(probed.clone());
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
        let Verdict { health, undecided, reason, said } = target.told.insert(verdict).clone();
        let first = !std::mem::replace(&mut target.known, true);
        let (pool, address) = key.clone();
        Some(HealthChange { pool, address, health, undecided, reason, first, said })
    }
}

/// One failing check decides, the first in the order given, and before those whose row of failures has
/// only begun; for health every check must have spoken, and for silence every one must say so: one that
/// does not is proof of the host's life.
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
    let first = |is: fn(&Judgement) -> bool| {
        checks.iter().find_map(|(name, probed)| {
            let says = says(probed).filter(|says| is(says))?;
            let reason = match probed.through {
                None => format!("check {name}: {}", says.why),
                Some(through) => format!("check {name} of {}: {}", through.vip, says.why),
            };
            Some((reason, says.undecided))
        })
    };
    if let Some((reason, undecided)) = first(Judgement::fails) {
        let silent =
            checks.iter().all(|(_, probed)| says(probed).is_some_and(Judgement::is_silent));
        let health = if silent { Health::Silent } else { Health::Failing };
        return Some(Verdict { health, undecided, reason, said });
    }
    if let Some((reason, undecided)) = first(|says| says.undecided.is_some()) {
        return Some(Verdict { health: Health::Failing, undecided, reason, said });
    }
    let reason = if checks.is_empty() { "no checks" } else { "all checks pass" }.to_owned();
    let spoken = checks.iter().all(|(_, probed)| says(probed).is_some());
    spoken.then_some(Verdict { health: Health::Passing, undecided: None, reason, said })
}

fn fails(probe: &ProbeEntry) -> bool {
    probe.says.as_ref().is_some_and(Judgement::fails)
}

#[cfg(test)]
mod tests;
