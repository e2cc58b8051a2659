//! Ending a conflict between etcd and what this balancer has in force.

use std::{io, sync::Arc, time::Duration};

use lb_base::{background, error_chain};
use lb_control::command::{
    Applied, Apply, FleetRefusal, Refusal, Warning, WarningReason, force_warnings,
};
use lb_fleet::{
    Fleet,
    commit::{Attempt, CommitError, Draft},
    put_back::PutBackError,
    reader::{Snapshot, Versioned},
};
use lb_model::{
    Configuration,
    diff::{self, TableDiffs},
    removal_guard,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Member, MembershipError, commits, follower::InForce, homes, liveness::WORD_IN_DOUBT, versions,
    wall_clock,
};

/// How often it is tried while members write their keys.
const TRIES: usize = 5;

/// Between two of them: what etcd has is seen a moment later.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// How an operator decides.
#[derive(Clone, Copy, Debug)]
pub struct Restore {
    /// For what etcd has; otherwise for what this balancer has.
    pub from_etcd: bool,
    /// Only check, and tell what would change.
    pub dry_run: bool,
    /// However much that removes.
    pub force: bool,
}

impl Member {
    /// Makes the configuration of this balancer, or that of etcd, a new generation that all balancers follow.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub(super) async fn restore(
        &self,
        restore: Restore,
    ) -> Result<(u64, Applied), MembershipError> {
        let _turn = self.committing().lock().await;
        for _ in 0..TRIES {
            if let Some(restored) = self.try_restore(restore).await? {
                return Ok(restored);
            }
            sleep(BETWEEN_TRIES).await;
        }
        Err(MembershipError::Conflict(PutBackError::Conflict.to_string()))
    }

    /// `None`: a member wrote its key or was forgotten meanwhile, as after a start. To look again is safe.
    async fn try_restore(
        &self,
        restore: Restore,
    ) -> Result<Option<(u64, Applied)>, MembershipError> {
        let (fleet, snapshot) = self.decidable().await?;
        let (configuration, planned) = self.plan_restore(restore, &snapshot).await?;
        if restore.dry_run {
            return Ok(Some((planned.generation, planned)));
        }
        if !restore.force && !planned.removals.is_empty() {
            return Err(Refusal::ForceRequired(planned.removals).into());
        }
        if !restore.force && !planned.takeovers.is_empty() {
            return Err(Refusal::BalancerAddress(planned.takeovers).into());
        }
        let Some(snapshot) = self.put_back(&fleet, &snapshot, restore.from_etcd).await? else {
            return Ok(None);
        };
        let attempt = self.attempt(restore, &configuration, planned.generation, &snapshot)?;
        let committed = match fleet.commit(&attempt).await {
            Err(CommitError::Unknown(error)) => {
                let error = error.with_servers(&self.settings().endpoints);
                commits::find_out(&fleet, &attempt, error).await?
            }
            Err(CommitError::MembersChanged) => return Ok(None),
            committed => committed
                .map_err(|error| FleetRefusal::Unavailable(error_chain::message(&error)))?,
        };
        let generation = committed.document.body.number;
        let waited = self.wait_for_restored(generation).await;
        waited.map_err(|cause| FleetRefusal::Behind { generation, cause })?;
        Ok(Some((generation, Applied { generation, ..planned })))
    }

    /// The configuration that the fleet is to have, and what that changes; its generation is the one in force here.
    async fn plan_restore(
        &self,
        Restore { from_etcd, force, .. }: Restore,
        snapshot: &Snapshot,
    ) -> Result<(Arc<Configuration>, Applied), MembershipError> {
        let exported = self.commands().export().await?;
        let (generation, etcd) = (exported.generation, of_etcd(snapshot));
        let (configuration, planned) = if from_etcd {
            let none = || MembershipError::Conflict("etcd has no configuration".into());
            let configuration = etcd.map_err(MembershipError::Conflict)?.ok_or_else(none)?;
            let planned = self.plan_here(&configuration, generation, force).await?;
            (configuration, planned)
        } else {
            if let Some(unusable) = &exported.unusable {
                let cause = &unusable.cause;
                let text = format!("the configuration of this balancer cannot be used: {cause}");
                return Err(MembershipError::Conflict(text));
            }
            let own = Arc::new(exported.configuration);
            // It changes nothing here, but a fleet may not be able to have it.
            self.plan_here(&own, generation, force).await?;
            let replaced = replaced(etcd, Arc::clone(&own), force).await;
            (own, Applied { generation, ..replaced.map_err(Refusal::Thread)? })
        };
        let (_, need) = commits::encode(&configuration)?;
        versions::check(&need, snapshot, self.name())?;
        Ok((configuration, planned))
    }

    /// The generation that restores a configuration; `generation` is the one in force here.
    fn attempt(
        &self,
        restore: Restore,
        configuration: &Configuration,
        generation: u64,
        snapshot: &Snapshot,
    ) -> Result<Attempt, MembershipError> {
        // Births of groups must not collide with those that any balancer knows.
        let known = snapshot.alive.values().map(|it| it.document.body.generation);
        let floor = known.chain([generation]).max().unwrap_or_default();
        let base = snapshot.configuration.as_ref().map(|it| &it.committed);
        let reason = if restore.from_etcd { "what etcd had" } else { "what this balancer had" };
        let draft = Draft {
            parts: commits::encode(configuration)?.0,
            live: self.live(snapshot),
            members_seen: snapshot.members_revision,
            groups: commits::groups(configuration),
            settles: commits::settles(configuration),
            author: format!("restore at {}", self.name()),
            reason: reason.into(),
            applied_at: wall_clock::now(),
        };
        // Without a conflict etcd may have groups that are younger than those in force here.
        let is_past_known = self.in_force().conflict.is_none()
            && snapshot.configuration_error.is_none()
            && base.is_some();
        let births = match is_past_known {
            true => snapshot.births(),
            false => self.known().births,
        };
        let attempt = Attempt::restore(base, &births, floor, draft);
        Ok(attempt.map_err(|error| FleetRefusal::Invalid(error_chain::message(&error)))?)
    }

    /// What a configuration would change here.
    async fn plan_here(
        &self,
        configuration: &Configuration,
        generation: u64,
        force: bool,
    ) -> Result<Applied, MembershipError> {
        let apply = Apply {
            configuration: configuration.clone().into(),
            shared: Some(generation + 1),
            dry_run: true,
            force,
            ..Apply::default()
        };
        Ok(self.commands().apply(apply, None).await??)
    }

    /// etcd and what it has, once this balancer may decide a conflict with it.
    ///
    /// # Errors
    /// Another balancer follows etcd or is ahead of this one, also after the time in which that may come from a backup; or etcd
    /// has not answered yet.
    async fn decidable(&self) -> Result<(Fleet, Arc<Snapshot>), MembershipError> {
        let mut view = self.etcd().view.clone();
        let end = Instant::now() + WORD_IN_DOUBT;
        loop {
            let snapshot = view.borrow_and_update().snapshot.clone();
            let fleet = self.etcd().fleet.borrow().clone();
            let Some((fleet, snapshot)) = fleet.zip(snapshot) else {
                return Err(FleetRefusal::Unavailable("etcd has not answered yet".into()).into());
            };
            let Some(error) = self.overruled(&snapshot) else { return Ok((fleet, snapshot)) };
            if !matches!(timeout_at(end, view.changed()).await, Ok(Ok(()))) {
                return Err(error);
            }
        }
    }

    /// Why this balancer must not decide the conflict: what it has is older than what another one has, and would undo what the
    /// fleet did since.
    fn overruled(&self, snapshot: &Snapshot) -> Option<MembershipError> {
        let InForce { conflict, generation, .. } = self.in_force();
        let conflict = conflict?;
        if let Some(name) = self.follower_elsewhere(snapshot) {
            let cause = format!("balancer {name} follows etcd: {conflict}");
            return Some(FleetRefusal::Diverged(cause).into());
        }
        let others = snapshot.alive.iter().filter(|(name, _)| *name != self.name());
        let (latest, name) = others.map(|(name, it)| (it.document.body.generation, name)).max()?;
        (latest > generation).then(|| {
            MembershipError::Conflict(format!(
                "generation {generation} is in force here, and generation {latest} at balancer {name}: run `spillway fleet \
                 restore` there"
            ))
        })
    }
}

