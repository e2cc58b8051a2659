//! Leaving a fleet.

use std::{path::Path, time::Duration};

use lb_base::{
    background::Job,
    conditions::{FLEET_INSECURE, FLEET_SHARES},
    error_chain,
};
use lb_config::Reason;
use lb_control::{
    command::{Actor, Apply, OverrideChange, Stopping},
    state::MarkOutDecision,
};
use lb_fleet::{EtcdError, members::MemberError};
use tokio::time::timeout;

use super::{
    Member, Membership, MembershipError,
    follower::SUBJECTS,
    record::{MembershipRecord, RecordError},
};

/// Longest wait until a balancer that leaves has given everything away.
const LEAVE: Duration = Duration::from_secs(60);

/// After so long a disk counts as one that does not answer.
const DISK_WAIT: Duration = Duration::from_secs(2);

/// Longest wait until this balancer's own history is back.
const HISTORY: Duration = Duration::from_secs(5);

impl Membership {
    /// Makes this balancer independent, with what it has in force. Returns whether its portions were not given away.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn leave(
        &self,
        abandon: bool,
        dry_run: bool,
        actor: Actor,
    ) -> Result<bool, MembershipError> {
        let _turn = self.turn().await;
        if !self.is_member() {
            return Err(self.no_member());
        }
        if dry_run {
            return Ok(abandon);
        }
        // Otherwise a restart would make it a member again.
        self.with_record(MembershipRecord::probe, "nothing was changed").await?;
        if !abandon {
            let member = self.member().ok_or(MembershipError::NotStarted)?;
            member.leave(LEAVE).await.map_err(MembershipError::NotLeft)?;
        }
        self.stop_member().await?;
        self.become_independent(actor).await?;
        Ok(abandon)
    }

    /// Does something with the record.
    ///
    /// # Errors
    /// It fails, or the disk does not answer, which has this effect: the work goes on beside it.
    async fn with_record(
        &self,
        work: impl FnOnce(&Path) -> Result<(), RecordError> + Send + 'static,
        effect: &'static str,
    ) -> Result<(), MembershipError> {
        let directory = self.context().state_directory.clone();
        match Job::start(move || work(&directory)).within(DISK_WAIT).await {
            Ok(Ok(done)) => Ok(done?),
            // The runtime is being shut down.
            Ok(Err(_)) => Err(Stopping.into()),
            Err(_) => Err(self.silent_disk(effect)),
        }
    }

    /// Ends everything that is of a fleet, and keeps what is in force.
    ///
    /// # Errors
    /// The record cannot be removed, or the daemon is stopping.
    pub(super) async fn become_independent(&self, actor: Actor) -> Result<(), MembershipError> {
        let context = self.context();
        let effect =
            "this balancer takes part in its fleet no more, and a restart makes it a member again";
        self.with_record(MembershipRecord::remove, effect).await?;
        context.is_member.set(false);
        for subject in SUBJECTS.into_iter().chain([&FLEET_SHARES, &FLEET_INSECURE]) {
            context.conditions.end(subject);
        }
        context.homes.decide(MarkOutDecision::Alone);
        let unfollow = (Actor::Unknown, Reason::default());
        let _ =
            context.commands.change_overrides(OverrideChange::Unfollow, false, unfollow).await?;
        if let Err(error) = context.portions.by_configuration().await {
            tracing::info!("the limits of an independent balancer follow: {error}");
        }
        self.bring_history_back(actor).await
    }

    /// Makes what is in force the generation after the last one of this balancer's own, so that its own history is back. If
    /// it cannot be made now, the next change does that.
    async fn bring_history_back(&self, actor: Actor) -> Result<(), MembershipError> {
        let commands = &self.context().commands;
        let has_own = commands.generations().await?.iter().any(|it| it.is_before_fleet);
        let exported = commands.export().await?;
        if !has_own || exported.unusable.is_some() {
            return Ok(());
        }
        let apply = Apply {
            configuration: exported.configuration.into(),
            request: "leave of the fleet".into(),
            actor,
            keep_hash_key: true,
            any_schema: true,
            ..Apply::default()
        };
        let why = match timeout(HISTORY, commands.apply(apply, None)).await {
            Ok(applied) => match applied? {
                Ok(_) => return Ok(()),
                Err(refusal) => error_chain::message(&refusal),
            },
            Err(_) => "it waits for the disk".into(),
        };
        tracing::warn!("the history is that of the fleet until the next change: {why}");
        Ok(())
    }
}

impl Member {
    /// Gives everything away, and removes this balancer from the members.
    ///
    /// # Errors
    /// It takes longer than `limit`, or etcd takes no changes; the sentence says why. The balancer then takes part as before.
    async fn leave(&self, limit: Duration) -> Result<(), String> {
        self.followed()?;
        self.sharing().leave();
        let left = timeout(limit, self.give_away_and_leave()).await;
        let left = left.unwrap_or_else(|_| {
            let others = self.view().snapshot.map_or(0, |it| it.members.len().saturating_sub(1));
            Err(format!(
                "after {} s this balancer still has portions of capacities, or the {others} other members have not \
                 confirmed that they have them: see `spillway fleet status`; --abandon leaves without that",
                limit.as_secs()
            ))
        });
        if left.is_err() {
            self.sharing().stay();
        }
        left
    }

    async fn give_away_and_leave(&self) -> Result<(), String> {
        let mut status = self.sharing().status();
        loop {
            let (fleet, snapshot) = self.followed()?;
            // It may have left already, by a request whose answer was lost.
            if !snapshot.members.contains_key(self.name()) {
                return Ok(());
            }
            let current = snapshot.configuration.as_ref();
            let current = current.map(|it| it.committed.document.body.number);
            // The last one has nobody to give anything to.
            let is_alone = snapshot.members.keys().all(|name| name == self.name());
            if is_alone || current.is_none() || self.sharing().has_left() == current {
                match fleet.leave(&snapshot).await {
                    Ok(()) => return Ok(()),
                    Err(MemberError::Etcd(error @ EtcdError::Denied(_))) => {
                        return Err(format!("this balancer cannot leave: {error}"));
                    }
                    Err(error) => tracing::info!("leaving the fleet: {error}; trying again"),
                }
            }
            status.changed().await.map_err(|_| "the daemon is stopping".to_owned())?;
        }
    }
}
