mod apply;
mod behind;
mod conditions;
mod fleet;
mod fleet_mark_outs;
mod fleet_overrides;
mod health;
mod history;
mod hold_down;
mod local_overrides;
mod loops;
mod next_hops;
mod overrides;
mod own_addresses;
mod portions;
mod remaps;
mod removals;
mod restart;
mod shares;
mod sizes;
mod slots;
mod storing;
mod watching;

use std::{
    collections::BTreeSet,
    net::IpAddr,
    time::{Duration, Instant},
};

use lb_common::abi::member::Accepts;
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::HealthCounters;
use crate::command::{Applied, Apply, BackendStatus, Commands, Event, Refusal, Status};
use crate::fake::{self, FakePacketPath, Heartbeats};
use crate::health_state::HoldDowns;
use crate::loops::AllLoopCounters;
use crate::members::{self, PortionCommands, Sensed};
use lb_base::{
    error_chain,
    heartbeat::Heartbeat,
    loops::{LoopCounters, LoopEnd},
    queue::{QueueCounters, Sender, bounded},
};
use lb_config::{Requested, document::Document};
use lb_fake::{WEB, test_disk::TestDisk};
use lb_health::{
    AgentReport,
    Health::{self, Failing, Passing, Silent},
    HealthChange, Row, Target,
};
use lb_model::{Name, StateCause, StateReason, capacity::Portions, next_hop::NextHop};
use lb_net::{NetChange, NextHopChange};
use lb_publish::reconcile::MemberPath as _;
use lb_store::{Revision, Store};

/// A daemon with a packet path in memory; the test plays the sensors.
struct Daemon {
    directory: TempDir,
    path: FakePacketPath,
    running: Running,
}

struct Running {
    commands: Commands,
    portions: PortionCommands,
    health: Sender<HealthChange>,
    network: Sender<NetChange>,
    targets: watch::Receiver<Arc<Vec<Target>>>,
    next_hop_targets: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
    heartbeats: Heartbeats,
    counters: HealthCounters,
    loops: AllLoopCounters,
    hold_downs: HoldDowns,
    followed: FollowedFile,
    balancer_addresses: BalancerAddresses,
    fleet: FleetHandles,
    stop: CancellationToken,
    ended: JoinHandle<LoopEnd>,
}

/// What a fleet tells the state loop by.
#[derive(Clone, Default)]
struct FleetHandles {
    membership: Membership,
    mark_outs: MarkOutDecisions,
}

