//! The balancer, from its arguments to its exit status: [`Resources`] opens everything that the host may refuse,
//! [`Tasks`] starts what runs on it, waits until the first of them ends, and stops the others in order.

mod configured_addresses;
mod fleet;
mod listeners;
mod loops;
mod own_addresses;
mod resources;
mod sensors;

use std::{ffi::OsString, time::Duration};

use tokio::{runtime::Handle, signal::unix::Signal, task::JoinHandle, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Failure,
    arguments::BalancerArguments,
    log::Log,
    settings::SettingValues,
    signals::{self, StopSignals},
};
use crate::watchdog::Watchdog;
use fleet::start_fleet;
use lb_api::Socket;
use lb_base::conditions::Conditions;
use lb_control::{BalancerAddresses, FollowedFile, WaitingSettings, command::OverrideEnds};
use lb_health::Tunnels;
use lb_inspect::stats;
use lb_maps::Pins;
use lb_member::Membership;
use lb_observe::metrics::Live;
use lb_publish::publisher::FollowedHost;
use listeners::{ListenerLinks, ListenerTasks, start_listeners};
use loops::{LoopLinks, LoopTasks, start_loops};
use resources::Resources;
use sensors::{SensorTasks, start_sensors};

/// Longest time from the signal until the loops have ended. Calls under way have a part of it, and after it the health state is
/// saved. The service manager waits for 15 s.
const LOOPS: Duration = Duration::from_secs(7);

/// Runs until a signal stops it, or until a part of it fails. Health checks, next hops and the member loop run on
/// `sensors`.
pub(super) async fn run(
    arguments: BalancerArguments,
    line: Vec<OsString>,
    values: SettingValues,
    log: &Log,
    sensors: Handle,
) -> Result<(), Failure> {
    let hangups = signals::hangups()?;
    let watchdog = Watchdog::from_environment().map_err(|error| Failure::from_chain(&error))?;
    let mut shared = Shared::default();
    shared.live.log_dropped = log.dropped();
    shared.followed.set(arguments.apply.clone());
    tokio::spawn(log.clone().keep_condition(shared.conditions.clone()));
    let resources = Resources::open(&arguments, &shared, &watchdog, log).await?;
    let fleet_address = resources.fleet.address();
    let sources = arguments.sources()?;
    tokio::spawn(configured_addresses::follow(sources, fleet_address, shared.conditions.clone()));
    let named = own_addresses::of_settings(&arguments, fleet_address)?;
    let followed = (shared.balancer_addresses.clone(), shared.host.clone());
    own_addresses::follow(named, followed).await?;
    let audit = resources.listeners.audit.clone();
    shared.override_ends = OverrideEnds::new(audit.clone());
    let pins = Pins::new(&arguments.options().bpffs, lb_maps::Component::Balancer);
    super::record_start(&pins, &line);

    let stop = CancellationToken::new();
    let stop_guard = stop.clone().drop_guard();
    let counters = stats::Source {
        bpffs: arguments.options().bpffs,
        state_directory: arguments.state_dir.clone(),
    };
    let start = Start { arguments, watchdog, shared, counters, sensors, stop };
    let inputs = ReloadInputs { line, values, hangups };
    // Before READY is sent: the service manager may stop a daemon that is ready.
    let signals = StopSignals::listen()?;
    let mut tasks = Tasks::start(start, inputs, resources)?;

    let end = tokio::select! {
        () = signals.next() => Ok(()),
        failure = tasks.failed() => Err(failure),
    };
    tasks.stop(stop_guard).await;
    audit.flush().await;
    end
}

/// What several parts of the daemon write and show.
#[derive(Clone, Debug, Default)]
struct Shared {
    conditions: Conditions,
    waiting: WaitingSettings,
    live: Live,
    /// The file of `--apply`.
    followed: FollowedFile,
    balancer_addresses: BalancerAddresses,
    host: FollowedHost,
    override_ends: OverrideEnds,
}

/// What [`Tasks::start`] needs besides the [`Resources`].
struct Start {
    arguments: BalancerArguments,
    watchdog: Watchdog,
    shared: Shared,
    counters: stats::Source,
    /// Where health checks, next hops and the member loop run.
    sensors: Handle,
    stop: CancellationToken,
}

/// What a reload compares the settings with, and when it is asked for.
struct ReloadInputs {
    line: Vec<OsString>,
    values: SettingValues,
    hangups: Signal,
}

/// Everything that runs. None of it ends before it is stopped, except by a failure.
struct Tasks {
    loops: LoopTasks,
    sensors: SensorTasks,
    fleet: Membership,
    listeners: ListenerTasks,
    watchdog: JoinHandle<()>,
    _sockets: Vec<Socket>,
}

impl Tasks {
    /// In the order of what needs what: sensors report to loops, a fleet acts through them, calls need all of these.
    fn start(
        mut start: Start,
        inputs: ReloadInputs,
        resources: Resources,
    ) -> Result<Self, Failure> {
        let Resources { loops, sensors, fleet, mut listeners } = resources;
        let hold_downs = sensors.health_state.hold_downs.clone();
        let (loops, links) = start_loops(&mut start, loops, hold_downs, &fleet)?;
        let LoopLinks { commands, portions, sensors: sensor_links, heartbeat } = links;
        let tunnels = Tunnels::new(sensor_links.sources.clone(), crate::attach_tunnel_program);
        let sensors = start_sensors(&mut start, sensors, sensor_links, tunnels.clone())?;
        let fleet = start_fleet(&start, fleet, &commands, portions);
        let _sockets = std::mem::take(&mut listeners.sockets);
        let links = ListenerLinks { commands, membership: fleet.clone(), tunnels };
        let (listeners, file_applied) = start_listeners(&start, listeners, links, inputs);
        let Start { watchdog, stop, .. } = start;
        let watchdog = tokio::spawn(async move {
            // READY means that the daemon has tried to serve what its file says. If that failed, the status line
            // says so.
            tokio::select! {
                _ = file_applied => {}
                () = stop.cancelled() => {}
            }
            watchdog.run(heartbeat, stop.cancelled_owned()).await;
        });
        Ok(Self { loops, sensors, fleet, listeners, watchdog, _sockets })
    }

    /// The failure of the first task that ends. The loops come first: when one of them ends, tasks that need it follow.
    async fn failed(&mut self) -> Failure {
        tokio::select! {
            biased;
            failure = self.loops.failed() => failure,
            failure = self.sensors.failed() => failure,
            failure = self.listeners.failed() => failure,
        }
    }

    /// Stops all tasks: answers calls under way within their deadline, closes the store, tells the service manager. Each needs
    /// those that are stopped after it. What waits for a disk that does not answer is left behind, so that this ends before the
    /// service manager kills the daemon.
    async fn stop(self, stop_guard: DropGuard) {
        let until = Instant::now() + LOOPS;
        self.listeners.stop(stop_guard).await;
        self.fleet.stop().await;
        self.loops.stop(until).await;
        self.sensors.stop().await;
        // Last, because until then the service manager waits for this daemon.
        let _ = self.watchdog.await;
    }
}
