//! The way of every change: of this balancer alone, or of the fleet that it is a member of.

use std::sync::Arc;

use lb_config::Reason;
use lb_control::command::{
    Actor, Applied, Apply, ChangeRecord, Commands, OverrideChange, OverridesChanged, Refusal,
    Stopping,
};
use lb_model::Configuration;
use lb_store::HistoryEntry;

use super::{Member, Membership};

/// Sends changes to where they are decided.
#[derive(Clone, Debug)]
pub struct Changes {
    commands: Commands,
    /// `None`: in no case a member.
    membership: Option<Membership>,
}

/// Of a balancer that is no member of a fleet, and does not become one.
impl From<Commands> for Changes {
    fn from(commands: Commands) -> Self {
        Self { commands, membership: None }
    }
}

impl Changes {
    pub fn new(commands: Commands, membership: Membership) -> Self {
        Self { commands, membership: Some(membership) }
    }

    /// For questions.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// `None`: the balancer can be no member of a fleet.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    /// Why the balancer should not take traffic yet, as far as its fleet says so; `None`: it may.
    pub fn not_ready(&self) -> Option<String> {
        self.membership.as_ref()?.not_ready()
    }

    fn member(&self) -> Option<Arc<Member>> {
        self.membership.as_ref()?.member()
    }

    /// Puts a configuration in force: of this balancer, or of all of its fleet. A member answers once it has the
    /// generation in force itself. `record` gets the outcome; pass none for a dry run.
    ///
    /// # Errors
    /// The daemon is stopping; it is not known whether the change was made.
    pub async fn apply(
        &self,
        apply: Apply,
        record: Option<Box<dyn ChangeRecord>>,
    ) -> Result<Result<Applied, Refusal>, Stopping> {
        match self.member() {
            // A caller that hangs up does not keep the outcome from the audit log.
            Some(member) => {
                let work = async move { member.apply(apply, record).await };
                tokio::spawn(work).await.map_err(|_| Stopping)?
            }
            None => self.commands.apply(apply, record).await,
        }
    }

    /// What was applied, with the generation that each live balancer of the fleet has in force. Waits a moment for those that
    /// do not have it yet: not to be called while another change waits for this one.
    pub async fn with_balancers(&self, applied: Applied, dry_run: bool) -> Applied {
        match self.member().filter(|_| !dry_run && !applied.changes.is_empty()) {
            Some(member) => {
                let balancers = member.generations_in_force(applied.generation).await;
                Applied { balancers, ..applied }
            }
            None => applied,
        }
    }

    /// Changes overrides, or only checks the change. A member changes local ones by itself, and others in its fleet.
    ///
    /// # Errors
    /// The daemon is stopping; it is not known whether the change was made.
    pub async fn change_overrides(
        &self,
        change: OverrideChange,
        dry_run: bool,
        (actor, reason): (Actor, Reason),
    ) -> Result<Result<OverridesChanged, Refusal>, Stopping> {
        match self.member() {
            Some(member) if !dry_run && !change.is_local() => {
                let work = async move { member.change_overrides(change, (actor, reason)).await };
                tokio::spawn(work).await.map_err(|_| Stopping)?
            }
            _ => self.commands.change_overrides(change, dry_run, (actor, reason)).await,
        }
    }

    /// The last generations, by number; the one in force is the last. Of a member those of the fleet, if etcd was read, after
    /// its own from before it joined.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn generations(&self) -> Result<Vec<HistoryEntry>, Stopping> {
        let own = self.commands.generations().await?;
        Ok(match self.member() {
            Some(member) => member.generations(own).await,
            None => own,
        })
    }

    /// The configuration of a generation.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn generation(
        &self,
        number: u64,
    ) -> Result<Result<Arc<Configuration>, Refusal>, Stopping> {
        let own = self.commands.generation(number).await?;
        match (own, self.member()) {
            // This balancer may have been away when it was in force.
            (Err(own @ (Refusal::NoGeneration(_) | Refusal::BeforeFleet(_))), Some(member)) => {
                Ok(match member.generation(number).await {
                    Err(Refusal::NoGeneration(_)) => Err(own),
                    fleets => fleets,
                })
            }
            (own, _) => Ok(own),
        }
    }
}
