mod audited;
mod calls;
mod generations;
mod objects;
mod overrides;
mod queries;
mod removals;
mod schema;
mod server;
mod stock_clients;
mod tls;
mod watches;

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Instant};

use hyper_util::rt::TokioIo;
use spillway_proto::v1::{self, spillway_client::SpillwayClient};
use tempfile::TempDir;
use tokio::{
    net::UnixStream,
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use super::*;
use crate::{audit::Audit, reload::Reloads};
use lb_base::{
    conditions::Conditions,
    loops::LoopEnd,
    queue::{QueueCounters, Sender, bounded},
};
use lb_config::document::Document;
use lb_control::{
    command::{Commands, OverrideEnds},
    members::Sensed,
    state::{Inbox, Loops, Sensors, Settings},
};
use lb_fake::{
    WEB,
    packet_path::{self, FakePacketPath, Heartbeats},
};
use lb_health::{AgentReport, Health, HealthChange, Target, Tunnels};
use lb_inspect::stats;
use lb_model::{Name, StateCause, StateReason, map_memory::Budget};
use lb_net::NetChange;
use lb_net::SourceRules;
use lb_publish::publisher::FollowedHost;
use lb_secure::{refusals::ApiRefusals, tls::Connection};
use lb_store::{Revision, Store};

/// A daemon with a real socket and a real store; its packet path is in memory, its sensors the test.
struct Daemon {
    directory: TempDir,
    commands: Commands,
    path: PathBuf,
    packets: FakePacketPath,
    health: Sender<HealthChange>,
    _network: Sender<NetChange>,
    _targets: watch::Receiver<Arc<Vec<Target>>>,
    stop: CancellationToken,
    server: JoinHandle<Result<(), ServeError>>,
    state: JoinHandle<LoopEnd>,
}

impl Daemon {
    fn start() -> Self {
        Self::made(Budget::default(), None, Audit::default())
    }

    fn with(map_memory: Budget) -> Self {
        Self::made(map_memory, None, Audit::default())
    }

    /// One that notes changes in a file of its directory.
    fn with_audit_file() -> (Self, Audit, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit");
        let audit = Audit::open(Some(&path), Conditions::default()).unwrap();
        let store = Store::open(directory.path()).unwrap();
        let override_ends = OverrideEnds::new(audit.clone());
        let settings = Settings { override_ends, ..Settings::default() };
        let daemon = Self::over(directory, store, settings, None, audit.clone());
        (daemon, audit, path)
    }

    /// One that notes changes.
    fn noting(audit: Audit) -> Self {
        Self::made(Budget::default(), None, audit)
    }

    /// One that also takes connections from elsewhere, and notes changes.
    fn with_remote(remote: mpsc::Receiver<Connection>, audit: Audit) -> Self {
        Self::made(Budget::default(), Some(remote), audit)
    }

    fn made(map_memory: Budget, remote: Option<mpsc::Receiver<Connection>>, audit: Audit) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let settings = Settings { map_memory, ..Settings::default() };
        Self::over(directory, store, settings, remote, audit)
    }

    /// One of a schema revision.
    fn of_schema(schema: Revision) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let settings = Settings { schema, ..Settings::default() };
        Self::over(directory, store, settings, None, Audit::default())
    }

    fn over(
        directory: TempDir,
        store: Store,
        settings: Settings,
        remote: Option<mpsc::Receiver<Connection>>,
        audit: Audit,
    ) -> Self {
        let path = directory.path().join("run/spillwayd.sock");
        let packets = FakePacketPath::default();
        let stop = CancellationToken::new();
        let (commands, requests) = Commands::channel();
        let (health, heard) = bounded(16, &QueueCounters::default());
        let (changes, network) = bounded(16, &QueueCounters::default());
        let sensors = Sensors::default();
        let targets = sensors.targets.subscribe();
        let settings = Settings { state_directory: directory.path().into(), ..settings };
        let inbox = Inbox { sensed: Sensed { health: heard, network }, requests };
        let paths = (packets.clone(), packets.clone(), packets.clone());
        let loops = Loops::new(settings, store, paths, sensors, inbox);
        let heartbeats = Heartbeats::every(std::time::Duration::from_secs(1));
        Self {
            commands: commands.clone(),
            server: serving(&path, remote, (commands, audit), stop.clone()),
            state: packet_path::spawn(loops, &heartbeats, &stop),
            directory,
            path,
            packets,
            health,
            _network: changes,
            _targets: targets,
            stop,
        }
    }

    /// Stops it; what is left is its disk.
    async fn stop(self) -> TempDir {
        self.stop.cancel();
        self.server.await.unwrap().unwrap();
        assert_eq!(self.state.await.unwrap(), LoopEnd::Stopped);
        self.directory
    }

    async fn client(&self) -> SpillwayClient {
        SpillwayClient::new(self.channel().await)
    }

    async fn channel(&self) -> Channel {
        channel(self.path.clone()).await
    }

    /// Reports what checks found, and waits until the daemon has it.
    async fn judge(&self, address: &str, healthy: bool) {
        self.report(address, healthy).await;
        // The member loop takes a change and tells of it in one go, and the status loop takes updates before questions.
        while self.health.counters().length() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Reports what checks found.
    async fn report(&self, address: &str, healthy: bool) {
        let (pool, address) = (Name::new("web").unwrap(), address.parse::<IpAddr>().unwrap());
        let (health, reason) = match healthy {
            true => {
                let reason = StateReason::new(StateCause::ChecksPass, "all checks pass");
                (Health::Passing, reason)
            }
            false => {
                let check = Name::new("tcp").unwrap();
                let reason = StateReason::check_fails(&check, "check tcp: timed out".into());
                (Health::Silent, reason)
            }
        };
        let report = AgentReport::default();
        let change = HealthChange {
            pool,
            address,
            health,
            undecided: None,
            reason,
            first: false,
            report,
            at: Instant::now(),
        };
        self.health.send(change).await.unwrap();
    }
}

