//! Joining a fleet, or founding it.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use lb_base::error_chain;
use lb_control::command::{Actor, Applied, Apply, FleetRefusal, OverridesInForce};
use lb_fleet::{
    Document, Fleet, FleetSettings,
    documents::FleetMember,
    reader::{Snapshot, Versioned},
};
use lb_model::{Configuration, Name};
use lb_sharing::Ledger;

use super::{
    Membership, MembershipError, SharingStartError, StartError, commits, etcd,
    follower::REMOVED,
    member::Member,
    membership::{has_been_forgotten, member_error},
    preflight,
    record::MembershipRecord,
    sharing::{LedgerFile, PROGRAM_VERSION},
    versions,
};

/// Longest wait until a balancer that joins has the fleet's configuration in force.
const JOIN: Duration = Duration::from_secs(60);

/// What a join did, or would do.
#[derive(Debug, Default)]
pub struct Joined {
    pub is_member: bool,
    /// The fleet has the configuration of this balancer.
    pub founded: bool,
    /// 0: the fleet has none.
    pub generation: u64,
    /// What the fleet's configuration changes at this balancer.
    pub changes: Option<Applied>,
    /// This balancer has a configuration that the fleet's replaces.
    pub replaces: bool,
}

/// How to join.
#[derive(Clone, Copy, Debug, Default)]
pub struct Join {
    /// Also if the fleet's configuration is another one than that of this balancer.
    pub replace: bool,
    /// Also if nobody is in the fleet yet, and etcd has others: its name may be misspelled.
    pub is_new_fleet: bool,
    /// Only check.
    pub dry_run: bool,
}

/// Whether there is anything of a configuration to lose.
fn has_objects(configuration: &Configuration) -> bool {
    let Configuration { regions, health_checks, pools, services, .. } = configuration;
    !(regions.is_empty() && health_checks.is_empty() && pools.is_empty() && services.is_empty())
}

