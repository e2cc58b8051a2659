//! The daemon's own server, state and store, in one thread.

use hyper_util::rt::TokioIo;
use lb_api::{Handles, Rights, Socket, audit::Audit, reload::Reloads, serve};
use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, Sender, bounded},
};
use lb_control::{
    command::Commands,
    members::Sensed,
    state::{Inbox, Loops, Sensors, Settings},
};
use lb_health::Tunnels;
use lb_inspect::stats;
use lb_model::map_memory::Budget;
use lb_net::SourceRules;
use lb_publish::publisher::FollowedHost;
use lb_secure::refusals::ApiRefusals;
use lb_store::Store;
use prost::{
    Message as _,
    bytes::{Buf, BufMut},
};
use spillway_proto::v1;
use tempfile::TempDir;
use tokio::{
    net::UnixStream,
    runtime::{Builder, Runtime},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};

use super::{methods::Method, quiet::Quiet};

/// Most that the maps may take, bytes: a table of the default size and small ones.
const MAPS: u64 = 4 << 20;

/// A daemon that answers while somebody waits for it.
pub(super) struct Daemon {
    runtime: Runtime,
    channel: Channel,
    _directory: TempDir,
    _stop_guard: DropGuard,
    // Whoever is at the other end of these must not be gone.
    _health: Sender<lb_health::HealthChange>,
    _network: Sender<lb_net::NetChange>,
}

impl Daemon {
    pub(super) fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let directory = tempfile::tempdir().expect("a folder");
        let path = directory.path().join("run/spillwayd.sock");
        let stop = CancellationToken::new();
        let stop_guard = stop.clone().drop_guard();
        let (commands, requests) = Commands::channel();
        let (health, heard) = bounded(1, &QueueCounters::default());
        let (changes, network) = bounded(1, &QueueCounters::default());
        let inside = runtime.enter();
        let (socket, listener) = Socket::bind(&path, Rights::default()).expect("a socket");
        let store = Store::open(directory.path()).expect("a store");
        let settings = Settings {
            state_directory: directory.path().into(),
            map_memory: Budget { made: Vec::new(), limit: Some(MAPS) },
            ..Settings::default()
        };
        let inbox = Inbox { sensed: Sensed { health: heard, network }, requests };
        let (packets, sensors) = (Quiet::default(), Sensors::default());
        let paths = (packets.clone(), packets.clone(), packets);
        let Loops { state, publisher, members, overrides, status, .. } =
            Loops::new(settings, store, paths, sensors, inbox);
        let heartbeat = Heartbeat::unwatched(std::time::Duration::from_secs(1));
        runtime.spawn(status.run(heartbeat.clone(), stop.clone().cancelled_owned()));
        runtime.spawn(members.run(heartbeat.clone(), stop.clone().cancelled_owned()));
        runtime.spawn(publisher.run(heartbeat.clone()));
        runtime.spawn(overrides.run(heartbeat.clone(), stop.clone().cancelled_owned()));
        runtime.spawn(state.run(heartbeat, stop.clone().cancelled_owned()));
        runtime.spawn(serving(listener, socket, commands, stop));
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://spillwayd");
        let channel = endpoint.connect_with_connector_lazy(connector);
        drop(inside);
        Self {
            runtime,
            channel,
            _directory: directory,
            _stop_guard: stop_guard,
            _health: health,
            _network: changes,
        }
    }

    /// Puts a configuration in force that has nothing in it but the numbers of generations before.
    pub(super) fn begin_anew(&self) {
        let schema_revision = spillway_proto::SCHEMA_REVISION.into();
        let nothing =
            v1::ApplyRequest { force: true, schema_revision, ..v1::ApplyRequest::default() };
        let nothing = nothing.encode_to_vec();
        let method = |path: &str| Method { path: path.into(), streams: false, writes: true };
        self.call(&method("/spillway.v1.Spillway/Apply"), &nothing).expect("nothing is valid");
    }

    /// The first answer to a call; nothing, where a stream has none.
    pub(super) fn call(&self, method: &Method, message: &[u8]) -> Result<Vec<u8>, Status> {
        self.runtime.block_on(async {
            let mut grpc = Grpc::new(self.channel.clone());
            grpc.ready().await.expect("it is there");
            let path = method.path.parse().expect("a path");
            let request = Request::new(message.to_vec());
            if !method.streams {
                return grpc.unary(request, path, Raw).await.map(tonic::Response::into_inner);
            }
            let answer = grpc.server_streaming(request, path, Raw).await?;
            Ok(answer.into_inner().message().await?.unwrap_or_default())
        })
    }

    /// Number and content of the generation in force.
    pub(super) fn in_force(&self) -> (u64, v1::Configuration) {
        let export =
            Method { path: "/spillway.v1.Spillway/Export".into(), streams: false, writes: false };
        let answer = self.call(&export, &[]).expect("it can always be said");
        let answer = v1::ExportResponse::decode(&answer[..]).expect("our own message");
        (answer.generation, answer.configuration.unwrap_or_default())
    }
}

async fn serving(
    listener: tokio::net::UnixListener,
    _socket: Socket,
    commands: Commands,
    stop: CancellationToken,
) {
    // No packet path is pinned there.
    let nowhere = std::path::PathBuf::from("/nonexistent");
    let counters = stats::Source { bpffs: nowhere.clone(), state_directory: nowhere };
    let tunnels =
        Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into()));
    // Settings are read again by nothing here.
    let (reloads, _) = Reloads::channel();
    let (audit, host) = (Audit::default(), FollowedHost::default());
    let handles = Handles { changes: commands.into(), audit, counters, tunnels, reloads, host };
    serve((listener, None), None, handles, ApiRefusals::default(), stop).await.expect("it serves");
}

/// Messages as bytes.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length).to_vec()))
    }
}
