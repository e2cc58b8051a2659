//! How long it takes until failures of all backends that are known at once are in the maps.
//!
//! Real checks cannot all fail at once: the daemon bounds those under way, and the kernel answers one after the other. So
//! here the bench is the prober. It runs the daemon's own three loops over real maps in its own process, each on a thread
//! of its own as in the daemon, and puts failures into the queue that the prober puts its results into. Time counts from
//! just before the first of them to the first look at the maps in which no backend is up. Checks, the API and the daemon's
//! log have no part in it. The daemon itself has no door for this.

use std::fs;
use std::future::{Future, pending};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_base::heartbeat::Heartbeat;
use lb_base::queue::{QueueCounters, Sender, bounded};
use lb_control::command::{Apply, Commands};
use lb_control::members::Sensed;
use lb_control::state::{self, Inbox, Loops, Sensors};
use lb_health::{AgentReport, Health, HealthChange};
use lb_maps::{Attached, Dataplane, Options, PinnedMaps, SizeSettings, XdpMode};
use lb_model::{Name, StateCause, StateReason, next_hop::NextHop};
use lb_net::{NetChange, NextHopChange};
use lb_publish::reconcile::{self, Reconciler};
use lb_store::Store;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use lb_tests::process::until;
use lb_tests::sandbox::Sandbox;

use super::configuration::{check, checked, host, pool_name};
use super::daemon::PATIENCE;
use super::figures::Row;
use super::storm::{LOOK, PER_POOL};
use super::words::Members;

const PORT: u16 = 8_081;
/// From one check to the next, if any were made.
const INTERVAL: Duration = Duration::from_secs(5);
/// Results that may wait for the member loop: as many as in the daemon.
const QUEUE: usize = 4_096;

/// The loops of a daemon, and what they are told by.
struct LoopsAlone {
    commands: Commands,
    health: Sender<HealthChange>,
    network: Sender<NetChange>,
    stop: CancellationToken,
    threads: Vec<JoinHandle<()>>,
    /// Thread of the member loop.
    members: i32,
    runtime: Runtime,
    _attached: Arc<Attached>,
}

impl LoopsAlone {
    fn start(bpffs: &Path, state_directory: &Path) -> Result<Self> {
        let options = Options {
            objects: lb_programs::OBJECTS,
            bpffs: bpffs.into(),
            interfaces: Vec::new(),
            hook: XdpMode::Auto.into(),
            sizes: SizeSettings::default(),
        };
        let Dataplane { attached, maps, member_maps } = Dataplane::open(&options)?;
        let (attached, sizes) = (Arc::new(attached), maps.sizes());
        let settings = reconcile::Settings::default();
        let (reconciler, words) = Reconciler::open(maps, member_maps, settings)?;
        let reader = reconciler.reader(bpffs, Arc::clone(&attached))?;
        let (commands, requests) = Commands::channel();
        let (health, health_rx) = bounded(QUEUE, &QueueCounters::default());
        let (network, network_rx) = bounded(QUEUE, &QueueCounters::default());
        let settings = state::Settings {
            state_directory: state_directory.into(),
            sizes,
            ..state::Settings::default()
        };
        let sensed = Sensed { health: health_rx, network: network_rx };
        let inbox = Inbox { sensed, requests };
        let store = Store::open(state_directory)?;
        let paths = (reconciler, words, reader);
        let loops = Loops::new(settings, store, paths, Sensors::default(), inbox);
        let Loops { state, publisher, members, overrides, status, .. } = loops;

        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (stop, beat) = (CancellationToken::new(), Heartbeat::unwatched(Duration::from_secs(1)));
        let (members_tx, members_rx) = std::sync::mpsc::channel();
        let stopped = || stop.clone().cancelled_owned();
        let state = state.run(beat.clone(), stopped());
        let publisher = publisher.run(beat.clone());
        let status = status.run(beat.clone(), stopped());
        let overrides = overrides.run(beat.clone(), stopped());
        let members = async move {
            // Fails only if nothing measures any more.
            let _ = members_tx.send(nix::unistd::gettid().as_raw());
            members.run(beat, pending()).await
        };
        // Publisher and member loop end with the state loop.
        let threads = vec![
            on_own_thread(&runtime, status),
            on_own_thread(&runtime, publisher),
            on_own_thread(&runtime, members),
            on_own_thread(&runtime, overrides),
            on_own_thread(&runtime, state),
        ];
        let members = members_rx.recv().context("the member loop")?;
        let _attached = attached;
        Ok(Self { commands, health, network, stop, threads, members, runtime, _attached })
    }

    /// CPU time of the member loop.
    fn cpu(&self) -> Result<Duration> {
        let path = format!("/proc/self/task/{}/schedstat", self.members);
        let text = fs::read_to_string(&path).context(path)?;
        parse_schedstat(&text).with_context(|| text.clone())
    }

    /// Tells of all backends that they pass or fail their checks, as fast as the queue takes it.
    fn report(&self, changes: Vec<HealthChange>) -> Result<()> {
        self.runtime.block_on(async {
            for change in changes {
                self.health.send(change).await.context("the member loop is gone")?;
            }
            Ok(())
        })
    }
}

