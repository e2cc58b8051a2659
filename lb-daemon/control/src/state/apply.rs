use std::{io, num::NonZeroU32, sync::Arc, time::Instant};

use super::{
    State,
    publishing::Basis,
    remaps::Remaps,
    warnings::{remap_warnings, takeover_warnings},
};
use crate::{
    command::{Applied, Apply, ChangeRecord, Refusal, force_warnings},
    members::{clock, wall_clock},
    status::StatusUpdate,
};
use lb_base::{background, conditions::STORED, error_chain};
use lb_config::Requested;
use lb_model::{
    Configuration, SourceClash,
    diff::{self, Change, Movement, TableDiffs, TableMembers},
    ids::{Exhausted, Ids},
    maglev::BuiltTables,
    own_addresses::{self, OwnAddresses},
    plan::Plan,
    removal_guard, room,
};
use lb_publish::reconcile;
use lb_store::{Generation, Series};

/// How an apply settles what a configuration leaves open.
#[derive(Clone, Copy, Debug)]
struct Numbering {
    /// As in [`Apply`].
    shared: Option<u64>,
    /// As in [`Apply`].
    keep_hash_key: bool,
}

/// What a generation is, besides its content.
#[derive(Debug)]
struct Identity {
    number: u64,
    series: Series,
    who: String,
    why: String,
}

/// What follows from a configuration beside the one in force.
struct Compared {
    changes: Vec<Change>,
    movements: Vec<Movement>,
    /// Its numbers.
    ids: Result<Ids, Exhausted>,
    /// Its tables, as far as they were built for the comparison.
    built: BuiltTables,
}

impl State {
    /// Carries out an apply. Takes `change` once the configuration is in force, even if the packet path
    /// cannot follow yet.
    pub(super) async fn apply(
        &mut self,
        apply: Apply,
        change: &mut Option<Box<dyn ChangeRecord>>,
    ) -> Result<Applied, Refusal> {
        // Whoever asks has checked this before, and the balancer may have joined a fleet since.
        if apply.shared.is_none() && !apply.dry_run && self.settings.membership.is_member() {
            return Err(Refusal::Member);
        }
        let schema_warning = self.check_schemas(&apply)?;
        let identity = self.identity(&apply)?;
        let numbering = Numbering { shared: apply.shared, keep_hash_key: apply.keep_hash_key };
        let (is_guarded, guards_addresses) = (!apply.force, !apply.forces_addresses());
        let is_decided = apply.shared.is_some() && !apply.dry_run;
        let Apply { configuration, dry_run, expected_generation, actor, rollback_to, .. } = apply;
        let balancer_addresses = self.balancer_addresses(apply.member_addresses);
        let current = self.storing.generation();
        if let Some(expected) = expected_generation.filter(|expected| *expected != current) {
            return Err(Refusal::Conflict { expected, current });
        }
        let configuration = self.resolve(configuration, numbering)?;
        let unusable_warning = self.storing.unusable_warning();
        let is_unusable = unusable_warning.is_some();
        let compared = self.compare(&configuration, is_unusable).await;
        let Compared { changes, movements, ids, built } = compared.map_err(Refusal::Thread)?;
        let was_shared = self.storing.store.series().is_shared();
        let is_other = match numbering.shared {
            Some(number) => number != current || !was_shared,
            None => self.last_own().is_some(),
        };
        let is_renumbered = is_other && !dry_run;
        // Without a plan the packet path may have something else.
        if changes.is_empty() && !is_unusable && (!is_renumbered || self.current.plan.is_some()) {
            let unchanged = match is_renumbered {
                true => self.renumber(identity, change).await,
                false => self.apply_unchanged(dry_run).await,
            };
            let mut applied = unchanged?;
            applied.warnings.extend(schema_warning);
            applied.resolved = dry_run.then_some(configuration);
            return Ok(applied);
        }
        let ids = Arc::new(ids?);
        if is_unusable {
            // As at a start, from what the packet path has.
            let (own, published) =
                (self.settings.region.as_ref(), self.publishing.publisher.published());
            self.remaps = Remaps::recover(&configuration, own, &ids, &published.homes);
        }
        let mark_outs = self.held_back(Arc::new(self.mark_outs_in(&configuration, clock())));
        let basis = Basis { configuration, ids, mark_outs };
        let plan = self.build_plan(&basis).await.map_err(Refusal::Thread)??;
        let tables = self.publishing.publisher.check(&plan).await.map_err(Refusal::Room)?;
        let memory = self.settings.map_memory.with(&tables);
        if memory.exceeds() {
            return Err(Refusal::Memory(memory.into()));
        }
        // What is not known cannot be compared. What a fleet has decided was looked at where the change was made.
        let removals = match is_unusable || is_decided {
            true => Vec::new(),
            false => removal_guard::removals(&self.current.configuration, &basis.configuration),
        };
        if is_guarded && !dry_run && !removals.is_empty() {
            return Err(Refusal::ForceRequired(removals));
        }
        let takeovers = match is_unusable || is_decided {
            true => Vec::new(),
            false => own_addresses::takeovers(
                &self.current.configuration,
                &basis.configuration,
                &balancer_addresses,
            ),
        };
        if guards_addresses && !dry_run && !takeovers.is_empty() {
            return Err(Refusal::BalancerAddress(takeovers));
        }
        let movements = if is_unusable { Vec::new() } else { movements };
        let mut warnings: Vec<_> = unusable_warning.into_iter().chain(schema_warning).collect();
        warnings.extend(self.unserved_warnings(&basis.configuration));
        warnings.extend(self.slot_warnings(&basis.configuration));
        warnings.extend(self.tunnel_warnings(&basis.configuration));
        warnings.extend(self.gateway_warnings(&basis.configuration));
        warnings.extend(self.override_warnings(&basis.configuration));
        let ended = self.ended_remaps(&plan).await.map_err(Refusal::Room)?;
        warnings.extend(remap_warnings(ended.values()));
        let mut applied = Applied {
            generation: current,
            changes,
            movements,
            movements_unknown: is_unusable,
            memory: Some(memory),
            warnings,
            removals,
            takeovers,
            ..Applied::default()
        };
        if dry_run {
            applied.resolved = Some(Arc::clone(&basis.configuration));
            applied.warnings.extend(self.behind_warning());
            if is_guarded {
                applied.warnings.extend(force_warnings(&applied.removals));
            }
            if guards_addresses {
                applied.warnings.extend(takeover_warnings(&applied.takeovers));
            }
            if rollback_to.is_some() {
                // Whoever rolls back has no file at hand that says the same.
                applied.warnings.extend(self.file_warning(&basis.configuration, &actor).await);
            }
            return Ok(applied);
        }
        applied.warnings.extend(self.file_warning(&basis.configuration, &actor).await);
        applied.generation = identity.number;
        let changes = Some(applied.changes.len() as u64).filter(|_| !is_unusable);
        let generation = self.describe(identity, &basis.configuration, &basis.ids, changes);
        self.storing.write(generation).await?;
        // From here on the configuration is in force, whatever happens.
        if !ended.is_empty() {
            self.forget_previous(ended.into_keys().collect()).await;
        }
        self.put_in_force(basis, plan);
        let published = self.publish(built.into()).await;
        if let Some(change) = change.take() {
            let behind = published.as_ref().err().map(|error| error_chain::message(error));
            change.changed(current, &applied, behind);
        }
        self.tell_status();
        self.status.send(StatusUpdate::Applied(applied.clone()));
        self.follow_configuration().await;
        self.write_directory().await;
        match published {
            Ok(()) => Ok(applied),
            Err(source) => Err(Refusal::Behind { generation: applied.generation, source }),
        }
    }

