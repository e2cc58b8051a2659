//! The five loops, each on a thread of its own.

use std::thread;

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{Start, fleet::FleetResources, sensors::SensorLinks};
use crate::app::Failure;
use lb_base::{heartbeat::Heartbeat, loops::LoopEnd, queue::bounded};
use lb_common::abi::sizes::MapSizes;
use lb_control::{
    command::Commands,
    health_state::HoldDowns,
    members::{PortionCommands, Sensed},
    state::{Inbox, Loops, Sensors, Settings},
};
use lb_model::{map_memory::Budget, next_hop::GivenSources};
use lb_net::SourceRules;
use lb_publish::reconcile::{MemberWords, Reader, Reconciler};
use lb_store::{Revision, Store};

/// Results of health checks and news of next hops that may wait while the member loop is busy.
const SENSOR_QUEUE: usize = 4096;

pub(super) struct LoopResources {
    pub(super) store: Store,
    pub(super) reconciler: Reconciler,
    pub(super) member_words: MemberWords,
    pub(super) reader: Reader,
    /// Source addresses of tunnels that the settings give.
    pub(super) sources: GivenSources,
    pub(super) sizes: MapSizes,
    pub(super) map_memory: Budget,
}

/// What others ask the loops by.
pub(super) struct LoopLinks {
    pub(super) commands: Commands,
    pub(super) portions: PortionCommands,
    pub(super) sensors: SensorLinks,
    /// Of the state loop.
    pub(super) heartbeat: Heartbeat,
}

pub(super) struct LoopTasks {
    state: ThreadTask<LoopEnd>,
    publisher: ThreadTask<LoopEnd>,
    members: ThreadTask<LoopEnd>,
    overrides: ThreadTask<LoopEnd>,
    status: ThreadTask<LoopEnd>,
}

/// Starts the loops that are told before those that tell them, so the state loop last.
pub(super) fn start_loops(
    start: &mut Start,
    resources: LoopResources,
    hold_downs: HoldDowns,
    fleet: &FleetResources,
) -> Result<(LoopTasks, LoopLinks), Failure> {
    let settings = settings(start, &resources, hold_downs, fleet);
    let queues = &start.shared.live.loops;
    let (commands, requests) = Commands::counted(queues);
    let (health_tx, health) = bounded(SENSOR_QUEUE, queues.member.queue());
    let (network_tx, network) = bounded(SENSOR_QUEUE, queues.member.queue());
    let sensors = Sensors::default();
    let (targets, addresses) = (sensors.targets.subscribe(), sensors.next_hops.subscribe());
    let sources = SourceRules::new(resources.sources, sensors.services.subscribe());
    let links = SensorLinks { targets, addresses, sources, health_tx, network_tx };
    let inbox = Inbox { sensed: Sensed { health, network }, requests };
    let LoopResources { store, reconciler, member_words, reader, .. } = resources;
    let paths = (reconciler, member_words, reader);
    let loops = Loops::new(settings, store, paths, sensors, inbox);
    let Loops { state, publisher, members, overrides, status, portions } = loops;

    let Start { watchdog, stop, .. } = start;
    let stopped = || stop.clone().cancelled_owned();
    // Of several loops that stall, the watchdog names the one that was registered first.
    let state_beat = watchdog.register("state");
    let links = LoopLinks { commands, portions, sensors: links, heartbeat: state_beat.clone() };
    let status_beat = watchdog.register("status");
    let status = status.run(status_beat, stopped());
    let status = on_own_thread("status", Handle::current(), status)?;
    let publisher_beat = watchdog.register("publisher");
    // It ends with the state loop.
    let publisher = on_own_thread("publisher", Handle::current(), publisher.run(publisher_beat))?;
    let members_beat = watchdog.register("members");
    // It ends with the state loop too, whose last apply needs it.
    let members = members.run(members_beat, std::future::pending());
    let members = on_own_thread("members", start.sensors.clone(), members)?;
    let overrides_beat = watchdog.register("overrides");
    let overrides = overrides.run(overrides_beat, stopped());
    let overrides = on_own_thread("overrides", Handle::current(), overrides)?;
    let state = state.run(state_beat, stopped());
    let state = on_own_thread("state", Handle::current(), state)?;
    Ok((LoopTasks { state, publisher, members, overrides, status }, links))
}

