//! Changes of overrides at a member.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_base::conditions::{ConditionReason, Subject};
use lb_config::Reason;
use lb_control::command::{
    Actor, FleetRefusal, OverrideChange, OverridesChanged, Refusal, Stopping,
};
use lb_fleet::{
    Document, Fleet,
    documents::{SharedOverride, WallTime},
    overrides::{MAX_CHANGES, OverrideChange as SharedChange, OverrideError, deletion, expired},
    reader::Snapshot,
};
use lb_model::overrides::{End, Key, Override, Overrides, Scope};
use tokio::time::{sleep, timeout};

use super::{Member, wall_clock};

/// How often a change is tried that another one overtakes. Each replaces what it finds.
const TRIES: usize = 5;

/// Longest wait until a change is in force at this balancer.
const IN_FORCE: Duration = Duration::from_secs(10);

/// Longest wait for a configuration that is on its way. One that waits for the disk does not hold a drain up.
const CONFIGURATION: Duration = Duration::from_secs(2);

/// How often overrides whose time is over are looked for. Each balancer does; only one succeeds.
const EXPIRE: Duration = Duration::from_secs(1);

/// Subject of the condition that nothing may end by this balancer's clock.
pub(super) const FLEET_CLOCK: Subject = Subject::new(ConditionReason::Overrides, "fleet clock");

