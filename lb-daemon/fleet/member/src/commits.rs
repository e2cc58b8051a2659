//! Changes of the configuration at a member: committed to etcd, then waited for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use lb_base::error_chain;
use lb_control::command::{Applied, Apply, ChangeRecord, FleetRefusal, Refusal, Stopping};
use lb_fleet::{
    EtcdError, Fleet,
    commit::{Attempt, CommitError, Committed, Draft, Parts, Resolved},
    documents::FleetMember,
    reader::{Connection, Snapshot, Versioned, View},
};
use lb_model::{
    Configuration, Name,
    overrides::Overrides,
    own_addresses::{OwnAddress, OwnAddresses},
    remap::Settling,
};
use lb_store::SchemaNeed;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Member,
    follower::{InForce, REMOVED},
    versions, wall_clock,
};

/// Longest wait until a committed generation is in force at this balancer.
const IN_FORCE: Duration = Duration::from_secs(60);

/// How long an answer waits for what the other balancers have in force.
const OTHERS: Duration = Duration::from_millis(500);

/// How often a commit is tried while balancers join and leave.
const TRIES: usize = 5;

/// Longest wait for the members that a commit met.
const MEMBERS: Duration = Duration::from_secs(2);

/// How long it is tried to find out what became of a commit whose reply is lost.
const RESOLVE: Duration = Duration::from_secs(15);

impl Member {
    /// Commits a configuration, and returns once this balancer has it in force. `record` gets the outcome.
    ///
    /// # Errors
    /// The daemon is stopping; it is not known whether the change was made.
    pub(super) async fn apply(
        &self,
        apply: Apply,
        record: Option<Box<dyn ChangeRecord>>,
    ) -> Result<Result<Applied, Refusal>, Stopping> {
        if apply.dry_run {
            return self.plan(apply).await;
        }
        let before = self.in_force().generation;
        let result = self.commit(apply).await?;
        match (record, &result) {
            (Some(record), Ok(applied)) if applied.generation != before => {
                record.changed(before, applied, None);
            }
            (Some(record), result) => record.finished(result),
            (None, _) => {}
        }
        Ok(result)
    }

