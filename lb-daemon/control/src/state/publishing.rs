//! How the packet path follows the configuration in force: its plan, which the publisher brings the maps to, and then members
//! and sensors.

use std::{collections::BTreeSet, io, net::IpAddr, sync::Arc, time::Instant};

use super::{Current, Sensors, State, StatusSenders};
use crate::{
    members::{Mailbox, MemberCommands, clock, wall_clock},
    status::{StatusUpdate, View},
};
use lb_base::{background, conditions::PACKET_PATH, error_chain};
use lb_model::{
    Configuration, Encapsulation,
    ids::{Ids, Named},
    maglev::BuiltTables,
    mark_out::MarkOuts,
    plan::{self, Plan, PlanError, PlanInputs},
};
use lb_publish::{publisher::Publisher, reconcile::ReconcileError};

/// What a plan follows from, besides settings.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    pub(super) configuration: Arc<Configuration>,
    pub(super) ids: Arc<Ids>,
    pub(super) mark_outs: Arc<MarkOuts>,
}

/// What follows the configuration in force: the packet path, members and sensors.
#[derive(Debug)]
pub(super) struct Publishing {
    pub(super) publisher: Publisher,
    /// To the member loop.
    pub(super) members: MemberCommands,
    /// From the member loop.
    pub(super) updates: Mailbox,
    /// The configuration of which the member loop has written all pools; empty while the packet path is behind.
    configured: Arc<Configuration>,
    pub(super) view: View,
    sensors: Sensors,
}

impl Publishing {
    pub(super) fn new(
        publisher: Publisher,
        members: MemberCommands,
        updates: Mailbox,
        sensors: Sensors,
    ) -> Self {
        let (configured, view) = (Arc::new(Configuration::EMPTY), View::default());
        Self { publisher, members, updates, configured, view, sensors }
    }

    /// Takes all updates that there are, so that what follows sees what the member loop has written.
    pub(super) fn take_waiting_updates(&mut self) {
        self.view.take(self.updates.take());
    }

    /// Hands the pools over to the member loop that differ from what it has written, and takes what it makes of them.
    async fn configure_members(&mut self, current: &Current) {
        let next = Arc::clone(&current.configuration);
        let pools = next.pools.iter();
        let pools = pools.filter(|(name, pool)| self.configured.pools.get(*name) != Some(*pool));
        let pools = pools.map(|(name, _)| name.clone()).collect();
        self.members.configure(&next, pools).await;
        if current.behind.is_none() {
            self.configured = next;
        }
        self.take_waiting_updates();
    }

    /// Points the sensors at the backends in force, and the next-hop sensor also at backends that only a
    /// pool's previous version has, because their connections go on.
    fn update_sensors(&mut self, configuration: &Arc<Configuration>, status: &StatusSenders) {
        let leaving = self.publisher.published().leaving.clone();
        let backends = self.sensors.update(configuration, &self.view, leaving);
        let Some(backends) = backends else { return };
        self.view.keep_next_hops(&backends);
        status.send(StatusUpdate::Backends(Arc::clone(&backends)));
        self.members.keep_next_hops(Arc::clone(&backends));
        self.sensors.next_hops.send_replace(backends);
    }
}

impl Current {
    /// Begins the quarantine of retired numbers that the packet path does not name.
    pub(super) async fn settle_quarantine(&mut self, publisher: &Publisher) {
        let named = match self.ids.has_retired() {
            true => publisher.named().await,
            false => Ok(Named::default()),
        };
        // Without a publisher the daemon is stopping.
        let Ok(named) = named else { return };
        self.quarantine.settle(&self.ids, &named, Instant::now());
    }
}

impl State {
    /// What the plan in force follows from.
    pub(super) fn basis(&self) -> Basis {
        Basis {
            configuration: Arc::clone(&self.current.configuration),
            ids: Arc::clone(&self.current.ids),
            mark_outs: Arc::clone(&self.remaps.mark_outs),
        }
    }

    /// Computes a plan beside the loop. What is the same as in the plan in force is taken from there.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub(super) fn build_plan(
        &self,
        basis: &Basis,
    ) -> impl Future<Output = io::Result<Result<Arc<Plan>, PlanError>>> + Send + use<> {
        let (in_force, basis, plan) = (self.basis(), basis.clone(), self.current.plan.clone());
        let (own, source_prefix) = (self.settings.region.clone(), self.settings.source_prefix);
        let hash_key = self.storing.store.hash_key();
        background::run(move || {
            let (out_in_force, out) = (in_force.mark_outs.out(), basis.mark_outs.out());
            let in_force = PlanInputs {
                configuration: &in_force.configuration,
                own: own.as_ref(),
                ids: &in_force.ids,
                hash_key,
                source_prefix,
                out: &out_in_force,
            };
            let (configuration, ids) = (&*basis.configuration, &*basis.ids);
            let inputs = PlanInputs { configuration, ids, out: &out, ..in_force };
            plan::build(&inputs, plan.as_ref().map(|plan| (&in_force, &**plan))).map(Arc::new)
        })
    }

    /// Brings the packet path to the plan in force.
    pub(super) async fn publish(&mut self, built: Arc<BuiltTables>) -> Result<(), ReconcileError> {
        let Some(plan) = self.current.plan.clone() else { return Ok(()) };
        self.publishing
            .members
            .drop_gateways(Arc::new(direct_backends(&self.current.configuration)))
            .await;
        let began = Instant::now();
        let published = self.publishing.publisher.publish(&plan, built).await;
        self.publishing.take_waiting_updates();
        match published {
            Ok(written) => {
                self.settings.publish_counters.published(began.elapsed(), wall_clock());
                tracing::debug!(?written, "the packet path is at the generation");
                self.current.settle_quarantine(&self.publishing.publisher).await;
                self.remaps.observe(&self.publishing.publisher.published().homes, clock());
                self.current.behind = None;
                self.settings.conditions.end(&PACKET_PATH);
                Ok(())
            }
            Err(error) => {
                self.settings.publish_counters.failed();
                let (generation, why) = (self.storing.generation(), error_chain::message(&error));
                let cause =
                    format!("not at generation {generation} yet, retried every second: {why}");
                self.settings.conditions.begin(&PACKET_PATH, &cause);
                self.current.behind = Some(why);
                // What packets do not see yet cannot be written, so all is handed over once they do.
                self.publishing.configured = Arc::new(Configuration::EMPTY);
                Err(error)
            }
        }
    }

    /// Brings a packet path that is behind to the plan in force, and updates the sensors.
    pub(super) async fn catch_up(&mut self) -> Result<(), ReconcileError> {
        self.publish(Arc::default()).await?;
        self.publishing.configure_members(&self.current).await;
        let generation = self.storing.generation();
        tracing::info!(generation, "the packet path is at generation {generation} again");
        self.update_sensors();
        Ok(())
    }

    /// Updates members and sensors for the configuration in force.
    pub(super) async fn follow_configuration(&mut self) {
        self.publishing.view.configure(&self.current.configuration);
        self.publishing.configure_members(&self.current).await;
        self.update_sensors();
    }

    pub(super) fn update_sensors(&mut self) {
        self.publishing.update_sensors(&self.current.configuration, &self.status);
    }
}

/// Backends of pools with direct return. Pools that share a backend agree on this.
fn direct_backends(configuration: &Configuration) -> BTreeSet<IpAddr> {
    let direct = configuration.pools.values();
    let direct = direct.filter(|pool| pool.encapsulation == Encapsulation::Direct);
    direct.flat_map(|pool| pool.backends.keys().copied()).collect()
}
