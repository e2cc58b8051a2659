//! The registry of targets: which probes decide about each, and what was reported of it.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
    time::Instant,
};

use super::{AgentReport, Check, Health, HealthChange, ProbeKey, Row, Target};
use lb_model::{Name, StateCause, StateReason};

/// Pool and address.
type TargetKey = (Name, IpAddr);

/// What a probe says of the backend, and why if it does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) health: Health,
    /// The failures so far, if no state was decided before them and `fall` is not reached.
    pub(super) undecided: Option<Row>,
    pub(super) why: String,
    /// Whether the host gives no sign, if `health` does not say it already.
    pub(super) silent: bool,
    /// The backend's agent report.
    pub(super) report: AgentReport,
}

impl Judgement {
    fn is_silent(&self) -> bool {
        self.silent || self.health == Health::Silent
    }

    fn fails(&self) -> bool {
        self.health != Health::Passing && self.undecided.is_none()
    }
}

/// Probes, targets, and which probes belong to which targets. Does no I/O.
#[derive(Debug, Default)]
pub(super) struct TargetRegistry {
    probes: HashMap<Arc<ProbeKey>, ProbeEntry>,
    targets: HashMap<TargetKey, TargetEntry>,
}

#[derive(Debug, Default)]
struct ProbeEntry {
    judgement: Option<Judgement>,
    targets_of_probe: Vec<TargetKey>,
}

#[derive(Debug)]
struct TargetEntry {
    checks: Vec<(Name, Arc<ProbeKey>)>,
    /// The state reported since the last configuration.
    reported: Option<Verdict>,
    /// Whether anything was ever reported.
    known: bool,
    /// Whether it waits for its first result.
    urgent: bool,
    is_up: bool,
}

/// The state of a target: the combined result of its checks and its agent report.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    health: Health,
    undecided: Option<Row>,
    reason: StateReason,
    report: AgentReport,
}

/// The effect of a new configuration.
#[derive(Debug, Default)]
pub(super) struct ProbeChanges {
    pub(super) start: Vec<Start>,
    /// Probes that no target uses any more.
    pub(super) stop: Vec<Arc<ProbeKey>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) probed: Arc<ProbeKey>,
    /// The probe that asked the same question before, with other times or another rise and fall.
    pub(super) after: Option<Arc<ProbeKey>>,
    /// Whether one of its targets waits for its first result.
    pub(super) urgent: bool,
    /// Whether one of its targets takes all packets.
    pub(super) is_up: bool,
}