impl Daemon {
    fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap(), FakePacketPath::default())
    }

    fn with(directory: TempDir, path: FakePacketPath) -> Self {
        let running = Running::start(&directory, &path);
        Self { directory, path, running }
    }

    /// One whose disk answers as the test says.
    fn with_disk() -> (Self, TestDisk) {
        let (directory, path) = (tempfile::tempdir().unwrap(), FakePacketPath::default());
        let mut store = Store::open(directory.path()).unwrap();
        let disk = TestDisk::default();
        store.inject(Arc::new(disk.clone()));
        let running = Running::over(store, &directory, &path, Duration::from_secs(1), false);
        (Self { directory, path, running }, disk)
    }

    fn beating(interval: Duration) -> Self {
        let (directory, path) = (tempfile::tempdir().unwrap(), FakePacketPath::default());
        let running = Running::beating(&directory, &path, interval);
        Self { directory, path, running }
    }

    /// Stops the daemon and starts another one with the same disk and packet path.
    async fn restart(&mut self) {
        self.restart_after(|_| ()).await;
    }

    /// Stops the daemon, runs `between`, and starts another one.
    async fn restart_after(&mut self, between: impl FnOnce(&FakePacketPath)) {
        self.stop().await;
        between(&self.path);
        self.running = Running::start(&self.directory, &self.path);
        self.running.begun().await;
    }

    /// Stops the daemon, and starts another one after `gap` that has what this one kept of hold-downs.
    async fn restart_keeping_hold_downs(&mut self, gap: Duration) {
        // The status loop shows them once a second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let saved = self.running.hold_downs.now(usize::MAX).unwrap();
        self.stop().await;
        let hold_downs = HoldDowns::restored(saved, members::clock());
        tokio::time::sleep(gap).await;
        let store = Store::open(self.directory.path()).unwrap();
        let (directory, path) = (&self.directory, &self.path);
        let outlives = (hold_downs, FleetHandles::default());
        self.running =
            Running::keeping(store, directory, path, Duration::from_secs(1), false, outlives);
        self.running.begun().await;
    }

    /// Stops the daemon, and starts another one that is told what a fleet decides as before, or by `fleet`.
    async fn restart_in_fleet(&mut self, fleet: FleetHandles) {
        self.stop().await;
        let store = Store::open(self.directory.path()).unwrap();
        let (directory, path) = (&self.directory, &self.path);
        let outlives = (HoldDowns::default(), fleet);
        self.running =
            Running::keeping(store, directory, path, Duration::from_secs(1), false, outlives);
        self.running.begun().await;
    }

    async fn stop(&mut self) {
        self.running.stop.cancel();
        assert_eq!((&mut self.running.ended).await.unwrap(), LoopEnd::Stopped);
    }

    async fn apply(&self, text: &str) -> Result<Applied, Refusal> {
        let configuration = request(text);
        self.running
            .commands
            .apply(Apply { configuration, ..Apply::default() }, None)
            .await
            .unwrap()
    }

    /// The same, however much it removes.
    async fn force(&self, text: &str) -> Result<Applied, Refusal> {
        let (configuration, force) = (request(text), true);
        let apply = Apply { configuration, force, ..Apply::default() };
        self.running.commands.apply(apply, None).await.unwrap()
    }

    async fn status(&self) -> Status {
        self.running.commands.status().await.unwrap().unwrap()
    }

    async fn backend(&self, pool: &str, address: &str) -> BackendStatus {
        let (pool, address) = (name(pool), ip(address));
        let status = self.status().await;
        let mut backends = status.backends();
        backends.find(|b| b.pool == pool && b.address == address).unwrap().clone()
    }

    /// Reports a change, and waits until the loops have it.
    async fn report(&self, change: HealthChange) {
        self.running.health.send(change).await.unwrap();
        self.heard().await;
    }

    /// Waits until the loops have what sensors reported.
    async fn heard(&self) {
        let Running { health, network, commands, .. } = &self.running;
        // The member loop takes a change and tells of it in one go.
        while health.counters().length() + network.counters().length() > 0 {
            tokio::task::yield_now().await;
        }
        // The status loop takes updates before questions.
        commands.export().await.unwrap();
        // The state loop takes its own before applies.
        tokio::task::yield_now().await;
    }

    /// Reports a complete row of results, and waits until the loops have it.
    async fn report_health(&self, pool: &str, address: &str, health: Health, reason: &str) {
        self.report(change(pool, address, health, reason)).await;
    }

    /// Reports an incomplete row of failures, of which three would decide, and waits until the loops have it.
    async fn report_first_failure(&self, pool: &str, address: &str, failed: u32, reason: &str) {
        let undecided = Some(Row { failed, fall: 3 });
        self.report(HealthChange { undecided, ..change(pool, address, Failing, reason) }).await;
    }

    /// Reports that checks pass, with an agent report, and waits until the loops have it.
    async fn report_agent(&self, pool: &str, address: &str, report: AgentReport) {
        let passing = change(pool, address, Passing, "all checks pass");
        self.report(HealthChange { report, ..passing }).await;
    }

    fn state(&self, pool: &str, address: &str) -> Accepts {
        self.path.state(&name(pool), ip(address)).unwrap()
    }
}

impl Running {
    /// Waits until the stored generation is in force.
    async fn begun(&self) {
        self.commands.export().await.unwrap();
    }

    fn start(directory: &TempDir, path: &FakePacketPath) -> Self {
        Self::beating(directory, path, Duration::from_secs(1))
    }

