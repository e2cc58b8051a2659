//! Ending a conflict between etcd and what this balancer has in force.

use std::sync::Arc;

use lb_base::error_chain;
use lb_control::command::{Applied, Apply, FleetRefusal};
use lb_fleet::{
    Fleet,
    commit::{Attempt, Draft},
    put_back::PutBackError,
    reader::{Snapshot, Versioned},
};
use lb_model::Configuration;

use super::{Member, MembershipError, commits, homes, versions, wall_clock};

impl Member {
    /// Makes the configuration of this balancer, or that of etcd, a new generation that all balancers follow.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub(super) async fn restore(
        &self,
        from_etcd: bool,
        dry_run: bool,
    ) -> Result<(u64, Applied), MembershipError> {
        let _turn = self.committing().lock().await;
        let fleet = self.etcd().fleet.borrow().clone();
        let Some((fleet, snapshot)) = fleet.zip(self.view().snapshot) else {
            return Err(FleetRefusal::Unavailable("etcd has not answered yet".into()).into());
        };
        // What this balancer has is old then: it would undo what the fleet did since.
        if let Some(conflict) = self.in_force().conflict
            && let Some(name) = self.follower_elsewhere(&snapshot)
        {
            let cause = format!("balancer {name} follows etcd: {conflict}");
            return Err(FleetRefusal::Diverged(cause).into());
        }
        let exported = self.commands().export().await?;
        if let Some(unusable) = exported.unusable.as_ref().filter(|_| !from_etcd) {
            let cause = &unusable.cause;
            let text = format!("the configuration of this balancer cannot be used: {cause}");
            return Err(MembershipError::Conflict(text));
        }
        let configuration = match from_etcd {
            true => of_etcd(&snapshot)?,
            false => exported.configuration.into(),
        };
        let planned = Apply {
            configuration: (*configuration).clone().into(),
            shared: Some(exported.generation + 1),
            dry_run: true,
            // The operator decides between two pasts, and sees what that changes.
            force: true,
            ..Apply::default()
        };
        let planned = self.commands().apply(planned, None).await??;
        let (parts, need) = commits::encode(&configuration)?;
        versions::check(&need, &snapshot, self.name())?;
        if dry_run {
            return Ok((exported.generation, planned));
        }
        let snapshot = self.put_back(&fleet, &snapshot, from_etcd).await?;
        // Births of groups must not collide with those that any balancer knows.
        let known = snapshot.alive.values().map(|it| it.document.body.generation);
        let floor = known.chain([exported.generation]).max().unwrap_or_default();
        let base = snapshot.configuration.as_ref().map(|it| &it.committed);
        let draft = Draft {
            parts,
            live: self.live(&snapshot),
            members_seen: snapshot.members_revision,
            groups: commits::groups(&configuration),
            settles: commits::settles(&configuration),
            author: format!("restore at {}", self.name()),
            reason: if from_etcd { "what etcd had" } else { "what this balancer had" }.into(),
            applied_at: wall_clock::now(),
        };
        let attempt = Attempt::restore(base, &self.known().births, floor, draft)
            .map_err(|error| FleetRefusal::Invalid(error_chain::message(&error)))?;
        let committed = fleet
            .commit(&attempt)
            .await
            .map_err(|error| FleetRefusal::Unavailable(error_chain::message(&error)))?;
        let generation = committed.document.body.number;
        let waited = self.wait_for_restored(generation).await;
        waited.map_err(|cause| FleetRefusal::Behind { generation, cause })?;
        Ok((generation, Applied { generation, ..planned }))
    }
}

impl Member {
    /// Writes back to etcd what is no configuration, and outlives every decision: the members, the last epoch, and what is
    /// marked out. With this balancer's configuration, its overrides too. Returns what etcd has then.
    async fn put_back(
        &self,
        fleet: &Fleet,
        snapshot: &Snapshot,
        from_etcd: bool,
    ) -> Result<Snapshot, MembershipError> {
        let (known, members) = (self.known(), self.in_force().members);
        let mut snapshot = snapshot.clone();
        snapshot.members_revision =
            fleet.put_back_members(&members, &snapshot).await.map_err(put_back_error)?;
        for (name, body) in &*members {
            snapshot.members.entry(name.clone()).or_insert_with(|| Versioned {
                document: body.clone().into(),
                mod_revision: snapshot.members_revision,
            });
        }
        if let Some(epoch) = &known.epoch {
            fleet.put_back_epoch(epoch, &snapshot).await.map_err(put_back_error)?;
        }
        if !from_etcd {
            let own = self.commands().overrides().await?.overrides;
            self.replace_overrides(fleet, &snapshot, &own).await?;
        }
        homes::write_agreed(fleet, &snapshot).await;
        Ok(snapshot)
    }
}

fn put_back_error(error: PutBackError) -> MembershipError {
    match error {
        PutBackError::Etcd(error) => error.into(),
        error => MembershipError::Conflict(error.to_string()),
    }
}

fn of_etcd(snapshot: &Snapshot) -> Result<Arc<Configuration>, MembershipError> {
    let shared = snapshot.configuration.as_ref();
    let shared =
        shared.ok_or_else(|| MembershipError::Conflict("etcd has no configuration".into()))?;
    let decoded = lb_store::decode_shared(&shared.bytes);
    decoded.map(Arc::new).map_err(|error| MembershipError::Conflict(error_chain::message(&error)))
}