impl Member {
    /// Changes overrides of the fleet, and returns once this balancer has them in force. They replace local ones of this
    /// balancer. A removal may name local ones too.
    ///
    /// # Errors
    /// The daemon is stopping; it is not known whether the change was made.
    pub(super) async fn change_overrides(
        &self,
        change: OverrideChange,
        by: (Actor, Reason),
    ) -> Result<Result<OverridesChanged, Refusal>, Stopping> {
        let (change, local) = match change {
            OverrideChange::Remove(keys) => {
                let (local, shared) = keys.into_iter().partition(Key::is_local);
                (OverrideChange::Remove(shared), local)
            }
            change => (change, Vec::new()),
        };
        let is_set = matches!(change, OverrideChange::Set { .. });
        let mut changed = match self.change_shared(change, by.clone()).await? {
            Ok(changed) => changed,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let replaced =
            || changed.overrides.iter().map(|(key, _)| key.clone().with_scope(Scope::Local));
        let local: Vec<Key> = if is_set { replaced().collect() } else { local };
        let in_force = self.commands().overrides().await?.overrides;
        if local.iter().all(|key| in_force.get(key).is_none()) {
            return Ok(Ok(changed));
        }
        let removal = OverrideChange::Remove(local);
        let removed = match self.commands().change_overrides(removal, false, by).await? {
            Ok(removed) => removed,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let OverridesChanged { revision, overrides, unstored, warnings } = removed;
        (changed.revision, changed.unstored) = (revision, unstored);
        if !is_set {
            changed.overrides.extend(overrides);
            changed.warnings.extend(warnings);
        }
        Ok(Ok(changed))
    }

    async fn change_shared(
        &self,
        change: OverrideChange,
        (actor, reason): (Actor, Reason),
    ) -> Result<Result<OverridesChanged, Refusal>, Stopping> {
        let is_removal = matches!(change, OverrideChange::Remove(_));
        // The overrides of etcd have to be in force first: a removal is of what is there.
        if let Err(refusal) = self.base_in_force().await {
            return Ok(Err(refusal.into()));
        }
        // The same checks and warnings as at an independent balancer.
        let planned = self.commands().change_overrides(change, true, (actor, reason)).await?;
        let mut planned = match planned {
            Ok(planned) => planned,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let has_end = planned.overrides.iter().any(|(_, it)| it.until.is_some());
        if let Some(problem) = self.clock_problem().filter(|_| has_end && !is_removal) {
            return Ok(Err(FleetRefusal::Unavailable(problem).into()));
        }
        if !is_removal {
            // As the fleet's history says it: a uid is that of one host.
            let at = self.name();
            planned.overrides.iter_mut().for_each(|(_, it)| it.who = format!("{} at {at}", it.who));
        }
        // In batches that etcd takes; each is in force as a whole or not at all.
        let (mut done, all) = (0, planned.overrides.len());
        for batch in planned.overrides.chunks(MAX_CHANGES) {
            if let Err(refusal) = self.commit_overrides(batch, is_removal).await {
                return Ok(Err(partly(refusal, done, all).into()));
            }
            done += batch.len();
        }
        let revision = self.commands().overrides().await?.overrides.revision();
        Ok(Ok(OverridesChanged { revision, ..planned }))
    }

    async fn commit_overrides(
        &self,
        overrides: &[(Key, Override)],
        is_removal: bool,
    ) -> Result<(), FleetRefusal> {
        for _ in 0..TRIES {
            let (fleet, snapshot) = self.base_of_overrides()?;
            let change = |(key, it): &(Key, Override)| shared(&snapshot, key, it, is_removal);
            let changes: Vec<_> = overrides.iter().filter_map(change).collect();
            if changes.is_empty() {
                return Ok(());
            }
            match fleet.change_overrides(&changes).await {
                Ok(revision) => return self.wait_for_revision(revision).await,
                // The view may be a moment old.
                Err(OverrideError::Conflict) => sleep(Duration::from_millis(100)).await,
                Err(OverrideError::Unknown(error)) => {
                    let error = error.with_servers(&self.settings().endpoints);
                    return Err(FleetRefusal::UnknownOverrides(format!(
                        "it is unknown whether the overrides were changed: {error}"
                    )));
                }
                Err(OverrideError::Etcd(error)) => {
                    let error = error.with_servers(&self.settings().endpoints);
                    return Err(FleetRefusal::Unavailable(error.to_string()));
                }
                Err(error) => return Err(FleetRefusal::Invalid(error.to_string())),
            }
        }
        Err(FleetRefusal::Unavailable("others change the same overrides all the time".into()))
    }

    /// Waits until the overrides that etcd has are in force here, and a moment for its configuration, which may have a target
    /// that is new.
    async fn base_in_force(&self) -> Result<(), FleetRefusal> {
        let (_, snapshot) = self.base_of_overrides()?;
        let current = snapshot.configuration.as_ref().map(|it| it.committed.document.body.number);
        let _ = timeout(CONFIGURATION, self.wait_for(current.unwrap_or_default())).await;
        self.wait_for_revision(snapshot.revision).await
    }

    /// The state of etcd on which overrides can be changed, also while its configuration waits for the disk here.
    fn base_of_overrides(&self) -> Result<(Fleet, Arc<Snapshot>), FleetRefusal> {
        let (fleet, snapshot) = self.followed_base()?;
        self.check_newer(&snapshot)?;
        Ok((fleet, snapshot))
    }

    /// Makes these overrides those of the fleet, and no others; local ones stay local.
    pub(super) async fn replace_overrides(
        &self,
        fleet: &Fleet,
        snapshot: &Snapshot,
        overrides: &Overrides,
    ) -> Result<(), FleetRefusal> {
        let wanted: BTreeMap<&Key, &Override> =
            overrides.iter().filter(|(key, _)| !key.is_local()).collect();
        let puts = wanted.iter().filter_map(|(key, it)| shared(snapshot, key, it, false));
        let others = snapshot.overrides.iter().filter(|(key, _)| !wanted.contains_key(key));
        let removals = others.filter_map(|(key, _)| deletion(snapshot, key));
        let changes: Vec<_> = puts.chain(removals).collect();
        for batch in changes.chunks(MAX_CHANGES) {
            let changed = fleet.change_overrides(batch).await;
            changed.map_err(|error| FleetRefusal::Unavailable(error.to_string()))?;
        }
        Ok(())
    }

    /// Waits until the overrides of a revision, or later ones, are in force here.
    async fn wait_for_revision(&self, revision: i64) -> Result<(), FleetRefusal> {
        let mut in_force = self.watch_in_force();
        match timeout(IN_FORCE, in_force.wait_for(|it| it.overrides_revision >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(FleetRefusal::UnknownOverrides("the daemon is stopping".into())),
            Err(_) => {
                let generation = self.in_force().generation;
                let cause = format!("the overrides take longer than {} s", IN_FORCE.as_secs());
                Err(FleetRefusal::Behind { generation, cause })
            }
        }
    }

    /// Deletes overrides whose time is over, and those whose target has been gone for an hour. Without etcd they stay, and
    /// where the clock cannot be believed.
    pub(super) async fn expire_overrides(self: Arc<Self>) {
        loop {
            sleep(EXPIRE).await;
            if let Some(problem) = self.clock_problem() {
                self.conditions().begin(&FLEET_CLOCK, &problem);
                continue;
            }
            self.conditions().end(&FLEET_CLOCK);
            let Some(snapshot) = self.etcd().view.borrow().snapshot.clone() else { continue };
            // A clock that is ahead at boot would end all that have a time.
            if !self.has_compared_clock(&snapshot) {
                continue;
            }
            let over = expired(&snapshot, wall_clock::now());
            let Ok(gone) = self.gone_overrides(&snapshot).await else { return };
            let Some(fleet) = self.etcd().fleet.borrow().clone() else { continue };
            if (over.is_empty() && gone.is_none()) || self.check_lineage(&snapshot).is_err() {
                continue;
            }
            if !over.is_empty()
                && let Ok(revision) = fleet.change_overrides(&over).await
            {
                self.end_overrides((&over, &snapshot), revision, End::Expired).await;
            }
            if let Some((generation, gone)) = gone
                && let Ok(revision) = fleet.change_overrides_in(Some(generation), &gone).await
            {
                self.end_overrides((&gone, &snapshot), revision, End::Gone).await;
            }
        }
    }

    /// The deletions of overrides whose target has been gone for an hour, and the revision of the generation in etcd without
    /// them. `None`: there are none, or this balancer has another generation in force, which may lack targets that are new.
    async fn gone_overrides(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Option<(i64, Vec<SharedChange>)>, Stopping> {
        let in_force = self.commands().overrides().await?;
        let Some(current) = &snapshot.configuration else { return Ok(None) };
        let current = &current.committed;
        let number = current.document.body.number;
        let is_in_force = in_force.observed == Some(number) && self.in_force().generation == number;
        if snapshot.configuration_error.is_some() || !is_in_force {
            return Ok(None);
        }
        let gone = in_force.overrides.gone(wall_clock::moment());
        let gone: Vec<_> =
            gone.filter_map(|key| deletion(snapshot, key)).take(MAX_CHANGES).collect();
        Ok((!gone.is_empty()).then_some((current.mod_revision, gone)))
    }

    /// `before`: what etcd had.
    async fn end_overrides(
        &self,
        (ended, before): (&[SharedChange], &Snapshot),
        revision: i64,
        why: End,
    ) {
        for SharedChange { key, .. } in ended {
            let set_by = before.overrides.get(key).map(|it| it.document.body.author.as_str());
            self.override_ends().ended(key, set_by.unwrap_or_default(), why);
        }
        let _ = self.wait_for_revision(revision).await;
    }
}

/// What was done before the refusal stays.
fn partly(refusal: FleetRefusal, done: usize, all: usize) -> FleetRefusal {
    match done {
        0 => refusal,
        done => FleetRefusal::UnknownOverrides(format!(
            "{done} of {all} overrides were changed; then: {refusal}"
        )),
    }
}

/// `None`: there is nothing to change.
fn shared(snapshot: &Snapshot, key: &Key, it: &Override, is_removal: bool) -> Option<SharedChange> {
    let there = snapshot.overrides.get(key);
    if is_removal && there.is_none() {
        return None;
    }
    let body = SharedOverride {
        action: it.action,
        author: it.who.clone(),
        reason: it.reason.clone(),
        set_at: WallTime::from(it.set_at),
        until: it.until.map(|until| WallTime::from(until.wall)),
    };
    let document = there.map_or_else(
        || Document::from(body.clone()),
        |there| there.document.replaced_by(body.clone()),
    );
    Some(SharedChange {
        key: key.clone(),
        expected: there.map_or(0, |there| there.mod_revision),
        value: (!is_removal).then_some(document),
    })
}