    /// The addresses of this balancer, and those of other members of its fleet.
    fn balancer_addresses(&self, members: OwnAddresses) -> OwnAddresses {
        let mut addresses = members;
        addresses.extend(self.settings.balancer_addresses.now());
        addresses
    }

    /// What is known of the generation that an apply makes before its content.
    fn identity(&self, apply: &Apply) -> Result<Identity, Refusal> {
        let current = self.storing.generation();
        let own = self.last_own().filter(|_| apply.shared.is_none());
        let number = apply.shared.unwrap_or(own.unwrap_or(current).saturating_add(1));
        if number == 0 {
            return Err(Refusal::NoGeneration(number));
        }
        let series = self.storing.store.series().next(current, number, apply.shared.is_some());
        Ok(Identity { number, series, who: apply.actor.to_string(), why: apply.why() })
    }

    /// The last generation of this balancer's own, if the one in force is a fleet's. If the fleet was left, the next one
    /// follows it, and its own history is back.
    fn last_own(&self) -> Option<u64> {
        let store = &self.storing.store;
        store.last_before_fleet().filter(|_| store.series().is_shared())
    }

    fn describe(
        &self,
        Identity { number, series, who, why }: Identity,
        configuration: &Arc<Configuration>,
        ids: &Arc<Ids>,
        changes: Option<u64>,
    ) -> Generation {
        Generation {
            number,
            applied_at: wall_clock(),
            configuration: Arc::clone(configuration),
            ids: Arc::clone(ids),
            // What it needs, not what this daemon knows: an older one can go on with it if it knows all of it.
            schema: lb_store::needed_by(configuration),
            who,
            why,
            changes,
            series,
        }
    }