    /// What an apply would change.
    async fn plan(&self, apply: Apply) -> Result<Result<Applied, Refusal>, Stopping> {
        let next = self.in_force().generation + 1;
        let apply = Apply {
            dry_run: true,
            keep_hash_key: true,
            shared: Some(next),
            member_addresses: self.member_addresses(),
            ..apply
        };
        let planned = match self.commands().apply(apply, None).await? {
            Ok(planned) => planned,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let changed = planned.resolved.as_ref().filter(|_| !planned.changes.is_empty());
        let checked = changed.map_or(Ok(()), |configuration| self.check_versions(configuration));
        Ok(checked.map(|()| planned).map_err(Refusal::from))
    }

    /// Where the other members are reached.
    fn member_addresses(&self) -> OwnAddresses {
        let view = self.view();
        let members = view.snapshot.iter().flat_map(|snapshot| &snapshot.members);
        let others = members.filter(|(name, _)| *name != self.name());
        let address = |(name, member): (&Name, &Versioned<FleetMember>)| {
            (member.document.body.address.ip(), OwnAddress::Member(name.clone()))
        };
        others.map(address).collect()
    }

    /// Whether all members understand a configuration, as far as it is known.
    fn check_versions(&self, configuration: &Configuration) -> Result<(), FleetRefusal> {
        let (_, need) = encode(configuration)?;
        match &self.view().snapshot {
            Some(snapshot) => versions::check(&need, snapshot, self.name()),
            None => Ok(()),
        }
    }

    async fn commit(&self, apply: Apply) -> Result<Result<Applied, Refusal>, Stopping> {
        // One after the other: the second would only meet the first one's conflict.
        let _turn = self.committing().lock().await;
        let (fleet, base) = match self.base().await {
            Ok(base) => base,
            Err(refusal) => return Ok(Err(refusal.into())),
        };
        let (author, reason) = (format!("{} at {}", apply.actor, self.name()), apply.why());
        let (is_forced, forces_addresses) = (apply.force, apply.forces_addresses());
        let planned = match self.plan(apply).await? {
            Ok(planned) => planned,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(configuration) = &planned.resolved else { return Ok(Ok(planned)) };
        if planned.changes.is_empty() {
            return Ok(Ok(planned));
        }
        if !is_forced && !planned.removals.is_empty() {
            return Ok(Err(Refusal::ForceRequired(planned.removals)));
        }
        if !forces_addresses && !planned.takeovers.is_empty() {
            return Ok(Err(Refusal::BalancerAddress(planned.takeovers)));
        }
        let committed = self.commit_configuration(&fleet, &base, configuration, author, reason);
        let committed = match committed.await {
            Ok(committed) => committed,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let number = committed.document.body.number;
        if let Err(cause) = self.wait_for(number).await {
            return Ok(Err(FleetRefusal::Behind { generation: number, cause }.into()));
        }
        Ok(Ok(Applied { generation: number, resolved: None, ..planned }))
    }

    /// The state of etcd that a change can be committed on: the one that is in force here.
    ///
    /// # Errors
    /// etcd takes no changes, or this balancer does not follow it.
    pub(super) async fn base(&self) -> Result<(Fleet, Arc<Snapshot>), FleetRefusal> {
        let (fleet, snapshot) = self.followed_base()?;
        let current = snapshot.configuration.as_ref().map(|it| it.committed.document.body.number);
        if let Some(generation) = current {
            let waited = self.wait_for(generation).await;
            // Another generation may be what cures a refusal.
            let refused = self.in_force().refused.map(|refused| refused.generation);
            let is_refused = refused == Some(generation);
            if let (Err(cause), false) = (waited, is_refused) {
                return Err(FleetRefusal::Behind { generation, cause });
            }
        }
        self.check_newer(&snapshot)?;
        Ok((fleet, snapshot))
    }

    /// The same, also if the configuration is not in force here yet.
    ///
    /// # Errors
    /// etcd takes no changes, or this balancer does not follow it.
    pub(super) fn followed_base(&self) -> Result<(Fleet, Arc<Snapshot>), FleetRefusal> {
        let unavailable = |text: &str| FleetRefusal::Unavailable(text.into());
        let fleet = self.etcd().fleet.borrow().clone();
        let fleet = fleet.ok_or_else(|| unavailable("its certificate files cannot be read"))?;
        let view = self.etcd().view.borrow().clone();
        match &view.connection {
            Connection::Connected => {}
            Connection::Connecting => return Err(unavailable("etcd has not answered yet")),
            connection => {
                return Err(FleetRefusal::Unavailable(connection.sentence().unwrap_or_default()));
            }
        }
        let Some(snapshot) = view.snapshot else {
            return Err(unavailable("etcd has not answered yet"));
        };
        if let Some(conflict) = self.in_force().conflict {
            return Err(FleetRefusal::Diverged(conflict));
        }
        // The follower may not have come to it yet.
        self.check_lineage(&snapshot).map_err(FleetRefusal::Diverged)?;
        if self.is_removed() {
            return Err(FleetRefusal::NotAMember(REMOVED.into()));
        }
        Ok((fleet, snapshot))
    }

    /// That this balancer knows all that it would replace.
    pub(super) fn check_newer(&self, snapshot: &Snapshot) -> Result<(), FleetRefusal> {
        let refused = self.in_force().refused.filter(|refused| refused.is_newer);
        let cause = refused.map(|refused| refused.cause);
        match cause.or_else(|| versions::newer_value(snapshot)) {
            Some(cause) => Err(FleetRefusal::Newer(cause)),
            None => Ok(()),
        }
    }

    /// Commits a configuration on top of what etcd has.
    ///
    /// # Errors
    /// Another balancer came first, etcd takes no changes, or the fleet cannot have the configuration.
    pub(super) async fn commit_configuration(
        &self,
        fleet: &Fleet,
        snapshot: &Snapshot,
        configuration: &Configuration,
        author: String,
        reason: String,
    ) -> Result<Committed, Refusal> {
        if configuration.balancers.get() > 1 {
            let text = "balancers: must not be set, because the balancers of a fleet share capacities by themselves";
            return Err(FleetRefusal::Invalid(text.into()).into());
        }
        let base = snapshot.configuration.as_ref().map(|it| &it.committed);
        let (parts, need) = encode(configuration)?;
        let mut members = snapshot.clone();
        for _ in 0..TRIES {
            // If a balancer joins or starts after this, the commit fails, because its key is written.
            versions::check(&need, &members, self.name())?;
            let draft = Draft {
                parts: Arc::clone(&parts),
                live: self.live(&members),
                members_seen: members.members_revision,
                groups: groups(configuration),
                settles: settles(configuration),
                author: author.clone(),
                reason: reason.clone(),
                applied_at: wall_clock::now(),
            };
            let attempt = Attempt::new(base, draft).map_err(refusal)?;
            match fleet.commit(&attempt).await {
                // The view follows in a moment, and the configuration is still the one that was seen.
                Err(CommitError::MembersChanged) => {
                    let mut view = self.etcd().view.clone();
                    let seen = members.members_revision;
                    let is_newer = |view: &View| {
                        view.snapshot.as_ref().is_some_and(|it| it.members_revision > seen)
                    };
                    let newer = timeout(MEMBERS, view.wait_for(is_newer)).await;
                    if let Ok(Ok(view)) = newer
                        && let Some(snapshot) = &view.snapshot
                    {
                        members = (**snapshot).clone();
                    }
                }
                Err(CommitError::Unknown(error)) => {
                    tracing::warn!("the outcome of a commit is unknown: {error}");
                    let error = error.with_servers(&self.settings().endpoints);
                    return find_out(fleet, &attempt, error).await;
                }
                Err(CommitError::Conflict(current)) => {
                    let number = |it: &Committed| it.document.body.number;
                    return Err(Refusal::Conflict {
                        expected: base.map(number).unwrap_or_default(),
                        current: current.as_deref().map(number).unwrap_or_default(),
                    });
                }
                done => return done.map_err(|error| refusal(self.with_servers(error))),
            }
        }
        Err(refusal(CommitError::MembersChanged))
    }

    /// The same, with the servers of etcd if it is about reaching them.
    fn with_servers(&self, error: CommitError) -> CommitError {
        match error {
            CommitError::Etcd(error) => {
                CommitError::Etcd(error.with_servers(&self.settings().endpoints))
            }
            error => error,
        }
    }

    /// The members that are alive, this one in any case.
    pub(super) fn live(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let alive = snapshot.alive.keys().filter(|name| snapshot.members.contains_key(*name));
        alive.cloned().chain([self.settings().name.clone()]).collect()
    }

    /// Waits until a generation, or a later one, is in force here.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) async fn wait_for(&self, number: u64) -> Result<(), String> {
        self.wait_until(number, true).await
    }

    /// The same for a generation that ends a conflict.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) async fn wait_for_restored(&self, number: u64) -> Result<(), String> {
        self.wait_until(number, false).await
    }

    async fn wait_until(&self, number: u64, conflict_decides: bool) -> Result<(), String> {
        let mut in_force = self.watch_in_force();
        let is_decided = |it: &InForce| {
            (conflict_decides && it.conflict.is_some())
                || it.generation >= number
                || it.refused.as_ref().is_some_and(|refused| refused.generation >= number)
        };
        let decided = timeout(IN_FORCE, in_force.wait_for(is_decided)).await;
        match decided.map(|decided| decided.map(|in_force| in_force.clone())) {
            Ok(Ok(in_force)) if in_force.generation >= number => Ok(()),
            Ok(Ok(InForce { conflict: Some(cause), .. })) if conflict_decides => Err(cause),
            Ok(Ok(InForce { refused, .. })) => {
                Err(refused.map(|refused| refused.cause).unwrap_or_default())
            }
            Ok(Err(_)) => Err("the daemon is stopping".into()),
            Err(_) => Err(format!("it takes longer than {} s", IN_FORCE.as_secs())),
        }
    }

    /// The generation that each live balancer has in force; waits a moment for those that do not have `number` yet.
    pub(super) async fn generations_in_force(&self, number: u64) -> BTreeMap<Name, u64> {
        let mut view = self.etcd().view.clone();
        let all = view.wait_for(|view| {
            let alive = view.snapshot.iter().flat_map(|snapshot| &snapshot.alive);
            alive.into_iter().all(|(_, it)| it.document.body.generation >= number)
        });
        let _ = timeout(OTHERS, all).await;
        let snapshot = self.etcd().view.borrow().snapshot.clone();
        let alive = snapshot.iter().flat_map(|snapshot| &snapshot.alive);
        let mut generations: BTreeMap<Name, u64> =
            alive.map(|(name, it)| (name.clone(), it.document.body.generation)).collect();
        // Its own may not be in etcd yet.
        generations.insert(self.settings().name.clone(), self.in_force().generation);
        generations
    }
}

/// Longest time for which a change of home settles.
pub(super) fn settles(configuration: &Configuration) -> Duration {
    let settle = configuration.pools.values().map(|pool| pool.settle_time).max();
    settle.unwrap_or_default() * Settling::MOST
}

pub(super) fn groups(configuration: &Configuration) -> BTreeSet<(Name, Name)> {
    let pools = configuration.pools.iter();
    let of_pool = |(name, pool): (&Name, &Arc<lb_model::Pool>)| {
        let regions: BTreeSet<Name> =
            pool.backends.values().map(|backend| backend.region.clone()).collect();
        let name = name.clone();
        regions.into_iter().map(move |region| (name.clone(), region)).collect::<Vec<_>>()
    };
    pools.flat_map(of_pool).collect()
}

/// What became of a commit. `error` is the answer that said nothing for certain.
pub(super) async fn find_out(
    fleet: &Fleet,
    attempt: &Attempt,
    error: EtcdError,
) -> Result<Committed, Refusal> {
    let until = Instant::now() + RESOLVE;
    let unknown = |cause: String| Refusal::from(FleetRefusal::Unknown(cause));
    loop {
        let cause = match fleet.resolve(attempt).await {
            Ok(Resolved::Applied(committed)) => return Ok(*committed),
            Ok(Resolved::AppliedAndReplaced) => {
                return Err(unknown("it was applied, and another generation followed".into()));
            }
            Ok(Resolved::Lost(current)) => {
                let current = current.map(|it| it.document.body.number).unwrap_or_default();
                let expected = attempt.generation().number.saturating_sub(1);
                return Err(Refusal::Conflict { expected, current });
            }
            // etcd has answered, so nothing of it is on its way: there was no space for it.
            Ok(Resolved::Open) if error == EtcdError::NoSpace => {
                return Err(FleetRefusal::Unavailable(error.to_string()).into());
            }
            Ok(Resolved::Open) => match fleet.commit(attempt).await {
                Ok(committed) => return Ok(committed),
                Err(error) => error_chain::message(&error),
            },
            Err(error) => error_chain::message(&error),
        };
        if Instant::now() >= until {
            return Err(unknown(format!("it is unknown whether the change was made: {cause}")));
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// The parts of a configuration, and what they need of each balancer.
///
/// # Errors
/// It cannot be shared.
pub(super) fn encode(configuration: &Configuration) -> Result<(Parts, SchemaNeed), FleetRefusal> {
    let encoded = lb_store::encode_shared(configuration);
    let encoded = encoded.map_err(|error| FleetRefusal::Invalid(error_chain::message(&error)))?;
    Ok((encoded.parts.into(), encoded.need))
}

fn refusal(error: CommitError) -> Refusal {
    match error {
        CommitError::Etcd(error) => FleetRefusal::Unavailable(error.to_string()),
        CommitError::Unknown(error) => FleetRefusal::Unknown(error.to_string()),
        CommitError::PiecesVanish | CommitError::MembersChanged => {
            FleetRefusal::Unavailable(error.to_string())
        }
        error => FleetRefusal::Invalid(error_chain::message(&error)),
    }
    .into()
}

impl Member {
    /// Makes the configuration and the overrides of this balancer the first ones of the fleet. Returns its generation;
    /// `None`: the fleet has one by now.
    ///
    /// # Errors
    /// Another balancer was first at the last moment, or etcd takes no changes.
    pub(super) async fn found(
        &self,
        configuration: &Configuration,
        overrides: &Overrides,
    ) -> Result<Option<u64>, Refusal> {
        let _turn = self.committing().lock().await;
        // Its lease may not be there yet, but it takes part.
        let mut view = self.etcd().view.clone();
        let _ = timeout(IN_FORCE, view.wait_for(|view| view.snapshot.is_some())).await;
        let (fleet, snapshot) = self.base().await?;
        if snapshot.configuration.is_some() {
            return Ok(None);
        }
        self.replace_overrides(&fleet, &snapshot, overrides).await?;
        let author = format!("join at {}", self.name());
        let reason = format!("the configuration of {}", self.name());
        let committed =
            self.commit_configuration(&fleet, &snapshot, configuration, author, reason).await?;
        Ok(Some(committed.document.body.number))
    }
}
