use std::sync::Arc;

use tokio::sync::watch;

use super::{Names, Remaps, Sensors, Settings, State, publishing::Basis};
use crate::{
    command::{Actor, Apply, Refusal, Requests, Warning, WarningReason},
    loops::AllLoopCounters,
    members::{
        Initial, MemberCommands, MemberLoop, PortionCommands, Sensed, UpdateSenders, clock, mailbox,
    },
    overrides::{Others, OverrideLoop},
    publisher::{PacketPath, PublisherLoop},
    reconcile::MemberPath,
    status::{PathReader, StatusLoop, View},
    store::{Revision, SchemaMismatch, Store, Unusable},
};
use lb_base::{conditions::STORED, error_chain, queue::unbounded};
use lb_model::{
    Configuration,
    ids::{Ids, Named, Quarantine},
    room,
};

/// What comes in.
#[derive(Debug)]
pub struct Inbox {
    pub sensed: Sensed,
    pub requests: Requests,
}

/// The loops over one packet path. None works without the others.
#[derive(Debug)]
pub struct Loops<P, W, R> {
    pub state: State,
    pub publisher: PublisherLoop<P>,
    pub members: MemberLoop<W>,
    /// To the member loop.
    pub portions: PortionCommands,
    pub overrides: OverrideLoop,
    pub status: StatusLoop<R>,
}

impl<P: PacketPath, W: MemberPath, R: PathReader> Loops<P, W, R> {
    /// `path`, `words` and `reader` are what the publisher, the member loop and the status loop do with the packet path.
    pub fn new(
        settings: Settings,
        mut store: Store,
        (path, words, reader): (P, W, R),
        sensors: Sensors,
        inbox: Inbox,
    ) -> Self {
        let Inbox { sensed, requests } = inbox;
        let Requests { applies, overrides: asked_overrides, queries } = requests;
        let AllLoopCounters { member, state, publisher, overrides, status } =
            &settings.loop_counters;
        let (member_commands, asked) = MemberCommands::channel(member.queue());
        let (portions, asked_portions) =
            PortionCommands::channel(member.queue(), settings.portions.clone());
        let (status_tx, status_updates) = unbounded(status.queue());
        let (mailbox_tx, updates) = mailbox(state.queue());
        let senders = UpdateSenders { status: status_tx.clone(), state: mailbox_tx };
        let (shown, state_shown) = watch::channel(None);
        let others = Others {
            state: state_shown,
            members: member_commands.clone(),
            status: status_tx.clone(),
        };
        let overrides = OverrideLoop::new(
            &settings.state_directory,
            settings.conditions.clone(),
            (asked_overrides, overrides.clone()),
            others,
        );
        let counters = (settings.health_counters.clone(), member.clone());
        let members = MemberLoop::new(
            counters,
            words,
            sensed,
            (asked, asked_portions),
            senders,
            Initial {
                hold_downs: settings.hold_downs.take_restored(),
                overrides: overrides.in_force().borrow().clone(),
                portions: settings.portions.clone(),
            },
        );
        let status = StatusLoop::new(settings.clone(), reader, queries, status_updates);
        store.count_in(settings.store_counters.clone());
        let names = Names::new(settings.state_directory.clone(), settings.conditions.clone());
        let (publisher, publishing) = PublisherLoop::new(path, publisher.clone());
        let state = State {
            settings,
            store,
            publisher: publishing,
            sensors,
            configuration: Arc::new(Configuration::EMPTY),
            ids: Arc::default(),
            quarantine: Quarantine::default(),
            plan: None,
            behind: None,
            applies,
            store_tried_at: clock(),
            overrides: overrides.in_force(),
            shown,
            members: member_commands,
            updates,
            status: status_tx,
            configured: Arc::new(Configuration::EMPTY),
            view: View::default(),
            remaps: Remaps::default(),
            names,
        };
        Self { state, publisher, members, portions, overrides, status }
    }
}

