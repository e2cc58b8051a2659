//! What this balancer shows the others of itself, in `alive/<name>`.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use lb_base::conditions::{ConditionReason, Conditions, Subject, differ_in_figures_alone};
use lb_fleet::{
    Document,
    documents::Liveness,
    reader::{Connection, Snapshot},
};
use lb_model::Name;
use lb_sharing::{Parts, ReportedCapacity};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    Member,
    follower::{InForce, REMOVED, RefusedGeneration},
    questions::own_digests,
    silent_peers::SilentPeers,
    table_comparison,
    unowned::Unowned,
    versions,
};

/// How often it is looked at. It is written to etcd only when something changed.
const INTERVAL: Duration = Duration::from_secs(1);

/// Most conditions that are shown.
const MOST_CONDITIONS: usize = 20;

/// How often conditions are shown, so that one that comes and goes does not write to etcd all the time, and how often
/// tables are digested although nothing changed.
const SELDOM: Duration = Duration::from_secs(10);

/// How long what another balancer says is in doubt after etcd went back: a backup has what it said then, until it writes again.
pub(super) const WORD_IN_DOUBT: Duration = Duration::from_secs(10);

/// Longest wait of a balancer that joins for portions of capacities. If demand takes all of a capacity, the others give it
/// none before it is offered connections itself.
const FIRST_PORTIONS: Duration = Duration::from_secs(10);

/// Shows whether this balancer is ready, what is wrong with it, and the digest of its tables.
pub(super) async fn report(
    member: Arc<Member>,
    conditions: Conditions,
    liveness: watch::Sender<Arc<Document<Liveness>>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut in_force = member.watch_in_force();
    let (mut digested, mut digest) = (None, String::new());
    let (mut last_texts, mut texts_at) = (BTreeSet::new(), None);
    let (mut unowned, mut silent) = (Unowned::default(), SilentPeers::default());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            changed = in_force.changed() => if changed.is_err() { return },
        }
        unowned.look(&member);
        silent.look(&member);
        let not_ready = member.not_ready();
        let now = member.in_force();
        let state = (now.revision, now.generation);
        let is_due = |at: Option<Instant>| at.is_none_or(|at| at.elapsed() >= SELDOM);
        if digested.is_none_or(|(of, at): (_, Instant)| of != state || at.elapsed() >= SELDOM)
            && let Ok(new) = own_digests(member.commands()).await
        {
            (digested, digest) = (Some((state, Instant::now())), table_comparison::digest(&new));
        }
        if is_due(texts_at) {
            // What the settings ask for is no problem that the others should report.
            let texts = conditions.now().into_iter();
            let texts = texts.filter(|it| it.reason != ConditionReason::FleetInsecure);
            let texts = texts.map(|it| shown_condition(&it.subject, &it.cause));
            last_texts = texts.take(MOST_CONDITIONS).collect();
            texts_at = Some(Instant::now());
        }
        liveness.send_if_modified(|shown| {
            let mut body = shown.body.clone();
            (body.ready, body.conditions) = (not_ready.is_none(), last_texts.clone());
            body.not_ready = not_ready.unwrap_or_default();
            body.digest.clone_from(&digest);
            body.statement = member.sharing().status().borrow().statement.clone();
            // Figures alone are shown with whatever else changes.
            let with_old_texts =
                Liveness { conditions: shown.body.conditions.clone(), ..body.clone() };
            let is_new = with_old_texts != shown.body
                || has_other_conditions(&body.conditions, &shown.body.conditions);
            if is_new {
                *shown = Arc::new(shown.replaced_by(body));
            }
            is_new
        });
    }
}

/// A condition as others see it.
fn shown_condition(subject: &str, cause: &str) -> String {
    format!("{subject}: {cause}")
}

/// Whether a balancer shows a condition about a subject.
pub(super) fn shows(liveness: &Liveness, subject: &Subject) -> bool {
    let beginning = shown_condition(subject.text(), "");
    liveness.conditions.iter().any(|text| text.starts_with(&beginning))
}

/// Whether conditions differ in more than figures.
fn has_other_conditions(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let has = |all: &BTreeSet<String>, text| all.iter().any(|it| differ_in_figures_alone(it, text));
    one.len() != other.len() || !one.iter().all(|text| has(other, text))
}

impl Member {
    /// Why this balancer should not take traffic; `None`: it may. Once it was ready it stays so, unless others follow what it
    /// must not: else what it cannot follow later is a condition, and what it has in force serves as before.
    pub fn not_ready(&self) -> Option<String> {
        if let Some(cause) = self.left_behind() {
            return Some(cause);
        }
        if self.has_been_ready().load(Ordering::Relaxed) {
            return None;
        }
        let cause = self.missing();
        if cause.is_none() {
            self.has_been_ready().store(true, Ordering::Relaxed);
        }
        cause
    }