/// A channel through a unix socket.
async fn channel(path: PathBuf) -> Channel {
    connect(Endpoint::from_static("http://spillwayd"), path).await
}

/// The same with settings of the client's own.
async fn connect(endpoint: Endpoint, path: PathBuf) -> Channel {
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await.unwrap()
}

/// The socket for reading beside the other one.
fn read_only(path: &std::path::Path) -> PathBuf {
    path.with_file_name("read-only.sock")
}

fn serving(
    path: &std::path::Path,
    remote: Option<mpsc::Receiver<Connection>>,
    (commands, audit): (Commands, Audit),
    stop: CancellationToken,
) -> JoinHandle<Result<(), ServeError>> {
    let (socket, listener) = Socket::bind(path, Rights::default()).unwrap();
    let (second_socket, second) = Socket::bind(&read_only(path), Rights::default()).unwrap();
    // No packet path is pinned there.
    let nowhere = path.with_file_name("bpf");
    let counters = stats::Source { bpffs: nowhere.clone(), state_directory: nowhere };
    tokio::spawn(async move {
        let _sockets = (socket, second_socket);
        let tunnels =
            Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into()));
        // Settings are read again by nothing here.
        let (reloads, _) = Reloads::channel();
        let host = FollowedHost::default();
        let changes = commands.into();
        let handles = Handles { changes, audit, counters, tunnels, reloads, host };
        serve((listener, Some(second)), remote, handles, ApiRefusals::default(), stop).await
    })
}

/// [`WEB`] behind an IPv6 address, with a key.
fn configuration() -> v1::Configuration {
    let key = "hash_key = \"000102030405060708090a0b0c0d0e0f\"";
    let text = format!("{key}\n{}", WEB.replace("192.0.2.1", "2001:db8::1"));
    Document::parse(&text).unwrap().into()
}

fn apply(configuration: v1::Configuration) -> v1::ApplyRequest {
    let schema_revision = spillway_proto::SCHEMA_REVISION.into();
    v1::ApplyRequest { configuration: Some(configuration), schema_revision, ..Default::default() }
}