fn settings(
    start: &Start,
    resources: &LoopResources,
    hold_downs: HoldDowns,
    fleet: &FleetResources,
) -> Settings {
    let Start { arguments, shared, .. } = start;
    Settings {
        sizes: resources.sizes,
        map_memory: resources.map_memory.clone(),
        region: arguments.region.clone(),
        source_prefix: resources.sources.prefix_v4,
        balancer_addresses: shared.balancer_addresses.clone(),
        host: shared.host.clone(),
        state_directory: arguments.state_dir.clone(),
        publish_counters: shared.live.publish.clone(),
        health_counters: shared.live.health.clone(),
        loop_counters: shared.live.loops.clone(),
        store_counters: shared.live.store.clone(),
        hold_downs,
        conditions: shared.conditions.clone(),
        waiting_settings: shared.waiting.clone(),
        followed: shared.followed.clone(),
        any_schema: arguments.any_schema,
        schema: Revision::CURRENT,
        override_ends: shared.override_ends.clone(),
        membership: fleet.is_member.clone(),
        mark_out_decisions: fleet.homes.clone(),
        portions: fleet.portions.clone(),
    }
}

impl LoopTasks {
    /// The failure of the first loop that ends. The member loop comes first: when it ends, the others follow.
    pub(super) async fn failed(&mut self) -> Failure {
        tokio::select! {
            biased;
            ended = &mut self.members.result => Failure::new(match ended {
                Ok(LoopEnd::SensorEnded) => "member loop: health checks or next hops have ended",
                Ok(LoopEnd::Stopped) | Err(_) => "member loop: ended unexpectedly",
            }),
            _ = &mut self.state.result => Failure::new("state loop: ended unexpectedly"),
            _ = &mut self.publisher.result => Failure::new("publisher: ended unexpectedly"),
            _ = &mut self.overrides.result => Failure::new("override loop: ended unexpectedly"),
            _ = &mut self.status.result => Failure::new("status loop: ended unexpectedly"),
        }
    }

    /// Waits until all have ended. The state loop ends by itself once nothing is asked of it, and those that serve it follow.
    /// One that waits for the disk, such as to close the store, is left behind at `until`: it writes no maps any more.
    pub(super) async fn stop(self, until: Instant) {
        let Self { state, publisher, members, overrides, status } = self;
        let loops = [
            ("state", state.thread),
            ("publisher", publisher.thread),
            ("member", members.thread),
            ("override", overrides.thread),
            ("status", status.thread),
        ];
        for (name, thread) in loops {
            let ended = spawn_blocking(move || thread.join());
            if timeout_at(until, ended).await.is_err() {
                tracing::error!("the disk does not answer: the {name} loop is left behind");
            }
        }
    }
}

/// A loop on a thread of its own.
pub(super) struct ThreadTask<T> {
    pub(super) result: oneshot::Receiver<T>,
    pub(super) thread: thread::JoinHandle<()>,
}

/// Runs a loop on a thread of its own, which it may block. Its timers are those of `runtime`.
pub(super) fn on_own_thread<T: Send + 'static>(
    name: &str,
    runtime: Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<ThreadTask<T>, Failure> {
    let (result_tx, result) = oneshot::channel();
    let work = move || {
        // Nobody receives the result if the daemon ends for another reason.
        let _ = result_tx.send(runtime.block_on(work));
    };
    let thread = thread::Builder::new().name(name.into()).spawn(work);
    let thread = thread.map_err(|error| Failure::about(&format!("{name} thread"), &error))?;
    Ok(ThreadTask { result, thread })
}
