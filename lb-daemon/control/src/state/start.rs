use std::{sync::Arc, time::Instant};

use tokio::sync::{broadcast, mpsc};

use super::{
    Demand, EVENTS, NarrowPaths, Overflows, PacketPath, Remaps, Sensors, Settings, State, View,
};
use crate::{
    command::{Actor, Apply, Command, Refusal},
    members::{MemberCommands, MemberLoop, MemberSettings, Sensed},
    reconcile::MemberPath,
    store::{Revision, SchemaMismatch, Store, Unusable},
};
use lb_base::{conditions::STORED, error_chain};
use lb_model::{
    Configuration,
    ids::{Ids, Named, Quarantine},
    mark_out::MarkOuts,
    plan, room,
};

/// What the two loops get.
#[derive(Debug)]
pub struct Inbox {
    pub sensed: Sensed,
    pub commands: mpsc::Receiver<Command>,
}

/// The two loops over one packet path, of which `words` is the part that the member loop writes. Neither works without
/// the other.
pub fn new<P: PacketPath, W: MemberPath>(
    settings: Settings,
    store: Store,
    (path, words): (P, W),
    sensors: Sensors,
    inbox: Inbox,
) -> (State<P>, MemberLoop<W>) {
    let Inbox { sensed, commands } = inbox;
    let (members, asked) = MemberCommands::channel();
    let (updates_tx, updates) = mpsc::unbounded_channel();
    let member_settings = MemberSettings { counters: settings.health_counters.clone() };
    let member_loop = MemberLoop::new(member_settings, words, sensed, asked, updates_tx);
    let (events, _) = broadcast::channel(EVENTS);
    let state = State {
        settings,
        store,
        path,
        sensors,
        ids: Ids::default(),
        quarantine: Quarantine::default(),
        plan: None,
        behind: None,
        commands,
        members,
        updates,
        configured: Arc::new(Configuration::EMPTY),
        view: View::default(),
        demand: Demand::default(),
        offers: None,
        overflows: Overflows::default(),
        remaps: Remaps::default(),
        narrow: NarrowPaths::default(),
        outgrown: Default::default(),
        events,
        started: Instant::now(),
    };
    (state, member_loop)
}

impl<P: PacketPath> State<P> {
    /// Continues where the last daemon stopped: brings the packet path to the stored generation. States found
    /// in the maps stay until the checks of each backend decide. If the store has no generation, or one that
    /// cannot be used, the packet path stays as it is until the next apply.
    pub(super) async fn begin(&mut self) {
        let named = self.path.named();
        let stored = self.store.ids().map(|ids| ids.within(&self.settings.sizes));
        self.ids = stored.unwrap_or_else(|| Ids::reserving(&named));
        if self.generation() == 0 {
            if named != Named::default() {
                tracing::warn!(
                    "the store is empty, but the packet path still serves the configuration of an earlier \
                     daemon; it stays until the first apply"
                );
            }
            return;
        }
        if self.store.unusable().is_some() {
            self.report_unusable();
            return;
        }
        let configuration = self.configuration().clone();
        // Only maps that were made anew, of other sizes, can be too small.
        if let Err(too_many) = room::fits(&configuration, &self.settings.sizes) {
            let cause = format!("{too_many}; {}", too_many.hint());
            self.store.set_aside(cause);
            self.report_unusable();
            return;
        }
        let own = self.settings.region.as_ref();
        let homes = Remaps::recover(&configuration, own, &self.ids, &self.path.homes());
        match self.build_plan(&configuration, &self.ids, &homes.mark_outs) {
            Ok(plan) => self.plan = Some(plan),
            Err(error) => {
                let cause = error_chain::message(&error);
                self.store.set_aside(format!("its tables cannot be computed: {cause}"));
                self.report_unusable();
                return;
            }
        }
        self.remaps = homes;
        let generation = self.generation();
        tracing::info!(generation, "store: continuing with generation {generation}");
        self.write_directory();
        // A failure becomes a condition, and is retried.
        let _ = self.apply_plan().await;
        self.follow_configuration(&configuration).await;
    }

    pub(super) fn build_plan(
        &self,
        configuration: &Configuration,
        ids: &Ids,
        mark_outs: &MarkOuts,
    ) -> Result<plan::Plan, plan::PlanError> {
        let Settings { region, sources, .. } = &self.settings;
        let (region, hash_key, out) = (region.as_ref(), self.store.hash_key(), mark_outs.out());
        plan::build(configuration, region, ids, hash_key, *sources, &out)
    }
}

impl<P: PacketPath> State<P> {
    pub(super) fn report_unusable(&self) {
        let Some(Unusable { number, cause, .. }) = self.store.unusable() else { return };
        let cause = format!(
            "generation {number} cannot be used: {cause}; packets are forwarded as before, but health and next hops are \
             frozen until a valid configuration is applied (`spillway export` shows the stored one)"
        );
        self.settings.conditions.begin(STORED, &cause);
    }

    /// Refuses commands about pools while the stored generation, and so its pools, cannot be read.
    pub(super) fn require_usable(&self) -> Result<(), Refusal> {
        match self.store.unusable() {
            Some(unusable) => Err(Refusal::Unusable(unusable.cause.clone())),
            None => Ok(()),
        }
    }

    /// Refuses an apply if fields that only the client, the daemon or the store knows would be lost. If any
    /// schema is accepted, returns this as a warning instead.
    pub(super) fn check_schemas(&self, apply: &Apply) -> Result<Option<String>, Refusal> {
        let daemon = self.settings.schema;
        let stored = self.store.unusable().map_or(Revision::FIRST, |unusable| unusable.schema);
        let agree = match stored > daemon {
            true => Err(SchemaMismatch::NewerStore { stored, daemon }),
            false => SchemaMismatch::check_client(apply.schema, daemon),
        };
        let Err(mismatch) = agree else { return Ok(None) };
        // The administrator who sets `any-schema` accepts this for the configuration file, which is a setting
        // too.
        let by_file = self.settings.any_schema && matches!(apply.actor, Actor::File(_));
        match apply.any_schema || by_file {
            true => Ok(Some(mismatch.to_string())),
            false => Err(Refusal::Schema(mismatch)),
        }
    }

    /// Warning for a configuration that replaces one that could not be used.
    pub(super) fn unusable_warning(&self) -> Option<String> {
        let Unusable { number, .. } = self.store.unusable()?;
        Some(format!(
            "generation {number} could not be used, so the differences from it are unknown: all objects are listed \
             as added, and open connections may move"
        ))
    }
}