    /// A conflict with etcd while another balancer follows it: what is in force here is the fleet's no more. If none does,
    /// all serve what they have.
    fn left_behind(&self) -> Option<String> {
        let InForce { conflict, conflict_since, .. } = self.in_force();
        let conflict = conflict?;
        let is_in_doubt = conflict_since.is_some_and(|since| since.elapsed() < WORD_IN_DOUBT);
        if is_in_doubt && self.has_been_ready().load(Ordering::Relaxed) {
            return None;
        }
        let name = self.follower_elsewhere(&*self.view().snapshot?)?;
        Some(format!("balancer {name} follows etcd, and this one does not: {conflict}"))
    }

    /// Another balancer that is alive and follows what etcd has.
    pub(super) fn follower_elsewhere(&self, snapshot: &Snapshot) -> Option<Name> {
        let follows = |liveness: &Liveness| {
            // One that has not seen yet that etcd was replaced or went back says what it followed before.
            liveness.follows == snapshot.cluster && liveness.revision <= snapshot.revision
        };
        let mut others = snapshot.alive.iter().filter(|(name, _)| *name != self.name());
        others.find(|(_, it)| follows(&it.document.body)).map(|(name, _)| name.clone())
    }

    fn missing(&self) -> Option<String> {
        let in_force = self.in_force();
        if let Some(RefusedGeneration { generation, cause, .. }) = in_force.refused {
            return Some(format!(
                "generation {generation} of the fleet is not in force here: {cause}"
            ));
        }
        let view = self.view();
        let snapshot = view.snapshot.as_ref();
        if self.is_removed() {
            return Some(REMOVED.into());
        }
        if let Some(cause) = snapshot.and_then(|snapshot| versions::newer_value(snapshot)) {
            return Some(format!("something of the fleet is not in force here: {cause}"));
        }
        let current = snapshot.and_then(|snapshot| snapshot.configuration.as_ref());
        let current = current.map(|it| it.committed.document.body.number);
        if let Some(current) = current.filter(|it| *it > in_force.generation)
            && in_force.conflict.is_none()
        {
            return Some(format!("generation {current} of the fleet is not in force here yet"));
        }
        if view.connection == Connection::Connecting {
            return Some("etcd has not answered yet".into());
        }
        if in_force.generation == 0 {
            return Some("no configuration of the fleet is in force here yet".into());
        }
        let status = self.sharing().status();
        let sharing = status.borrow();
        if sharing.enforced_generation < in_force.generation || sharing.is_waiting_for_peers {
            return Some("its portions of the capacities are not known yet".into());
        }
        if sharing.store_is_old {
            return Some("its ledger is an old copy: the others have to forget it first".into());
        }
        if sharing.is_overtaken {
            return Some(
                "the others own its portions of the capacities: they have forgotten it".into(),
            );
        }
        drop(sharing);
        if self.has_no_portion() && snapshot.is_some_and(|it| self.exchanges_with_nobody(it)) {
            return Some(format!(
                "it has no portions of capacities, because no other balancer exchanges messages with it: they have to \
                 reach it at {}, and it them",
                self.settings().address
            ));
        }
        if self.started().elapsed() < FIRST_PORTIONS && self.lacks_a_portion() {
            return Some(
                "the other balancers have not given it portions of all capacities yet".into(),
            );
        }
        None
    }

    /// Whether others are alive, and none of them is heard and hears this balancer.
    fn exchanges_with_nobody(&self, snapshot: &Snapshot) -> bool {
        let status = self.sharing().status();
        let status = status.borrow();
        let mut others = snapshot.alive.keys().filter(|name| *name != self.name()).peekable();
        let exchanges = |name: &Name| {
            let peer = status.peers.get(name);
            peer.is_some_and(|it| it.hears_this && it.is_heard())
        };
        others.peek().is_some() && !others.any(exchanges)
    }

    /// Whether it owns nothing of any group.
    fn has_no_portion(&self) -> bool {
        let status = self.sharing().status();
        let status = status.borrow();
        status.groups.values().all(|share| share.enforced == Parts::NONE)
    }

    /// Whether it would refuse every connection to a group that others may send to.
    fn lacks_a_portion(&self) -> bool {
        let status = self.sharing().status();
        let status = status.borrow();
        let reports = status.peers.values().flat_map(|peer| peer.groups.iter());
        let mut limited = reports.filter(|(_, report)| {
            matches!(report.capacity, ReportedCapacity::PerSecond(_)) && report.owned > Parts::NONE
        });
        let has_none =
            |group| status.groups.get(group).is_some_and(|share| share.enforced == Parts::NONE);
        limited.any(|(group, _)| has_none(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_of_another_balancer_is_known_by_its_subject() {
        let subject = Subject::new(ConditionReason::Store, "ledger of the fleet");
        let shows_it = |text: String| {
            shows(&Liveness { conditions: [text].into(), ..Default::default() }, &subject)
        };
        assert!(shows_it(shown_condition("ledger of the fleet", "the disk does not answer")));
        assert!(!shows_it(shown_condition("store", "the disk does not answer")));
        assert!(!shows(&Liveness::default(), &subject));
    }
}
