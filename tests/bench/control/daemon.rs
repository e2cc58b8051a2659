//! The daemon that is measured, in a network of its own with hosts that it can reach, and its clients.

use std::fs;
use std::future::Future;
use std::io::ErrorKind;
use std::os::unix::{fs::MetadataExt as _, net::UnixDatagram};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::Signal;
use spillway_proto::SCHEMA_REVISION;
use spillway_proto::v1::objects_client::ObjectsClient;
use spillway_proto::v1::overrides_client::OverridesClient;
use spillway_proto::v1::spillway_client::SpillwayClient;
use spillway_proto::v1::{
    ApplyRequest, ApplyResult, Backend, Configuration, OverrideKind, OverrideTarget,
    RemoveOverridesRequest, SetOverridesRequest, StatusRequest, StatusResponse,
    UpdateBackendRequest,
};
use tokio::runtime::{Builder, Runtime};
use tonic::Status;
use tonic::transport::Endpoint;

use lb_tests::daemon::{Binaries, HTTP_ADDRESS};
use lb_tests::process::Running;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Node, Topology};

use super::configuration::{BACKENDS, Fleet, REGION};

/// What a call or a start may take: all of them end some time, but slowly.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// Largest answer, bytes, as the command line takes it.
const MAX_ANSWER: usize = 64 << 20;
/// Longest packet on the link.
const MTU: u32 = 1600;

/// A balancer's host, and a host behind it that has all addresses of [`BACKENDS`].
#[derive(Debug)]
pub(crate) struct Network {
    /// Where the daemon runs.
    pub(crate) balancer: Node,
    /// Where backends' servers run.
    pub(crate) backends: Node,
    _topology: Topology,
}

impl Network {
    fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let mut topology = Topology::new(sandbox, name)?;
        let balancer = topology.node("balancer")?;
        let backends = topology.node("backends")?;
        topology.link(&balancer, "eth0", &backends, "eth0", MTU)?;
        // All checks may begin at the same moment.
        backends.sysctls(&[
            ("net.core.somaxconn", "65535"),
            ("net.ipv4.tcp_max_syn_backlog", "65535"),
            ("net.ipv4.tcp_syncookies", "0"),
        ])?;
        backends
            .ip(&format!("address add 10.0.0.1/24 dev eth0\nroute add local {BACKENDS} dev lo"))?;
        balancer.ip("address add 10.0.0.2/24 dev eth0\nroute add default via 10.0.0.1")?;
        topology.ready()?;
        Ok(Self { balancer, backends, _topology: topology })
    }
}

/// How many of what the daemon's maps have room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Pools, as many services and groups.
    pub(crate) pools: u32,
    /// Backends, each counted for each pool.
    pub(crate) backends: u32,
}

impl Room {
    /// Room for a fleet and another pool, changed again and again: in a remap a pool keeps its members from before, and
    /// what is free is in pieces.
    pub(crate) const fn for_fleet(fleet: Fleet) -> Self {
        Self { pools: fleet.pools + 1, backends: 3 * (fleet.size() + fleet.pools) + 1_000 }
    }

    /// The settings; none is below its default, or above its largest.
    fn arguments(self) -> Vec<String> {
        let things = self.pools.clamp(4_096, 10_000);
        let backends = self.backends.clamp(32_768, 400_000);
        [("services", things), ("pools", things), ("groups", things), ("pool-backends", backends)]
            .into_iter()
            .flat_map(|(setting, number)| [format!("--{setting}"), number.to_string()])
            .collect()
    }
}

/// What a daemon has besides its own directory.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Where its store is.
    pub(crate) state: Option<PathBuf>,
    /// Whether it logs to the journal's socket.
    pub(crate) has_journal: bool,
}