impl TargetRegistry {
    /// Replaces the set of targets. Probes that stay keep their judgements.
    pub(super) fn configure(&mut self, targets: &[Target]) -> ProbeChanges {
        let mut configured = ProbeChanges::default();
        self.probes.values_mut().for_each(|probe| probe.targets_of_probe.clear());
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
                .map(|(name, probed)| (name, self.link_probe(probed, &key, &mut fresh)))
                .collect();
            let known = former.get(&key).is_some_and(|entry| entry.known);
            let Target { urgent, is_up, .. } = *target;
            self.targets.insert(key, TargetEntry { checks, reported: None, known, urgent, is_up });
        }
        configured.start = fresh.into_iter().map(|probed| self.start_of(probed, &former)).collect();
        let unused = self.probes.extract_if(|_, probe| probe.targets_of_probe.is_empty());
        configured.stop.extend(unused.map(|(probed, _)| probed));
        configured
    }

    /// Sets the judgement that a new probe inherits.
    pub(super) fn carry_over(&mut self, probed: &ProbeKey, judgement: Judgement) {
        if let Some(probe) = self.probes.get_mut(probed) {
            probe.judgement = Some(judgement);
        }
    }

    /// Reports all targets again after a new set. A target that was removed and added between two sets looks
    /// unchanged here, but the receiver has dropped its state.
    pub(super) fn report_all(&mut self, targets: &[Target]) -> Vec<HealthChange> {
        let keys = targets.iter().map(|target| (target.pool.clone(), target.address));
        keys.filter_map(|key| self.take_change(&key)).collect()
    }

    /// How to start a new probe: if a probe asked the same question for one of its targets, the new one continues
    /// its results. One with the same check name is preferred.
    fn start_of(&self, probed: Arc<ProbeKey>, former: &HashMap<TargetKey, TargetEntry>) -> Start {
        let targets_of_probe =
            self.probes.get(&probed).map_or(&[][..], |probe| &probe.targets_of_probe);
        let after = targets_of_probe.iter().find_map(|key| {
            let now = &self.targets.get(key)?.checks;
            let before = &former.get(key)?.checks;
            let mut same = before.iter().filter(|(_, other)| other.asks_the_same(&probed));
            let has_name = |(name, _): &&(Name, Arc<ProbeKey>)| {
                now.iter().any(|(other, by)| other == name && *by == probed)
            };
            let (_, after) = same.clone().find(has_name).or_else(|| same.next())?;
            Some(after.clone())
        });
        let targets = || targets_of_probe.iter().filter_map(|key| self.targets.get(key));
        let urgent = after.is_none() && targets().any(|target| target.urgent);
        let is_up = targets().any(|target| target.is_up);
        Start { probed, after, urgent, is_up }
    }

    /// Records a probe's judgement, and returns the changes of targets.
    pub(super) fn record(&mut self, probed: &ProbeKey, judgement: Judgement) -> Vec<HealthChange> {
        let Some(probe) = self.probes.get_mut(probed) else { return Vec::new() };
        probe.judgement = Some(judgement);
        let targets_of_probe = probe.targets_of_probe.clone();
        targets_of_probe.iter().filter_map(|key| self.take_change(key)).collect()
    }

    /// The checks that use a probe, and whether each fails. A check through the tunnel has a probe for each VIP.
    pub(super) fn checks_of<'b>(
        &'b self,
        probed: &'b ProbeKey,
    ) -> impl Iterator<Item = (Check, bool)> + 'b {
        self.known_as(probed).map(|check| {
            let (pool, address, name) = &check;
            let target = self.targets.get(&(pool.clone(), *address));
            let mut parts = target.into_iter().flat_map(|target| &target.checks);
            let fails = parts.any(|(of, by)| of == name && self.probes.get(by).is_some_and(fails));
            (check, fails)
        })
    }

    /// The checks that use a probe.
    fn known_as<'b>(&'b self, probed: &'b ProbeKey) -> impl Iterator<Item = Check> + 'b {
        let targets_of_probe =
            self.probes.get(probed).into_iter().flat_map(|probe| &probe.targets_of_probe);
        targets_of_probe.flat_map(move |key| {
            let checks = self.targets.get(key).into_iter().flat_map(|target| &target.checks);
            let is_it = checks.filter(move |(_, by)| **by == *probed);
            is_it.map(move |(name, _)| (key.0.clone(), key.1, name.clone()))
        })
    }

    /// All failing checks.
    pub(super) fn failing(&self) -> impl Iterator<Item = Check> + '_ {
        let failing = self.probes.iter().filter(|(_, probe)| fails(probe));
        failing.flat_map(|(probed, _)| self.known_as(probed))
    }

    /// Adds a target to a probe, which is put into `fresh` if it is new.
    fn link_probe(
        &mut self,
        probed: ProbeKey,
        key: &TargetKey,
        fresh: &mut Vec<Arc<ProbeKey>>,
    ) -> Arc<ProbeKey> {
        match self.probes.entry(Arc::new(probed)) {
            Entry::Occupied(mut known) => {
                known.get_mut().targets_of_probe.push(key.clone());
                known.key().clone()
            }
            Entry::Vacant(new) => {
                let probed = new.key().clone();
                fresh.push(probed.clone());
                new.insert(ProbeEntry { judgement: None, targets_of_probe: vec![key.clone()] });
                probed
            }
        }
    }

    /// The change of a target's state since it was reported, if there is one.
    fn take_change(&mut self, key: &TargetKey) -> Option<HealthChange> {
        let target = self.targets.get_mut(key)?;
        let verdict = verdict(&target.checks, &self.probes)?;
        if target.reported.as_ref() == Some(&verdict) {
            return None;
        }
        let Verdict { health, undecided, reason, report } = target.reported.insert(verdict).clone();
        let first = !std::mem::replace(&mut target.known, true);
        let (pool, address) = key.clone();
        let at = Instant::now();
        Some(HealthChange { pool, address, health, undecided, reason, first, report, at })
    }
}

/// The combined result of a target's checks. The first failing check decides, in the configured order, before
/// checks whose failures have not reached `fall`. A target is healthy only if every check has a result, and silent
/// only if every check is: a sign of the host for one check proves that the host is there.
fn verdict(
    checks: &[(Name, Arc<ProbeKey>)],
    probes: &HashMap<Arc<ProbeKey>, ProbeEntry>,
) -> Option<Verdict> {
    let judgement_of =
        |probed| probes.get(probed).and_then(|probe: &ProbeEntry| probe.judgement.as_ref());
    let mut report = AgentReport::default();
    for (name, judgement) in
        checks.iter().filter_map(|(name, probed)| Some((name, judgement_of(probed)?)))
    {
        report.join(name.as_str(), &judgement.report);
    }
    let first = |is: fn(&Judgement) -> bool| {
        checks.iter().find_map(|(name, probed)| {
            let judgement = judgement_of(probed).filter(|judgement| is(judgement))?;
            let reason = match probed.tunnel {
                None => format!("check {name}: {}", judgement.why),
                Some(tunnel) => format!("check {name} of {}: {}", tunnel.vip, judgement.why),
            };
            Some((StateReason::check_fails(name, reason), judgement.undecided))
        })
    };
    if let Some((reason, undecided)) = first(Judgement::fails) {
        let silent =
            checks.iter().all(|(_, probed)| judgement_of(probed).is_some_and(Judgement::is_silent));
        let health = if silent { Health::Silent } else { Health::Failing };
        return Some(Verdict { health, undecided, reason, report });
    }
    if let Some((reason, undecided)) = first(|judgement| judgement.undecided.is_some()) {
        return Some(Verdict { health: Health::Failing, undecided, reason, report });
    }
    let reason = match checks.is_empty() {
        true => StateReason::new(StateCause::NoChecks, "no checks"),
        false => StateReason::new(StateCause::ChecksPass, "all checks pass"),
    };
    let is_complete = checks.iter().all(|(_, probed)| judgement_of(probed).is_some());
    is_complete.then_some(Verdict { health: Health::Passing, undecided: None, reason, report })
}

fn fails(probe: &ProbeEntry) -> bool {
    probe.judgement.as_ref().is_some_and(Judgement::fails)
}

#[cfg(test)]
mod tests;