    fn beating(directory: &TempDir, path: &FakePacketPath, interval: Duration) -> Self {
        let store = Store::open(directory.path()).unwrap();
        Self::over(store, directory, path, interval, false)
    }

    fn over(
        store: Store,
        directory: &TempDir,
        path: &FakePacketPath,
        interval: Duration,
        any_schema: bool,
    ) -> Self {
        let outlives = (HoldDowns::default(), FleetHandles::default());
        Self::keeping(store, directory, path, interval, any_schema, outlives)
    }

    fn keeping(
        store: Store,
        directory: &TempDir,
        path: &FakePacketPath,
        interval: Duration,
        any_schema: bool,
        (hold_downs, fleet): (HoldDowns, FleetHandles),
    ) -> Self {
        let initial = (hold_downs, fleet, Portions::ByConfiguration);
        let schemas = (Revision::CURRENT, any_schema);
        Self::owning(store, directory, path, interval, schemas, initial)
    }

    /// With portions of the capacities from the start on, and the schema revision of another program.
    fn owning(
        store: Store,
        directory: &TempDir,
        path: &FakePacketPath,
        interval: Duration,
        (schema, any_schema): (Revision, bool),
        (hold_downs, fleet, portions): (HoldDowns, FleetHandles, Portions),
    ) -> Self {
        let (health, health_rx) = bounded(16, &QueueCounters::default());
        let (network, network_rx) = bounded(16, &QueueCounters::default());
        let sensors = Sensors::default();
        let (targets, next_hop_targets) =
            (sensors.targets.subscribe(), sensors.next_hops.subscribe());
        let (counters, stop) = (HealthCounters::default(), CancellationToken::new());
        let loop_counters = AllLoopCounters::default();
        let followed = FollowedFile::default();
        let balancer_addresses = BalancerAddresses::default();
        let (commands, requests) = Commands::counted(&loop_counters);
        let settings = Settings {
            region: Some(name("eu")),
            state_directory: directory.path().into(),
            schema,
            any_schema,
            sizes: path.content().sizes,
            health_counters: counters.clone(),
            loop_counters: loop_counters.clone(),
            hold_downs: hold_downs.clone(),
            portions,
            followed: followed.clone(),
            balancer_addresses: balancer_addresses.clone(),
            membership: fleet.membership.clone(),
            mark_out_decisions: fleet.mark_outs.clone(),
            ..Settings::default()
        };
        let sensed = Sensed { health: health_rx, network: network_rx };
        let inbox = Inbox { sensed, requests };
        let paths = (path.clone(), path.clone(), path.clone());
        let loops = Loops::new(settings, store, paths, sensors, inbox);
        let (heartbeats, portions) = (Heartbeats::every(interval), loops.portions.clone());
        let ended = fake::spawn(loops, &heartbeats, &stop);
        Self {
            commands,
            portions,
            health,
            network,
            targets,
            next_hop_targets,
            heartbeats,
            counters,
            loops: loop_counters,
            hold_downs,
            followed,
            balancer_addresses,
            fleet,
            stop,
            ended,
        }
    }
}

/// A complete row of results.
fn change(pool: &str, address: &str, health: Health, reason: &str) -> HealthChange {
    let cause = match health {
        Passing => StateCause::ChecksPass,
        Failing | Silent => StateCause::CheckFails,
    };
    HealthChange {
        pool: name(pool),
        address: ip(address),
        health,
        undecided: None,
        reason: StateReason::new(cause, reason),
        first: false,
        report: AgentReport::default(),
        at: Instant::now(),
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// What a file asks for.
fn request(text: &str) -> Requested {
    lb_config::validate(&Document::parse(text).unwrap().into()).unwrap()
}

/// The configuration that a file is for a new daemon.
fn parse(text: &str) -> Configuration {
    lb_config::validate_first(&Document::parse(text).unwrap().into()).unwrap()
}

/// [`WEB`] with a replacement.
fn web(from: &str, to: &str) -> String {
    assert!(WEB.contains(from), "{from}");
    WEB.replace(from, to)
}