impl Drop for LoopsAlone {
    fn drop(&mut self) {
        self.stop.cancel();
        for thread in self.threads.drain(..) {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

fn on_own_thread<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<()> {
    let handle = runtime.handle().clone();
    std::thread::spawn(move || drop(handle.block_on(work)))
}

/// Measures failures of so many backends.
///
/// # Errors
/// A part that does not start, or failures that do not get into the maps.
pub(crate) fn measure(sandbox: &Sandbox, backends: u32) -> Result<Row> {
    eprintln!("control: storm of {backends} failures at once");
    let name = format!("injected-{backends}");
    let (bpffs, state) = (sandbox.bpffs(&name)?, sandbox.directory(&format!("state-{name}"))?);
    let measured = storm(&bpffs, &state, backends);
    // The sandbox's end does it too; but until then the maps would take memory.
    let _ = fs::remove_dir_all(&bpffs);
    measured
}

fn storm(bpffs: &Path, state: &Path, backends: u32) -> Result<Row> {
    let loops = LoopsAlone::start(bpffs, state)?;
    let message = checked(backends, PER_POOL, check(false, PORT, INTERVAL)?);
    let apply = Apply { configuration: lb_config::validate(&message)?, ..Apply::default() };
    let applied = loops.runtime.block_on(loops.commands.apply(apply, None));
    applied?.context("apply")?;
    for number in 0..backends {
        let change = NetChange::NextHops(vec![next_hop(number)]);
        loops.runtime.block_on(loops.network.send(change)).context("the member loop is gone")?;
    }
    let maps = PinnedMaps::open(bpffs)?;
    let mut members = Vec::new();
    for number in 0..backends.div_ceil(PER_POOL) {
        members.push(Members::find(&maps, u16::try_from(number + 1)?)?);
    }
    let mut count_up = || members.iter_mut().map(Members::count_up).sum::<usize>() as u32;
    loops.report(changes(backends, Health::Passing)?)?;
    until("all backends are up", PATIENCE, || Ok((count_up() == backends).then_some(())))?;

    let failures = changes(backends, Health::Failing)?;
    let cpu = loops.cpu()?;
    let begin = Instant::now();
    let (queued, last) = std::thread::scope(|scope| -> Result<_> {
        let loops = &loops;
        let queueing = scope.spawn(move || loops.report(failures).map(|()| begin.elapsed()));
        let last = loop {
            let (up, now) = (count_up(), begin.elapsed());
            if up == 0 {
                break now;
            }
            ensure!(now < PATIENCE, "{up} of {backends} are still up after {now:?}");
            std::thread::park_timeout(LOOK);
        };
        let queued = queueing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((queued, last))
    })?;
    let cpu = loops.cpu()? - cpu;
    let each = Duration::from_secs_f64(last.as_secs_f64() * 1e3 / f64::from(backends));
    Ok(Row::new(format!("storm, {backends} failures at once"))
        .ms("all queued", queued)
        .ms("last word", last)
        .ms("each thousand", each)
        .seconds("cpu of the member loop", cpu.as_secs_f64()))
}

/// A change of all backends, as the prober sends it.
fn changes(backends: u32, health: Health) -> Result<Vec<HealthChange>> {
    let reason = match health {
        Health::Passing => StateReason::new(StateCause::ChecksPass, "all checks pass"),
        _ => StateReason::new(StateCause::CheckFails, "check tcp: connection refused"),
    };
    let at = Instant::now();
    let change = |number: u32| {
        Ok(HealthChange {
            pool: Name::new(&pool_name(number / PER_POOL)).context("a name")?,
            address: IpAddr::from(host(number)),
            health,
            undecided: None,
            reason: reason.clone(),
            first: health == Health::Passing,
            report: AgentReport::default(),
            at,
        })
    };
    (0..backends).map(change).collect()
}

/// All backends are behind one gateway.
fn next_hop(number: u32) -> NextHopChange {
    let hop = NextHop {
        gateway: IpAddr::from([10, 0, 0, 1]),
        mac: [2, 0, 0, 0, 0, 1],
        interface: 1,
        vlan: None,
        interface_mac: [2, 0, 0, 0, 0, 2],
        mtu: 1_500,
        source: Some(IpAddr::from([10, 0, 0, 2])),
    };
    NextHopChange { address: IpAddr::from(host(number)), hop: Ok(hop) }
}

/// The first field is the time on a CPU, in nanoseconds (proc(5)).
fn parse_schedstat(text: &str) -> Option<Duration> {
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_the_first_field() {
        let text = "1234567890 55 7\n";
        assert_eq!(parse_schedstat(text), Some(Duration::from_nanos(1_234_567_890)));
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn every_backend_is_reported_once_in_its_own_pool() {
        let changes = changes(250, Health::Failing).unwrap();
        let message = checked(250, PER_POOL, check(false, PORT, INTERVAL).unwrap());
        let backends = message.pools.iter().flat_map(|pool| {
            pool.backends.iter().map(|backend| (pool.name.clone(), backend.address.clone()))
        });
        let reported = changes.iter().map(|c| (c.pool.to_string(), c.address.to_string()));
        assert!(reported.eq(backends));
    }
}