    /// The configuration that a request asks for, if it is one that this daemon can serve.
    fn resolve(
        &self,
        requested: Requested,
        Numbering { shared, keep_hash_key }: Numbering,
    ) -> Result<Arc<Configuration>, Refusal> {
        let in_force = self.storing.slots_in_force(&self.current.configuration);
        let slots = requested.require_slots(&in_force);
        let mut configuration = requested.resolve(&in_force).map_err(Box::new)?;
        if keep_hash_key {
            configuration
                .hash_key
                .get_or_insert(self.storing.hash_key_in_use(&self.current.configuration));
        }
        let balancers = Some(configuration.balancers).filter(|_| shared.is_none());
        let is_one = balancers == Some(NonZeroU32::MIN);
        if !is_one && configuration.hash_key.is_none() {
            return Err(Refusal::NoHashKey { balancers, own_key: self.storing.store.hash_key() });
        }
        if shared.is_none() {
            slots.map_err(Box::new)?;
        }
        let prefix = self.settings.source_prefix;
        if let Some(clash) = prefix.and_then(|prefix| SourceClash::find(prefix, &configuration)) {
            return Err(Refusal::SourcePrefix(clash));
        }
        if shared.is_none() && !keep_hash_key {
            self.storing.leave_out_own_key(&mut configuration);
        }
        // From here on a pool that stays as it is takes no time.
        configuration.share_pools(&self.current.configuration);
        room::fits(&configuration, &self.settings.sizes)?;
        Ok(Arc::new(configuration))
    }

    /// Compares a configuration with the one in force and numbers its objects, on all CPUs. The one in force is `unusable` if
    /// it is not known: then all objects are numbered anew that have no number.
    fn compare(
        &self,
        next: &Arc<Configuration>,
        unusable: bool,
    ) -> impl Future<Output = io::Result<Compared>> + Send + use<> {
        let (before, after) = (Arc::clone(&self.current.configuration), Arc::clone(next));
        let (own, own_key) = (self.settings.region.clone(), self.storing.store.hash_key());
        let (ids, sizes) = (Arc::clone(&self.current.ids), self.settings.sizes);
        let (quarantine, now) = (self.current.quarantine.clone(), Instant::now());
        let compare = move || {
            let built = BuiltTables::default();
            let kept_owners = |table: &TableMembers| diff::kept_owners(table, &built);
            let diffs = TableDiffs::with(&before, &after, &diff::owners, &kept_owners);
            let numbered = (!unusable).then_some(&*before);
            let changes = diff::between(&before, &after, &diffs);
            let movements = diff::movements(&before, &after, own.as_ref(), own_key, &diffs);
            let ids = ids.next(numbered, &after, &sizes, &quarantine, now);
            Compared { changes, movements, ids, built }
        };
        background::run(compare)
    }

    fn put_in_force(&mut self, basis: Basis, plan: Arc<Plan>) {
        let Basis { configuration, ids, mark_outs } = basis;
        self.settings.conditions.end(&STORED);
        (self.current.configuration, self.current.ids) = (configuration, ids);
        self.remaps.mark_outs = mark_outs;
        self.current.quarantine.adopt(&self.current.ids);
        self.current.plan = Some(plan);
    }

    /// The configuration is in force already, and becomes that of another generation. Packets see nothing of it.
    async fn renumber(
        &mut self,
        identity: Identity,
        change: &mut Option<Box<dyn ChangeRecord>>,
    ) -> Result<Applied, Refusal> {
        let (before, generation) = (self.storing.generation(), identity.number);
        let next = self.describe(identity, &self.current.configuration, &self.current.ids, Some(0));
        self.storing.write(next).await?;
        let applied = Applied { generation, ..Applied::default() };
        if let Some(change) = change.take() {
            change.changed(before, &applied, self.current.behind.clone());
        }
        self.tell_status();
        self.status.send(StatusUpdate::Applied(applied.clone()));
        self.write_directory().await;
        if self.current.behind.is_some() {
            self.catch_up().await.map_err(|source| Refusal::Behind { generation, source })?;
        }
        Ok(applied)
    }

    /// The configuration is in force already. A client may repeat an apply that was refused because the
    /// packet path was behind, so that is retried here.
    async fn apply_unchanged(&mut self, dry_run: bool) -> Result<Applied, Refusal> {
        let generation = self.storing.generation();
        let mut applied = Applied { generation, ..Applied::default() };
        if !dry_run {
            self.storing.write_again().await;
        }
        if dry_run {
            applied.warnings.extend(self.behind_warning());
        } else if self.current.behind.is_some() {
            self.catch_up().await.map_err(|source| Refusal::Behind { generation, source })?;
        }
        Ok(applied)
    }

    /// Writes the names that the command line shows for numbers in the maps.
    pub(super) async fn write_directory(&mut self) {
        let own = self.settings.region.as_ref();
        let directory = reconcile::directory(self.storing.generation(), own, &self.current.ids);
        self.names.write(directory).await;
    }
}
