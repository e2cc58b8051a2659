use std::{collections::BTreeSet, io, net::IpAddr, num::NonZeroU32, sync::Arc, time::Instant};

use super::{PacketPath, State, remaps::Remaps};
use crate::{
    command::{Applied, Apply, ChangeRecord, Refusal},
    members::{clock, wall_clock},
    reconcile::{self, ReconcileError},
    status::StatusUpdate,
    store::Generation,
};
use lb_base::{
    background,
    conditions::{PACKET_PATH, STORED},
    error_chain,
};
use lb_config::{SlotsByPool, slots_by_pool, slots_of_message};
use lb_model::{
    Configuration, Encapsulation, SourceClash,
    diff::{self, Change, Movement, TableDiffs},
    room,
};

/// Subject of the condition about the directory of names.
const NAMES: &str = "names for the command line";

/// How a configuration differs from the one in force.
struct Compared {
    changes: Vec<Change>,
    movements: Vec<Movement>,
}

impl<P: PacketPath> State<P> {
    /// Carries out an apply. Takes `change` once the configuration is in force, even if the packet path
    /// cannot follow yet.
    pub(super) async fn apply(
        &mut self,
        apply: Apply,
        change: &mut Option<Box<dyn ChangeRecord>>,
    ) -> Result<Applied, Refusal> {
        let schema_warning = self.check_schemas(&apply)?;
        let Apply { configuration, dry_run, expected_generation, actor, .. } = apply;
        let current = self.generation();
        if let Some(expected) = expected_generation.filter(|expected| *expected != current) {
            return Err(Refusal::Conflict { expected, current });
        }
        let in_force = self.slots_in_force();
        let slots = configuration.require_slots(&in_force);
        let mut configuration = configuration.resolve(&in_force).map_err(Box::new)?;
        let own_key = self.store.hash_key();
        if configuration.balancers > NonZeroU32::MIN && configuration.hash_key.is_none() {
            return Err(Refusal::NoHashKey { balancers: configuration.balancers, own_key });
        }
        slots.map_err(Box::new)?;
        let prefix = self.settings.sources.prefix_v4;
        if let Some(clash) = prefix.and_then(|prefix| SourceClash::find(prefix, &configuration)) {
            return Err(Refusal::SourcePrefix(clash));
        }
        self.leave_out_own_key(&mut configuration);
        room::fits(&configuration, &self.settings.sizes)?;
        let configuration = Arc::new(configuration);
        let compared = self.compare(&configuration).await.map_err(Refusal::Thread)?;
        let Compared { changes, movements } = compared;
        let unusable_warning = self.unusable_warning();
        if changes.is_empty() && unusable_warning.is_none() {
            let mut applied = self.apply_unchanged(dry_run).await?;
            applied.warnings.extend(schema_warning);
            return Ok(applied);
        }
        let (sizes, quarantine) = (&self.settings.sizes, &self.quarantine);
        let ids = self.ids.next(&configuration, sizes, quarantine, Instant::now())?;
        if unusable_warning.is_some() {
            // As at a start, from what the packet path has.
            let own = self.settings.region.as_ref();
            self.remaps = Remaps::recover(&configuration, own, &ids, &self.path.homes());
        }
        let mark_outs = self.mark_outs_in(&configuration, clock());
        let plan = self.build_plan(&configuration, &ids, &mark_outs)?;
        let tables = self.path.check(&plan).map_err(Refusal::Room)?;
        let memory = self.settings.map_memory.with(&tables);
        if memory.exceeds() {
            return Err(Refusal::Memory(memory.into()));
        }
        let memory = Some(memory);
        let movements_unknown = unusable_warning.is_some();
        let movements = if movements_unknown { Vec::new() } else { movements };
        let mut warnings: Vec<_> = unusable_warning.into_iter().chain(schema_warning).collect();
        warnings.extend(self.unserved_warnings(&configuration));
        warnings.extend(self.gateway_warnings(&configuration));
        if dry_run {
            warnings.extend(self.behind_warning());
            return Ok(Applied {
                generation: current,
                changes,
                movements,
                movements_unknown,
                memory,
                warnings,
            });
        }
        warnings.extend(self.file_warning(&configuration, &actor).await);

        let number = current + 1;
        let ids = Arc::new(ids);
        let generation = Generation {
            number,
            applied_at: wall_clock(),
            configuration: Arc::clone(&configuration),
            ids: Arc::clone(&ids),
            schema: self.settings.schema,
        };
        let counters = self.settings.store_counters.clone();
        counters.measure(self.store.commit(generation)).await?;
        self.settings.conditions.end(STORED);
        // From here on the configuration is in force, whatever happens.
        self.configuration = configuration;
        self.ids = ids;
        self.remaps.mark_outs = Arc::new(mark_outs);
        self.quarantine.adopt(&self.ids);
        self.plan = Some(plan);
        self.write_directory().await;
        let brought = self.apply_plan().await;
        let applied =
            Applied { generation: number, changes, movements, movements_unknown, memory, warnings };
        if let Some(change) = change.take() {
            change.changed(
                current,
                &applied,
                brought.as_ref().err().map(|error| error_chain::message(error)),
            );
        }
        self.tell_status();
        self.send_status(StatusUpdate::Applied(applied.clone()));
        self.follow_configuration().await;
        match brought {
            Ok(()) => Ok(applied),
            Err(source) => Err(Refusal::Behind { generation: number, source }),
        }
    }