/// A release `spillwayd balancer`; its pins go with it.
#[derive(Debug)]
pub(crate) struct Daemon {
    // Before the network: ending a node ends its processes, and this one should be waited for.
    running: Option<Running>,
    /// Its network.
    pub(crate) network: Network,
    binaries: Binaries,
    room: Room,
    /// Its directory on the BPF file system.
    pub(crate) bpffs: PathBuf,
    state: PathBuf,
    has_journal: bool,
    /// Its socket.
    pub(crate) socket: PathBuf,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.running = None;
        // The sandbox's end does the rest; but until then the maps of each subject would take memory.
        let _ = fs::remove_dir_all(&self.bpffs);
    }
}

impl Daemon {
    /// Starts it with room for so much and nothing configured.
    ///
    /// # Errors
    /// When its network cannot be made, or it does not become ready.
    pub(crate) fn started(sandbox: &Sandbox, name: &str, room: Room) -> Result<Self> {
        Self::started_in(sandbox, name, room, Surroundings::default())
    }

    /// The same in such surroundings.
    ///
    /// # Errors
    /// As [`Self::started`].
    pub(crate) fn started_in(
        sandbox: &Sandbox,
        name: &str,
        room: Room,
        surroundings: Surroundings,
    ) -> Result<Self> {
        let Surroundings { state, has_journal } = surroundings;
        let network = Network::new(sandbox, name)?;
        let directory = network.balancer.directory().to_owned();
        let state = state.unwrap_or_else(|| directory.join("state"));
        fs::create_dir_all(&state).with_context(|| state.display().to_string())?;
        let bpffs = sandbox.bpffs(network.balancer.namespace()).context("make a directory")?;
        let (binaries, socket) = (Binaries::find()?, directory.join("spillwayd.sock"));
        let mut daemon =
            Self { running: None, network, binaries, room, bpffs, state, has_journal, socket };
        daemon.start()?;
        Ok(daemon)
    }

    /// Starts it. Answers the time from there to its `READY=1`.
    ///
    /// # Errors
    /// When it ends, or does not become ready.
    pub(crate) fn start(&mut self) -> Result<Duration> {
        let node = &self.network.balancer;
        let notify = node.directory().join("notify.sock");
        // One of an earlier start has messages that nothing read.
        if let Err(error) = fs::remove_file(&notify)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error).with_context(|| notify.display().to_string());
        }
        let messages = UnixDatagram::bind(&notify).with_context(|| notify.display().to_string())?;
        messages.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut command = node.command(&self.binaries.spillwayd);
        command.args(["balancer", "--interface", "eth0", "--region", REGION]);
        command.arg("--bpffs").arg(&self.bpffs).arg("--state-dir").arg(&self.state);
        command.arg("--socket").arg(&self.socket);
        command.args(["--http", &HTTP_ADDRESS.to_string()]).args(self.room.arguments());
        command.env("NOTIFY_SOCKET", &notify).env_remove("WATCHDOG_USEC");
        let begin = Instant::now();
        let log = node.directory().join("spillwayd.log");
        if self.has_journal {
            // It is told that the journal reads the file that its stderr is, and so it speaks to the journal's socket.
            let file = fs::File::create(&log)?.metadata()?;
            command.env("JOURNAL_STREAM", format!("{}:{}", file.dev(), file.ino()));
        }
        let running = self.running.insert(Running::start("spillwayd", &mut command, &log)?);
        let mut buffer = [0; 4096];
        while begin.elapsed() < PATIENCE {
            running.check()?;
            match messages.recv(&mut buffer) {
                Ok(length) if is_ready(&buffer[..length]) => return Ok(begin.elapsed()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("read what the daemon notifies"),
            }
        }
        bail!("spillwayd: not ready within {PATIENCE:?}:\n{}", running.output());
    }

    /// Ends it as a service manager would.
    ///
    /// # Errors
    /// When it does not run, or ends with another code than 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let mut running = self.running.take().context("the daemon does not run")?;
        running.signal(Signal::SIGTERM)?;
        let status = running.wait()?;
        anyhow::ensure!(status.success(), "spillwayd: {status}\n{}", running.output());
        Ok(())
    }

    /// A connection to it.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn client(&self) -> Result<Client> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stubs = runtime.block_on(Stubs::connect(&self.socket))?;
        Ok(Client { runtime, stubs })
    }

    /// CPU time that it has used, in user and kernel mode. The kernel counts hundredths of a second.
    ///
    /// # Errors
    /// When it does not run.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = self.read_proc("stat")?;
        parse_cpu(&stat).with_context(|| stat.clone())
    }

    /// A line of its `status` that counts kB, as `VmRSS`; in bytes.
    ///
    /// # Errors
    /// When it does not run.
    pub(crate) fn memory(&self, line: &str) -> Result<u64> {
        let status = self.read_proc("status")?;
        parse_memory(&status, line).with_context(|| format!("{line} of {status}"))
    }

    fn read_proc(&self, file: &str) -> Result<String> {
        let pid = self.running.as_ref().context("the daemon does not run")?.id();
        let path = format!("/proc/{pid}/{file}");
        fs::read_to_string(&path).context(path)
    }
}