impl State {
    /// Continues where the last daemon stopped: brings the packet path to the stored generation. States found
    /// in the maps stay until the checks of each backend decide. If the store has no generation, or one that
    /// cannot be used, the packet path stays as it is until the next apply.
    pub(super) async fn begin(&mut self) {
        self.report_unwritable_store();
        // Without a publisher the daemon is stopping.
        let Ok(named) = self.publisher.named().await else { return };
        let stored = self.store.ids().map(|ids| ids.within(&self.settings.sizes));
        self.ids = Arc::new(stored.unwrap_or_else(|| Ids::reserving(&named)));
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
        let Some(stored) = self.store.generation() else { return };
        let configuration = Arc::clone(&stored.configuration);
        // Only maps that were made anew, of other sizes, can be too small.
        if let Err(too_many) = room::fits(&configuration, &self.settings.sizes) {
            let cause = format!("{too_many}; {}", too_many.hint());
            self.store.set_aside(cause);
            self.report_unusable();
            return;
        }
        let own = self.settings.region.as_ref();
        let homes =
            Remaps::recover(&configuration, own, &self.ids, &self.publisher.published().homes);
        let basis = Basis {
            configuration: Arc::clone(&configuration),
            mark_outs: Arc::clone(&homes.mark_outs),
            ..self.basis()
        };
        match self.build_plan(&basis).await {
            Err(_) => return,
            Ok(Ok(plan)) => self.plan = Some(plan),
            Ok(Err(error)) => {
                let cause = error_chain::message(&error);
                self.store.set_aside(format!("its tables cannot be computed: {cause}"));
                self.report_unusable();
                return;
            }
        }
        self.remaps = homes;
        self.configuration = configuration;
        let generation = self.generation();
        tracing::info!(generation, "store: continuing with generation {generation}");
        // A failure becomes a condition, and is retried.
        let _ = self.publish(Arc::default()).await;
        self.tell_status();
        self.follow_configuration().await;
        self.write_directory().await;
    }
}

impl State {
    pub(super) fn report_unusable(&self) {
        let Some(unusable) = self.store.unusable() else { return };
        let Unusable { number, cause, .. } = &**unusable;
        let cause = format!(
            "generation {number} cannot be used: {cause}; packets are forwarded as before, but health and next hops are \
             frozen until a valid configuration is applied (`spillway export` shows the stored one)"
        );
        self.settings.conditions.begin(&STORED, &cause);
    }

    /// Refuses an apply if fields that only the client, the daemon or the store knows would be lost. If any
    /// schema is accepted, returns this as a warning instead.
    pub(super) fn check_schemas(&self, apply: &Apply) -> Result<Option<Warning>, Refusal> {
        let daemon = self.settings.schema;
        let stored = self.store.unusable().map_or(Revision::FIRST, |unusable| unusable.schema);
        let agree = match apply.shared {
            // What the fleet has replaces what is stored, whichever is newer.
            Some(_) => SchemaMismatch::check_fleet(apply.schema, daemon),
            None if stored > daemon => Err(SchemaMismatch::NewerStore { stored, daemon }),
            None => SchemaMismatch::check_client(apply.schema, daemon),
        };
        let Err(mismatch) = agree else { return Ok(None) };
        // The administrator who sets `any-schema` accepts this for the configuration file, which is a setting
        // too.
        let by_file = self.settings.any_schema && matches!(apply.actor, Actor::File(_));
        match apply.any_schema || by_file {
            true => Ok(Some(Warning::new(WarningReason::Schema, mismatch.to_string()))),
            false => Err(Refusal::Schema(mismatch)),
        }
    }

    /// Warning for a configuration that replaces one that could not be used.
    pub(super) fn unusable_warning(&self) -> Option<Warning> {
        let number = self.store.unusable()?.number;
        let text = format!(
            "generation {number} could not be used, so the differences from it are unknown: all objects are listed \
             as added, and open connections may move"
        );
        Some(Warning::new(WarningReason::UnusableBefore, text))
    }
}