impl Member {
    /// Writes back to etcd what is no configuration, and outlives every decision: the members, the last epoch, and what is
    /// marked out. With this balancer's configuration, its overrides too. Returns what etcd has then; `None`: something
    /// changed meanwhile.
    async fn put_back(
        &self,
        fleet: &Fleet,
        snapshot: &Snapshot,
        from_etcd: bool,
    ) -> Result<Option<Snapshot>, MembershipError> {
        let (known, members) = (self.known(), self.in_force().members);
        let mut snapshot = snapshot.clone();
        snapshot.members_revision = match fleet.put_back_members(&members, &snapshot).await {
            Err(PutBackError::Conflict) => return Ok(None),
            revision => revision.map_err(put_back_error)?,
        };
        for (name, body) in &*members {
            snapshot.members.entry(name.clone()).or_insert_with(|| Versioned {
                document: body.clone().into(),
                mod_revision: snapshot.members_revision,
            });
        }
        if let Some(epoch) = &known.epoch {
            match fleet.put_back_epoch(epoch, &snapshot).await {
                Err(PutBackError::Conflict) => return Ok(None),
                done => done.map_err(put_back_error)?,
            }
        }
        if !from_etcd {
            let own = self.commands().overrides().await?.overrides;
            self.replace_overrides(fleet, &snapshot, &own).await?;
        }
        homes::write_agreed(fleet, &snapshot).await;
        Ok(Some(snapshot))
    }
}

fn put_back_error(error: PutBackError) -> MembershipError {
    match error {
        PutBackError::Etcd(error) => error.into(),
        error => MembershipError::Conflict(error.to_string()),
    }
}

/// The configuration that etcd has, if it has one.
///
/// # Errors
/// It cannot be read.
fn of_etcd(snapshot: &Snapshot) -> Result<Option<Arc<Configuration>>, String> {
    if let Some(error) = &snapshot.configuration_error {
        return Err(error.to_string());
    }
    let Some(shared) = &snapshot.configuration else { return Ok(None) };
    let decoded = lb_store::decode_shared(&shared.bytes);
    decoded.map(|it| Some(it.into())).map_err(|error| error_chain::message(&error))
}

/// What `own` changes in what etcd has, whose place it takes.
async fn replaced(
    etcd: Result<Option<Arc<Configuration>>, String>,
    own: Arc<Configuration>,
    force: bool,
) -> io::Result<Applied> {
    let etcd = match etcd {
        Ok(etcd) => etcd.unwrap_or_default(),
        Err(cause) => {
            let text = format!("what etcd has cannot be compared, and is replaced: {cause}");
            let warnings = vec![Warning::new(WarningReason::UnusableBefore, text)];
            return Ok(Applied { warnings, ..Applied::default() });
        }
    };
    background::run(move || {
        let diffs = TableDiffs::new(&etcd, &own, &diff::owners);
        let changes = diff::between(&etcd, &own, &diffs);
        let removals = removal_guard::removals(&etcd, &own);
        let warnings = match force {
            true => Vec::new(),
            false => force_warnings(&removals).collect(),
        };
        Applied { changes, removals, warnings, ..Applied::default() }
    })
    .await
}