/// Whether a message of sd_notify(3) says that the daemon is ready.
fn is_ready(message: &[u8]) -> bool {
    message.split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
}

/// The fields 14 and 15, in hundredths of a second (proc(5)). The second field is a name in parentheses, which may
/// contain anything.
fn parse_cpu(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse);
    let (user, kernel): (u64, u64) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Duration::from_millis(10 * (user + kernel)))
}

fn parse_memory(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// The calls of the API, over one connection.
#[derive(Clone, Debug)]
pub(crate) struct Stubs {
    /// Of the daemon as a whole.
    pub(crate) spillway: SpillwayClient,
    /// Of single objects.
    pub(crate) objects: ObjectsClient,
    /// Of overrides.
    pub(crate) overrides: OverridesClient,
}

impl Stubs {
    /// Connects to a socket.
    ///
    /// # Errors
    /// When nothing answers there.
    pub(crate) async fn connect(socket: &std::path::Path) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()))?;
        let channel = endpoint.connect().await.context("connect to the daemon")?;
        let spillway = SpillwayClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER);
        let objects = ObjectsClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER);
        let overrides = OverridesClient::new(channel).max_decoding_message_size(MAX_ANSWER);
        Ok(Self { spillway, objects, overrides })
    }
}

/// A client that makes one call after the other.
#[derive(Debug)]
pub(crate) struct Client {
    runtime: Runtime,
    stubs: Stubs,
}