    /// Compares a configuration with the one in force, on all CPUs.
    fn compare(
        &self,
        next: &Arc<Configuration>,
    ) -> impl Future<Output = io::Result<Compared>> + Send + use<P> {
        let (before, after) = (Arc::clone(&self.configuration), Arc::clone(next));
        let (own, own_key) = (self.settings.region.clone(), self.store.hash_key());
        let compare = move || {
            let diffs = TableDiffs::new(&before, &after, &diff::owners);
            let key = |configuration: &Configuration| configuration.hash_key.unwrap_or(own_key);
            let is_rehashed = key(&before) != key(&after);
            let movements = diff::movements(&before, &after, own.as_ref(), is_rehashed, &diffs);
            Compared { changes: diff::between(&before, &after, &diffs), movements }
        };
        background::run(compare)
    }

    /// The slots that pools keep, also those of a stored generation that cannot be used: the maps have its tables.
    fn slots_in_force(&self) -> SlotsByPool {
        let stored = self.store.unusable().and_then(|unusable| unusable.message.as_ref());
        match stored {
            Some(message) => slots_of_message(&message.0),
            None => slots_by_pool(&self.configuration),
        }
    }

    /// The configuration is in force already. A client may repeat an apply that was refused because the
    /// packet path was behind, so that is retried here.
    async fn apply_unchanged(&mut self, dry_run: bool) -> Result<Applied, Refusal> {
        let generation = self.generation();
        let mut applied = Applied { generation, ..Applied::default() };
        if dry_run {
            applied.warnings.extend(self.behind_warning());
        } else if self.behind.is_some() {
            self.catch_up().await.map_err(|source| Refusal::Behind { generation, source })?;
        }
        Ok(applied)
    }

    /// Brings a packet path that is behind to the plan in force, and updates the sensors.
    pub(super) async fn catch_up(&mut self) -> Result<(), ReconcileError> {
        self.apply_plan().await?;
        self.configure_members().await;
        let generation = self.generation();
        tracing::info!(generation, "the packet path is at generation {generation} again");
        self.update_sensors();
        Ok(())
    }

    /// Removes the daemon's own key from a configuration with one balancer: naming it makes no difference,
    /// because no other balancer has to know it.
    pub(super) fn leave_out_own_key(&self, configuration: &mut Configuration) {
        if configuration.balancers == NonZeroU32::MIN {
            configuration.hash_key.take_if(|key| *key == self.store.hash_key());
        }
    }

    /// Brings the packet path to the plan in force.
    pub(super) async fn apply_plan(&mut self) -> Result<(), ReconcileError> {
        let Some(plan) = &self.plan else { return Ok(()) };
        self.members.drop_gateways(Arc::new(direct_backends(&self.configuration))).await;
        let began = Instant::now();
        let applied = self.path.apply(plan).await;
        self.take_waiting_updates();
        match applied {
            Ok(written) => {
                self.settings.publish_counters.published(began.elapsed(), wall_clock());
                tracing::debug!(?written, "the packet path is at the generation");
                self.quarantine.settle(&self.ids, &self.path.named(), Instant::now());
                self.remaps.observe(&self.path.homes(), clock());
                self.behind = None;
                self.settings.conditions.end(PACKET_PATH);
                Ok(())
            }
            Err(error) => {
                self.settings.publish_counters.failed();
                let (generation, why) = (self.generation(), error_chain::message(&error));
                let cause =
                    format!("not at generation {generation} yet, retried every second: {why}");
                self.settings.conditions.begin(PACKET_PATH, &cause);
                self.behind = Some(why);
                // What packets do not see yet cannot be written, so all is handed over once they do.
                self.configured = Arc::new(Configuration::EMPTY);
                Err(error)
            }
        }
    }

    /// Updates members and sensors for the configuration in force.
    pub(super) async fn follow_configuration(&mut self) {
        self.view.configure(&self.configuration);
        self.configure_members().await;
        self.update_sensors();
    }

    /// Hands the pools over to the member loop that differ from what it has written, and takes what it makes of them.
    async fn configure_members(&mut self) {
        let next = Arc::clone(&self.configuration);
        let pools = next.pools.iter();
        let pools = pools.filter(|(name, pool)| self.configured.pools.get(*name) != Some(*pool));
        let pools = pools.map(|(name, _)| name.clone()).collect();
        self.members.configure(&next, pools).await;
        if self.behind.is_none() {
            self.configured = next;
        }
        self.take_waiting_updates();
    }

    /// Points the sensors at the backends in force, and the next-hop sensor also at backends that only a
    /// pool's previous version has, because their connections go on.
    pub(super) fn update_sensors(&mut self) {
        let leaving = self.path.leaving();
        let backends = self.sensors.update(&self.configuration, &self.view, leaving);
        self.view.keep_next_hops(&backends);
        self.send_status(StatusUpdate::Backends(Arc::clone(&backends)));
        self.members.keep_next_hops(Arc::clone(&backends));
        self.sensors.next_hops.send_replace(backends);
    }

    /// Writes the names that the command line shows for numbers in the maps.
    pub(super) async fn write_directory(&mut self) {
        let Self { settings, ids, .. } = self;
        let number = self.store.number();
        let directory = reconcile::directory(number, settings.region.as_ref(), ids);
        let state_directory = settings.state_directory.clone();
        let write = move || directory.write(&state_directory).map_err(io::Error::other);
        match background::run(write).await.and_then(|written| written) {
            Ok(()) => settings.conditions.end(NAMES),
            Err(error) => {
                let cause = format!(
                    "not up to date, so tables may show wrong names: {}",
                    error_chain::message(&error)
                );
                settings.conditions.begin(NAMES, &cause);
            }
        }
    }
}

/// Backends of pools with direct return. Pools that share a backend agree on this.
fn direct_backends(configuration: &Configuration) -> BTreeSet<IpAddr> {
    let direct = configuration.pools.values();
    let direct = direct.filter(|pool| pool.encapsulation == Encapsulation::Direct);
    direct.flat_map(|pool| pool.backends.keys().copied()).collect()
}
