//! The sensors: health checks, next hops and the displaced check.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

use super::{
    Start,
    loops::{ThreadTask, on_own_thread},
};
use crate::app::{
    Failure,
    interface_keeper::InterfaceKeeper,
    interfaces::{self, Vlan},
};
use lb_base::{error_chain, heartbeat::Heartbeat, queue::Sender};
use lb_control::health_state::{HealthState, Keeper};
use lb_health::{HealthChange, Prober, Target, Tunnels};
use lb_maps::Attached;
use lb_net::{ConfiguredInterfaces, NetChange, NetError, NextHops, SourceRules};
use lb_publish::reconcile::FlowWalk;

pub(super) struct SensorResources {
    pub(super) attached: Arc<Attached>,
    pub(super) keeper: InterfaceKeeper,
    pub(super) configured: ConfiguredInterfaces,
    pub(super) health_state: HealthState,
}

/// What the loops tell the sensors to watch, and where the sensors report to.
pub(super) struct SensorLinks {
    pub(super) targets: watch::Receiver<Arc<Vec<Target>>>,
    pub(super) addresses: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
    /// What the sources of tunnels follow.
    pub(super) sources: SourceRules,
    pub(super) health_tx: Sender<HealthChange>,
    pub(super) network_tx: Sender<NetChange>,
}

pub(super) struct SensorTasks {
    flow_walk: ThreadTask<()>,
    prober: JoinHandle<()>,
    next_hops: JoinHandle<Result<(), NetError>>,
    interfaces: JoinHandle<Failure>,
    health_state: Keeper,
    /// Keeps other daemons from the maps until the last loop has ended.
    attached: Arc<Attached>,
}

pub(super) fn start_sensors(
    start: &mut Start,
    resources: SensorResources,
    links: SensorLinks,
    tunnels: Tunnels,
) -> Result<SensorTasks, Failure> {
    let Start { watchdog, shared, counters, sensors: on_sensors, stop, .. } = start;
    let bpffs = &counters.bpffs;
    tokio::task::spawn_blocking({
        let bpffs: PathBuf = bpffs.clone();
        move || trace_drops(&bpffs)
    });
    let SensorLinks { targets, addresses, sources, health_tx, network_tx } = links;
    let check_beat = watchdog.register("check");
    let (configured_tx, configured) = watch::channel(Arc::new(resources.configured));
    let (prober, next_hops) = {
        let _on_sensors = on_sensors.enter();
        let (checks, streaks) =
            (shared.live.checks.clone(), resources.health_state.streaks.clone());
        (
            Prober::spawn(targets, health_tx, check_beat, checks, tunnels, streaks),
            NextHops::spawn(addresses, sources, network_tx, configured)
                .map_err(|error| Failure::about("next hops", &error))?,
        )
    };
    // The prober has taken what an earlier daemon left of streaks.
    let health_state = resources.health_state.keep();
    let walk_beat = watchdog.register("flow table");
    let walk = FlowWalk::open(bpffs).map_err(|error| Failure::about("flow table", &error))?;
    let stopped = stop.clone().cancelled_owned();
    let walk = walk.run(shared.conditions.clone(), walk_beat, stopped);
    let flow_walk = on_own_thread("flows", Handle::current(), walk)?;
    let attached = resources.attached;
    let interfaces = tokio::spawn(keep_interfaces(
        resources.keeper,
        watchdog.register("interfaces"),
        Arc::clone(&attached),
        (start.arguments.vlan.clone(), configured_tx),
    ));
    Ok(SensorTasks { flow_walk, prober, next_hops, interfaces, health_state, attached })
}

impl SensorTasks {
    /// The failure of the first sensor that ends.
    pub(super) async fn failed(&mut self) -> Failure {
        tokio::select! {
            biased;
            ended = &mut self.next_hops => match ended {
                Ok(Err(error)) => Failure::about("next hops", &error),
                _ => Failure::new("next hops: the task ended unexpectedly"),
            },
            ended = &mut self.interfaces => match ended {
                Ok(failure) => failure,
                Err(_) => Failure::new("interfaces: the task ended unexpectedly"),
            },
            _ = &mut self.prober => Failure::new("health checks: the task ended unexpectedly"),
            _ = &mut self.flow_walk.result => Failure::new("flow walk: ended unexpectedly"),
        }
    }

    /// To be called once the loops have ended.
    pub(super) async fn stop(self) {
        // While no other daemon has the maps, and so the file.
        self.health_state.stop().await;
        self.interfaces.abort();
        let _ = self.interfaces.await;
        drop(self.attached);
        // The prober sees that the member loop is gone, removes its tunnels, and ends. A task that has ended must not be
        // awaited a second time.
        if !self.prober.is_finished() {
            let _ = self.prober.await;
        }
        let _ = self.flow_walk.thread.join();
    }
}

/// Keeps the program on its interfaces, and tells which indices the interfaces of the settings have then.
async fn keep_interfaces(
    mut keeper: InterfaceKeeper,
    heartbeat: Heartbeat,
    attached: Arc<Attached>,
    (settings, configured_tx): (Vec<Vlan>, watch::Sender<Arc<ConfiguredInterfaces>>),
) -> Failure {
    loop {
        if let Err(failure) = keeper.next().await {
            return failure;
        }
        // One that is gone has no index, and keeps its last one here.
        let known = Arc::clone(&configured_tx.borrow());
        let vlans = interfaces::vlan_ids(&settings).await.unwrap_or_else(|_| known.vlans.clone());
        let now = ConfiguredInterfaces { attached: attached.indices(), vlans };
        if now != *known {
            configured_tx.send_replace(Arc::new(now));
        }
        heartbeat.beat();
    }
}

/// Has the kernel's tracepoints count what is dropped after the packet program. A kernel without them is no reason to
/// complain: drivers count most of it.
fn trace_drops(bpffs: &Path) {
    match lb_maps::attach_tracepoints(&lb_programs::OBJECTS, bpffs) {
        Ok(()) => tracing::info!(
            "the kernel's tracepoints count what is dropped after the packet program"
        ),
        Err(error) => {
            let error = error_chain::message(&error);
            tracing::info!(error, "drops after the packet program are not traced: {error}");
        }
    }
}