impl Client {
    /// Puts a configuration in force, or asks what that would change. Answers the time as well, which includes
    /// encoding, and decoding of the answer.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn apply(
        &self,
        configuration: &Configuration,
        dry_run: bool,
    ) -> Result<(ApplyResult, Duration)> {
        let request = apply_request(configuration.clone(), dry_run);
        let mut spillway = self.stubs.spillway.clone();
        let answer = self.time(async move { spillway.apply(request).await }).context("apply");
        answer.map(|(answer, time)| (answer.result.unwrap_or_default(), time))
    }

    /// Asks for the status of everything.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn status(&self) -> Result<(StatusResponse, Duration)> {
        let mut spillway = self.stubs.spillway.clone();
        self.time(async move { spillway.status(StatusRequest::default()).await }).context("status")
    }

    /// Sets a backend's weight.
    ///
    /// # Errors
    /// When it is refused, or changes nothing.
    pub(crate) fn set_weight(&self, pool: &str, address: &str, weight: u32) -> Result<Duration> {
        let backend = Backend {
            pool: pool.into(),
            address: address.into(),
            weight: Some(weight),
            ..Backend::default()
        };
        let request = UpdateBackendRequest {
            backend: Some(backend),
            schema_revision: SCHEMA_REVISION.into(),
            ..UpdateBackendRequest::default()
        };
        let mut objects = self.stubs.objects.clone();
        let (answer, time) = self
            .time(async move { objects.update_backend(request).await })
            .with_context(|| format!("weight {weight} of {address} in {pool}"))?;
        let changes = answer.result.unwrap_or_default().changes;
        anyhow::ensure!(!changes.is_empty(), "{pool}: {address} had the weight {weight}");
        Ok(time)
    }

    /// Drains targets by overrides, with a reason.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn drain(&self, targets: Vec<OverrideTarget>, reason: &str) -> Result<Duration> {
        let mut overrides = self.stubs.overrides.clone();
        let request = SetOverridesRequest {
            targets,
            kind: OverrideKind::Drain.into(),
            reason: reason.into(),
            ..SetOverridesRequest::default()
        };
        Ok(self.time(async move { overrides.set_overrides(request).await })?.1)
    }

    /// Drains a target by an override, or ends that.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn set_drain(&self, target: &OverrideTarget, drains: bool) -> Result<Duration> {
        let mut overrides = self.stubs.overrides.clone();
        let OverrideTarget { backend, pool, region } = target;
        let of_pool = if pool.is_empty() { String::new() } else { format!("pools/{pool}/") };
        let what = match backend.as_str() {
            "" => format!("regions/{region}"),
            backend => format!("backends/{backend}"),
        };
        let remove = RemoveOverridesRequest {
            names: vec![format!("{of_pool}{what}/drain")],
            ..RemoveOverridesRequest::default()
        };
        match drains {
            true => self.drain(vec![target.clone()], ""),
            false => Ok(self.time(async move { overrides.remove_overrides(remove).await })?.1),
        }
    }

    fn time<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<(T, Duration)> {
        let begin = Instant::now();
        let answer = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await });
        let answer = answer.with_context(|| format!("no answer within {PATIENCE:?}"))??;
        Ok((answer.into_inner(), begin.elapsed()))
    }
}

/// The request for a configuration.
pub(crate) fn apply_request(configuration: Configuration, dry_run: bool) -> ApplyRequest {
    ApplyRequest {
        configuration: Some(configuration),
        validate_only: dry_run,
        force: true,
        schema_revision: SCHEMA_REVISION.into(),
        ..ApplyRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_any_name() {
        let stat = "7 (spill) wayd) S 1 7 7 0 -1 4194560 100 0 0 0 250 31 0 0 20 0 4 0 100 1 1";
        assert_eq!(parse_cpu(stat), Some(Duration::from_millis(2810)));
        assert_eq!(parse_cpu("7 (spillwayd) S 1 7"), None);
    }

    #[test]
    fn memory_is_the_line_of_the_whole_name() {
        let status = "VmHWM:\t   2048 kB\nVmRSS:\t    1024 kB\nVmRSSx:\t 1 kB\n";
        assert_eq!(parse_memory(status, "VmRSS"), Some(1 << 20));
        assert_eq!(parse_memory(status, "VmHWM"), Some(2 << 20));
        assert_eq!(parse_memory(status, "VmSwap"), None);
    }

    #[test]
    fn ready_is_a_line_of_a_message() {
        assert!(is_ready(b"STATUS=x\nREADY=1") && is_ready(b"READY=1\n"));
        assert!(!is_ready(b"STATUS=READY=1") && !is_ready(b"READY=10"));
    }

    #[test]
    fn room_keeps_to_the_ranges_of_the_settings() {
        let fleet = Fleet { pools: 10_000, backends: 10 };
        let arguments = Room::for_fleet(fleet).arguments().join(" ");
        let expected = "--services 10000 --pools 10000 --groups 10000 --pool-backends 331000";
        assert_eq!(arguments, expected);
        let few = Room { pools: 1, backends: 1 }.arguments().join(" ");
        assert_eq!(few, "--services 4096 --pools 4096 --groups 4096 --pool-backends 32768");
    }
}
