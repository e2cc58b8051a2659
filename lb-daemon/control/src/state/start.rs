use std::sync::Arc;

use tokio::sync::watch;

use super::{
    Current, Names, Publishing, Remaps, Sensors, Settings, State, StatusSenders, Storing,
    publishing::Basis,
};
use crate::{
    command::{Actor, Apply, Refusal, Requests, Warning, WarningReason},
    loops::AllLoopCounters,
    members::{
        Initial, MemberCommands, MemberLoop, PortionCommands, Sensed, UpdateSenders, mailbox,
    },
    overrides::{Others, OverrideLoop},
    status::StatusLoop,
};
use lb_base::{error_chain, queue::unbounded};
use lb_model::{
    ids::{Ids, Named},
    room,
};
use lb_publish::{
    publisher::{PacketPath, PublisherLoop},
    reconcile::{MemberPath, PathReader},
};
use lb_store::{Revision, SchemaMismatch, Store};

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
            ends: settings.override_ends.clone(),
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
        let (publisher, publishing) = PublisherLoop::new(path, publisher.clone(), &settings.host);
        let state = State {
            storing: Storing::new(store, settings.conditions.clone()),
            settings,
            current: Current::default(),
            publishing: Publishing::new(publishing, member_commands, updates, sensors),
            remaps: Remaps::default(),
            names,
            applies,
            overrides: overrides.in_force(),
            status: StatusSenders { overrides: shown, status: status_tx },
        };
        Self { state, publisher, members, portions, overrides, status }
    }
}

impl State {
    /// Continues where the last daemon stopped: brings the packet path to the stored generation. States found
    /// in the maps stay until the checks of each backend decide. If the store has no generation, or one that
    /// cannot be used, the packet path stays as it is until the next apply.
    pub(super) async fn begin(&mut self) {
        self.storing.report_unwritable();
        // Without a publisher the daemon is stopping.
        let Ok(named) = self.publishing.publisher.named().await else { return };
        let stored = self.storing.store.ids().map(|ids| ids.within(&self.settings.sizes));
        self.current.ids = Arc::new(stored.unwrap_or_else(|| Ids::reserving(&named)));
        if self.storing.generation() == 0 {
            if named != Named::default() {
                tracing::warn!(
                    "the store is empty, but the packet path still serves the configuration of an earlier \
                     daemon; it stays until the first apply"
                );
            }
            return;
        }
        if self.storing.store.unusable().is_some() {
            self.storing.report_unusable();
            return;
        }
        let Some(stored) = self.storing.store.generation() else { return };
        let configuration = Arc::clone(&stored.configuration);
        // Only maps that were made anew, of other sizes, can be too small.
        if let Err(too_many) = room::fits(&configuration, &self.settings.sizes) {
            let cause = format!("{too_many}; {}", too_many.hint());
            self.storing.set_aside(cause);
            return;
        }
        let own = self.settings.region.as_ref();
        let homes = Remaps::recover(
            &configuration,
            own,
            &self.current.ids,
            &self.publishing.publisher.published().homes,
        );
        let basis = Basis {
            configuration: Arc::clone(&configuration),
            mark_outs: Arc::clone(&homes.mark_outs),
            ..self.basis()
        };
        match self.build_plan(&basis).await {
            Err(_) => return,
            Ok(Ok(plan)) => self.current.plan = Some(plan),
            Ok(Err(error)) => {
                let cause = error_chain::message(&error);
                self.storing.set_aside(format!("its tables cannot be computed: {cause}"));
                return;
            }
        }
        self.remaps = homes;
        self.current.configuration = configuration;
        let generation = self.storing.generation();
        tracing::info!(generation, "store: continuing with generation {generation}");
        // A failure becomes a condition, and is retried.
        let _ = self.publish(Arc::default()).await;
        self.tell_status();
        self.follow_configuration().await;
        self.write_directory().await;
    }

    /// Refuses an apply if fields that only the client, the daemon or the store knows would be lost. If any
    /// schema is accepted, returns this as a warning instead.
    pub(super) fn check_schemas(&self, apply: &Apply) -> Result<Option<Warning>, Refusal> {
        let daemon = self.settings.schema;
        let stored =
            self.storing.store.unusable().map_or(Revision::FIRST, |unusable| unusable.schema);
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
}