impl Membership {
    /// Makes this balancer a member.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn join(&self, join: Join) -> Result<Joined, MembershipError> {
        let _turn = self.turn().await;
        let context = self.context();
        let settings = context.settings.clone().ok_or(MembershipError::NoSettings)?;
        if context.is_member.is_member() {
            return Err(match self.member().is_some_and(|member| member.is_removed()) {
                true => FleetRefusal::NotAMember(REMOVED.into()).into(),
                false => MembershipError::IsMember(settings.fleet),
            });
        }
        preflight::check_settings(&settings)?;
        let unanswered = |cause| {
            let endpoints = settings.endpoints.join(", ");
            MembershipError::Unanswered { cause, endpoints }
        };
        let fleet = Fleet::new(&settings).await.map_err(|error| unanswered(error.to_string()))?;
        let snapshot = etcd::read_once(&fleet).await.map_err(unanswered)?;
        preflight::check_address(&settings, &snapshot)?;
        preflight::check_rights(&fleet).await?.map_err(unanswered)?;
        let is_empty = snapshot.configuration.is_none() && snapshot.members.is_empty();
        if is_empty && !join.is_new_fleet {
            let others = fleet.other_fleets().await;
            let others = others.map_err(|error| unanswered(error.to_string()))?;
            if !others.is_empty() {
                let others: Vec<_> = others.iter().map(Name::as_str).collect();
                return Err(MembershipError::OtherFleets(settings.fleet, others.join(", ")));
            }
        }
        let before = snapshot.members.get(&settings.name);
        if let Some(before) = before
            && snapshot.alive.contains_key(&settings.name)
        {
            let address = before.document.body.address.to_string();
            return Err(MembershipError::NameInUse(settings.name, address));
        }
        let exported = context.commands.export().await?;
        if let Some(unusable) = &exported.unusable {
            let cause = &unusable.cause;
            let text = format!("the configuration of this balancer cannot be used: {cause}");
            return Err(MembershipError::Conflict(text));
        }
        let mut joined = self.compare(&snapshot).await?;
        let differs = joined.changes.as_ref().is_some_and(|it| !it.changes.is_empty());
        joined.replaces = differs && has_objects(&exported.configuration);
        joined.founded = snapshot.configuration.is_none() && exported.generation > 0;
        let founding = match joined.founded {
            true => Some(self.plan_founding(exported.configuration).await?),
            false => None,
        };
        if join.dry_run || joined.replaces && !join.replace {
            return Ok(joined);
        }
        self.write_member(&fleet, &settings, &snapshot, before).await?;
        let entered = self.enter(settings, founding.map(|it| (it, exported.overrides))).await;
        let (member, first) = match entered {
            Ok(entered) => entered,
            Err(error) => {
                self.undo_join(&fleet).await;
                return Err(error);
            }
        };
        joined.generation = member.wait_until_in_force(first, JOIN).await.map_err(|cause| {
            MembershipError::Incomplete(format!(
                "this balancer is a member now, but the fleet's configuration is not in force yet: {cause}"
            ))
        })?;
        joined.is_member = true;
        Ok(joined)
    }

    /// Begins to take part, with a key in etcd already. Returns the generation that it founded the fleet with; 0: it did not.
    async fn enter(
        &self,
        settings: FleetSettings,
        founding: Option<(Configuration, OverridesInForce)>,
    ) -> Result<(Arc<Member>, u64), MembershipError> {
        let context = self.context();
        let record = MembershipRecord::new(settings.fleet.clone(), settings.name.clone());
        record.write(&context.state_directory)?;
        context.is_member.set(true);
        // The maps of a balancer that joins may be of long ago, but it owned nothing before.
        let member = Member::start(context, settings, record, false).await?;
        self.set_member(Some(Arc::clone(&member)));
        let Some((configuration, overrides)) = founding else { return Ok((member, 0)) };
        let generation = member.found(&configuration, &overrides.overrides).await?;
        let generation = generation.ok_or_else(|| {
            let text =
                "another balancer has founded the fleet meanwhile: join again to see what it has";
            MembershipError::Conflict(text.into())
        })?;
        Ok((member, generation))
    }

    /// Leaves no trace of a join that failed.
    async fn undo_join(&self, fleet: &Fleet) {
        if let Some(member) = self.set_member(None) {
            member.stop().await;
        }
        if let Err(error) = self.become_independent(Actor::Unknown).await {
            tracing::error!("a join that failed is not undone: {}", error_chain::message(&error));
        }
        // Otherwise the others open an epoch for it, and `fleet remove` takes it out of the list.
        if let Ok(snapshot) = etcd::read_once(fleet).await
            && let Err(error) = fleet.leave(&snapshot).await
        {
            tracing::warn!("a join that failed leaves members/{} in etcd: {error}", fleet.name());
        }
    }

    /// The configuration that this balancer would give to the fleet, with all checks. Its balancers share capacities by
    /// themselves, so it does not say how many there are.
    async fn plan_founding(
        &self,
        configuration: Configuration,
    ) -> Result<Configuration, MembershipError> {
        let configuration = Configuration { balancers: NonZeroU32::MIN, ..configuration };
        let apply = Apply {
            configuration: configuration.clone().into(),
            shared: Some(1),
            keep_hash_key: true,
            dry_run: true,
            ..Apply::default()
        };
        let planned = self.context().commands.apply(apply, None).await??;
        let configuration = match planned.resolved {
            Some(resolved) => (*resolved).clone(),
            None => configuration,
        };
        commits::encode(&configuration)?;
        Ok(configuration)
    }

    /// What the fleet's configuration would change here.
    async fn compare(&self, snapshot: &Snapshot) -> Result<Joined, MembershipError> {
        let Some(shared) = &snapshot.configuration else { return Ok(Joined::default()) };
        let generation = shared.committed.document.body.number;
        let decoded = lb_store::decode_shared(&shared.bytes).map_err(|error| {
            let cause = error_chain::message(&error);
            MembershipError::Conflict(format!(
                "the fleet's configuration cannot be used by this version: {cause}"
            ))
        })?;
        let apply = Apply {
            configuration: decoded.into(),
            shared: Some(generation),
            dry_run: true,
            // Whoever joins sees all of it, and has to agree.
            force: true,
            ..Apply::default()
        };
        let changes = self.context().commands.apply(apply, None).await??;
        Ok(Joined { generation, changes: Some(changes), ..Joined::default() })
    }

    /// Writes the ledger of a new member, and then who it is.
    async fn write_member(
        &self,
        fleet: &Fleet,
        settings: &FleetSettings,
        snapshot: &Snapshot,
        before: Option<&Versioned<FleetMember>>,
    ) -> Result<(), MembershipError> {
        let generation =
            snapshot.configuration.as_ref().map_or(0, |it| it.committed.document.body.number);
        let epoch = snapshot.epoch.as_ref();
        let epoch = epoch.map_or(0, |epoch| epoch.number - u64::from(!epoch.closed));
        let known = before.map_or(0, |before| before.document.body.incarnation);
        // Peers that did not see it leave take messages of an earlier start for late.
        let file = LedgerFile::new(
            &self.context().state_directory,
            settings.fleet.clone(),
            settings.name.clone(),
        );
        // What a member of that name owns, and this ledger does not know, comes back when the others forget it.
        let is_old_copy = before.is_some() && !has_been_forgotten(snapshot, &settings.name);
        let ledger = match snapshot.has_no_members() {
            true => Ledger::only_member(generation, epoch, snapshot.births().into_keys()),
            false => Ledger::new_member(generation, epoch),
        };
        let write = move || {
            let own = file.read().map_or(0, |ledger| ledger.incarnation);
            let incarnation = known.max(own);
            let ledger = Ledger { incarnation, is_old_copy, ..ledger };
            file.write(&ledger).map(|()| incarnation)
        };
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.map_err(std::io::Error::other).and_then(|written| written);
        let incarnation =
            written.map_err(|error| StartError::from(SharingStartError::Ledger(error)))?;
        let body = FleetMember {
            address: settings.address,
            region: settings.region.clone(),
            incarnation,
            epoch,
            version: PROGRAM_VERSION.into(),
            schema: versions::own_schema(),
        };
        let document = before.map_or_else(
            || Document::from(body.clone()),
            |before| before.document.replaced_by(body.clone()),
        );
        fleet.join(&document, snapshot).await.map(drop).map_err(member_error)
    }
}
