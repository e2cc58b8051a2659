//! The balancer, from its arguments to its exit status: [`Resources`] opens everything that the host may refuse,
//! [`Tasks`] starts what runs on it, waits until the first of them ends, and stops the others in order.

use std::{
    collections::BTreeSet, ffi::OsString, panic, path::Path, process, sync::Arc, thread,
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use tokio::{
    net::UnixListener,
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{
    Failure, HttpListener,
    arguments::BalancerArguments,
    failure, interfaces,
    log::Log,
    reload::Reload,
    settings::SettingValues,
    signals::{self, StopSignals},
    sizes::report_waiting,
    status_line,
};
use crate::watchdog::Watchdog;
use lb_api::{Handles, Rights, ServeError, Socket, audit::Audit, reload::Reloads};
use lb_base::{bytes::ByteSize, conditions::Conditions, error_chain, queue::bounded, write_hint};
use lb_common::abi::{names, sizes::MapSizes};
use lb_control::{
    FollowedFile, WaitingSettings,
    command::Commands,
    health_state::{HealthState, Keeper},
    loops::LoopEnd,
    members::Sensed,
    reconcile::{self, DisplacedSweeper, MemberWords, Reader, Reconciler},
    state::{self, Inbox, Loops, MarkOutDecision, MarkOutDecisions, Sensors},
    store::{self, Revision, Store},
};
use lb_fleet::FleetSettings;
use lb_health::{Prober, Tunnels};
use lb_inspect::stats;
use lb_maps::{self, Attached, Dataplane, Pins};
use lb_member::{Changes, Membership, MembershipRecord};
use lb_model::{capacity::Portions, map_memory::Budget, plan::Sources};
use lb_net::{NetError, NextHops};
use lb_observe::{http, metrics::Live};
use lb_secure::tls::{self, Connection, Credentials, TlsError};

/// Longest wait for what the fleet has, before the service manager is told that the daemon is ready.
const FLEET_READY: Duration = Duration::from_secs(30);

const FLEET_RECORD_HINT: &str = "move the file away to start as an independent balancer; it can join its fleet again, once the others have forgotten it";

/// Results of health checks and news of next hops that may wait while the member loop is busy.
const SENSOR_QUEUE: usize = 4096;

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
    tokio::spawn(log.clone().keep_condition(shared.conditions.clone()));
    let resources = Resources::open(&arguments, &shared, &watchdog, log).await?;
    let audit = resources.audit.clone();

    let stop = CancellationToken::new();
    let stop_guard = stop.clone().drop_guard();
    let start = Start { arguments, line, values, hangups, watchdog, shared, sensors, stop };
    // Before READY is sent: the service manager may stop a daemon that is ready.
    let signals = StopSignals::listen()?;
    let mut tasks = Tasks::start(start, resources)?;

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
}

/// Everything that the host may refuse: files, sockets, interfaces, maps.
struct Resources {
    store: Store,
    credentials: Option<Credentials>,
    tls_connections: Option<mpsc::Receiver<Connection>>,
    audit: Audit,
    /// Removes the socket's file when the daemon ends.
    _sockets: Vec<Socket>,
    listener: UnixListener,
    read_only: Option<UnixListener>,
    http_listener: Option<HttpListener>,
    reconciler: Reconciler,
    member_words: MemberWords,
    reader: Reader,
    attached: Arc<Attached>,
    /// Indices of the interfaces that the program is attached to.
    attached_indices: BTreeSet<u32>,
    /// Source addresses of tunnels.
    sources: Sources,
    sizes: MapSizes,
    map_memory: Budget,
    health_state: HealthState,
    /// The fleet of the settings, and what is stored of the membership in it.
    fleet: FleetStart,
}

/// What a balancer begins with as the member of a fleet, or as none.
struct FleetStart {
    settings: Option<FleetSettings>,
    record: Option<MembershipRecord>,
    /// The portions of capacities that it had at its end.
    portions: Portions,
    /// The maps of the packet path are made anew.
    lost_maps: bool,
}

impl Resources {
    /// Opens the packet path last: until then a refusal leaves packets as they are.
    async fn open(
        arguments: &BalancerArguments,
        shared: &Shared,
        watchdog: &Watchdog,
        log: &Log,
    ) -> Result<Self, Failure> {
        let given_sources = arguments.sources()?;
        let options = arguments.options();
        let pins = Pins::new(&options.bpffs, lb_maps::Component::Balancer);
        interfaces::wait_for(arguments.interfaces(), &pins, &watchdog.manager()).await?;
        let store = open_store(&arguments.state_dir, arguments.any_schema, log)?;
        let fleet = open_fleet(arguments, &pins)?;
        let (credentials, tls_connections) = listen_tls(arguments, shared).await?;
        let audit = open_audit(arguments, &shared.conditions)?;
        let (socket, listener) = listen_unix(arguments)?;
        let (read_only_socket, read_only) = listen_read_only(arguments)?.unzip();
        let _sockets = socket.into_iter().chain(read_only_socket).collect();
        let Shared { live, conditions, .. } = shared;
        let (expiry, refused) = (&live.certificates, &live.http_refused);
        let http_listener =
            super::listen_http(&arguments.path, expiry, conditions, refused).await?;
        let vlans = interfaces::vlan_ids(&arguments.vlan).await?;
        interfaces::refuse_native_vlans(&options).await?;

        let Dataplane { attached, maps, member_maps } =
            Dataplane::open(&options).map_err(failure::packet_path)?;
        let attached = Arc::new(attached);
        super::log_interfaces(&attached);
        let sizes = maps.sizes();
        report_waiting(&shared.conditions, &options.sizes, &sizes);
        let sources = interfaces::sources(given_sources, &options.interfaces).await?;
        let attached_indices: BTreeSet<u32> =
            attached.interfaces().iter().map(|interface| interface.index).collect();
        let settings = reconcile::Settings {
            vlans,
            attached: attached_indices.clone(),
            icmp_errors: arguments.icmp_errors,
            icmp_echoes: arguments.icmp_echoes,
            loop_counters: shared.live.loops.member.clone(),
        };
        let (reconciler, member_words) = Reconciler::open(maps, member_maps, settings)
            .map_err(|error| Failure::about("maps", &error))?;
        let reader = reconciler.reader(&options.bpffs, Arc::clone(&attached));
        let reader = reader.map_err(|error| Failure::about("maps", &error))?;
        let map_memory = map_memory(&options.bpffs, arguments.map_memory_limit)?;
        // Since the pins are locked, no earlier daemon writes it any more.
        let health_state = HealthState::read(&arguments.socket, shared.conditions.clone()).await;
        Ok(Self {
            store,
            credentials,
            tls_connections,
            audit,
            _sockets,
            listener,
            read_only,
            http_listener,
            reconciler,
            member_words,
            reader,
            attached,
            attached_indices,
            sources,
            sizes,
            map_memory,
            health_state,
            fleet,
        })
    }
}

/// What [`Tasks::start`] needs besides the [`Resources`].
struct Start {
    arguments: BalancerArguments,
    line: Vec<OsString>,
    values: SettingValues,
    hangups: tokio::signal::unix::Signal,
    watchdog: Watchdog,
    shared: Shared,
    sensors: Handle,
    stop: CancellationToken,
}

/// A loop on a thread of its own.
struct ThreadTask<T> {
    result: oneshot::Receiver<T>,
    thread: thread::JoinHandle<()>,
}

/// Everything that runs. None of it ends before it is stopped, except by a failure.
struct Tasks {
    state: ThreadTask<LoopEnd>,
    publisher: ThreadTask<LoopEnd>,
    members: ThreadTask<LoopEnd>,
    overrides: ThreadTask<LoopEnd>,
    status: ThreadTask<LoopEnd>,
    displaced_check: ThreadTask<()>,
    prober: JoinHandle<()>,
    next_hops: JoinHandle<Result<(), NetError>>,
    http: JoinHandle<()>,
    api: JoinHandle<Result<(), ServeError>>,
    reload: JoinHandle<()>,
    status_line: JoinHandle<()>,
    watchdog: JoinHandle<()>,
    health_state: Keeper,
    membership: Membership,
    /// Keeps other daemons from the maps until the last loop has ended.
    attached: Arc<Attached>,
    _sockets: Vec<Socket>,
}

impl Tasks {
    /// The loops, sensors, displaced check, what serves others, reloads, watchdog: in the order of what needs what.
    fn start(start: Start, resources: Resources) -> Result<Self, Failure> {
        let Start {
            arguments,
            line,
            values,
            hangups,
            mut watchdog,
            shared,
            sensors: on_sensors,
            stop,
        } = start;
        let Shared { conditions, waiting, live } = shared;
        let bpffs = arguments.options().bpffs;
        let sources = resources.sources;
        let followed = FollowedFile::new(arguments.apply);
        let (commands, requests) = Commands::counted(&live.loops);
        let (health_tx, health) = bounded(SENSOR_QUEUE, live.loops.member.queue());
        let (network_tx, network) = bounded(SENSOR_QUEUE, live.loops.member.queue());
        let sensors = Sensors::default();
        let (targets, addresses) = (sensors.targets.subscribe(), sensors.next_hops.subscribe());

        let (is_member, homes) = (state::Membership::default(), MarkOutDecisions::default());
        is_member.set(resources.fleet.record.is_some());
        if resources.fleet.record.is_some() {
            homes.decide(MarkOutDecision::Unknown);
        }
        let state_beat = watchdog.register("state");
        let first_round = state_beat.clone();
        let settings = state::Settings {
            sizes: resources.sizes,
            map_memory: resources.map_memory,
            region: arguments.region,
            sources,
            state_directory: arguments.state_dir.clone(),
            publish_counters: live.publish.clone(),
            health_counters: live.health.clone(),
            loop_counters: live.loops.clone(),
            store_counters: live.store.clone(),
            hold_downs: resources.health_state.hold_downs.clone(),
            conditions: conditions.clone(),
            waiting_settings: waiting.clone(),
            followed: followed.clone(),
            any_schema: arguments.any_schema,
            schema: Revision::CURRENT,
            membership: is_member.clone(),
            mark_out_decisions: homes.clone(),
            portions: resources.fleet.portions,
        };
        let inbox = Inbox { sensed: Sensed { health, network }, requests };
        let paths = (resources.reconciler, resources.member_words, resources.reader);
        let loops = Loops::new(settings, resources.store, paths, sensors, inbox);
        let Loops { state, publisher, members, overrides, status, portions } = loops;
        let membership = Membership::new(lb_member::Context {
            settings: resources.fleet.settings,
            commands: commands.clone(),
            conditions: conditions.clone(),
            portions,
            homes,
            is_member,
            state_directory: arguments.state_dir.clone(),
            lost_maps: resources.fleet.lost_maps,
            answers: Arc::new(lb_member::OwnAnswers {
                commands: commands.clone(),
                counters: stats::Source {
                    bpffs: bpffs.clone(),
                    state_directory: arguments.state_dir.clone(),
                },
            }),
        });
        let changes = Changes::new(commands.clone(), membership.clone());
        let status_beat = watchdog.register("status");
        let status = status.run(status_beat, stop.clone().cancelled_owned());
        let status = on_own_thread("status", Handle::current(), status)?;
        let publisher_beat = watchdog.register("publisher");
        // It ends with the state loop.
        let publisher =
            on_own_thread("publisher", Handle::current(), publisher.run(publisher_beat))?;
        let members_beat = watchdog.register("members");
        // It ends with the state loop too, whose last apply needs it.
        let members = members.run(members_beat, std::future::pending());
        let members = on_own_thread("members", on_sensors.clone(), members)?;
        let overrides_beat = watchdog.register("overrides");
        let overrides = overrides.run(overrides_beat, stop.clone().cancelled_owned());
        let overrides = on_own_thread("overrides", Handle::current(), overrides)?;
        let state = state.run(state_beat, stop.clone().cancelled_owned());
        let state = on_own_thread("state", Handle::current(), state)?;

        tokio::task::spawn_blocking({
            let bpffs = bpffs.clone();
            move || trace_drops(&bpffs)
        });
        let tunnels = Tunnels::new(sources, crate::attach_tunnel_program);
        let check_beat = watchdog.register("check");
        let (prober, next_hops) = {
            let _on_sensors = on_sensors.enter();
            let (checks, streaks) = (live.checks.clone(), resources.health_state.streaks.clone());
            (
                Prober::spawn(targets, health_tx, check_beat, checks, tunnels.clone(), streaks),
                NextHops::spawn(addresses, network_tx, resources.attached_indices)
                    .map_err(|error| Failure::about("next hops", &error))?,
            )
        };

        let health_state = resources.health_state.keep();

        let displaced_beat = watchdog.register("displaced check");
        let sweeper = DisplacedSweeper::open(&bpffs)
            .map_err(|error| Failure::about("displaced check", &error))?;
        let sweeper =
            sweeper.run(conditions.clone(), displaced_beat, stop.clone().cancelled_owned());
        let displaced_check = on_own_thread("displaced", Handle::current(), sweeper)?;

        if let Some(record) = resources.fleet.record {
            let membership = membership.clone();
            tokio::spawn(async move { membership.resume(record).await });
        }
        let counters = stats::Source { bpffs, state_directory: arguments.state_dir };
        let (asked, counted, shared) = (commands.clone(), counters.clone(), live.clone());
        let reader = http::Reader::new(asked, counted, shared, membership.clone());
        let shown = http::balancer(reader, arguments.status_page);
        let http_credentials =
            resources.http_listener.as_ref().map(|(_, credentials)| credentials.clone());
        let http = tokio::spawn(super::serve_http(resources.http_listener, shown, stop.clone()));
        let (reloads, reload_requests) = Reloads::channel();
        let audit = resources.audit;
        let handles =
            Handles { changes: changes.clone(), audit: audit.clone(), counters, tunnels, reloads };
        let (local, remote) =
            ((resources.listener, resources.read_only), resources.tls_connections);
        let api =
            tokio::spawn(lb_api::serve(local, remote, handles, live.api_refused, stop.clone()));

        let manager = watchdog.manager();
        let status_line = tokio::spawn(status_line::run(
            commands.clone(),
            conditions.clone(),
            waiting.clone(),
            manager.clone(),
        ));
        let credentials = resources.credentials;
        let reload = Reload {
            line,
            values,
            followed,
            changes,
            audit,
            conditions,
            waiting,
            credentials,
            http_credentials,
        };
        let (file_applied_tx, file_applied) = oneshot::channel();
        let ready = membership.clone();
        let reload = tokio::spawn(async move {
            // A refusal is shown as a condition.
            let _ = reload.apply(false).await;
            // An answer means that the stored generation was tried too.
            let _ = reload.changes.commands().export().await;
            // Of a fleet, what it had at the end is in force by now; what changed since may take etcd some time.
            let _ = timeout(FLEET_READY, ready.until_ready()).await;
            let _ = file_applied_tx.send(());
            let credentials = reload.credentials.clone();
            tokio::join!(reload.run(hangups, reload_requests, manager), async {
                if let Some(credentials) = credentials {
                    credentials.follow().await;
                }
            });
        });

        let watchdog = tokio::spawn(async move {
            // READY means that the daemon has tried to serve what its file says. If that failed, the status line
            // says so.
            tokio::select! {
                _ = file_applied => {}
                () = stop.cancelled() => {}
            }
            watchdog.run(first_round, stop.cancelled_owned()).await;
        });
        let _sockets = resources._sockets;
        Ok(Self {
            state,
            publisher,
            members,
            overrides,
            status,
            displaced_check,
            prober,
            next_hops,
            http,
            api,
            reload,
            status_line,
            watchdog,
            health_state,
            membership,
            attached: resources.attached,
            _sockets,
        })
    }

    /// The failure of the first task that ends.
    async fn failed(&mut self) -> Failure {
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
            ended = &mut self.api => match ended {
                Ok(Err(error)) => Failure::from_chain(&error),
                _ => Failure::new("gRPC server: ended unexpectedly"),
            },
            ended = &mut self.next_hops => match ended {
                Ok(Err(error)) => Failure::about("next hops", &error),
                _ => Failure::new("next hops: the task ended unexpectedly"),
            },
            _ = &mut self.prober => Failure::new("health checks: the task ended unexpectedly"),
            _ = &mut self.displaced_check.result => Failure::new("displaced check: ended unexpectedly"),
            _ = &mut self.reload => Failure::new("reload: ended unexpectedly"),
            _ = &mut self.status_line => Failure::new("status line: ended unexpectedly"),
        }
    }

    /// Stops all tasks: answers calls under way within their deadline, closes the store, tells the service manager.
    async fn stop(self, stop_guard: DropGuard) {
        self.reload.abort();
        self.status_line.abort();
        drop(stop_guard);
        // A task that has ended must not be awaited a second time.
        if !self.api.is_finished() {
            let _ = self.api.await;
        }
        let _ = self.http.await;
        self.membership.stop().await;
        let loops = [self.state, self.publisher, self.members, self.overrides, self.status];
        for thread in loops.map(|task| task.thread) {
            let _ = thread.join();
        }
        // While no other daemon has the maps, and so the file.
        self.health_state.stop().await;
        drop(self.attached);
        // The prober sees that the member loop is gone, removes its tunnels, and ends.
        if !self.prober.is_finished() {
            let _ = self.prober.await;
        }
        let _ = self.displaced_check.thread.join();
        let _ = self.watchdog.await;
    }
}

/// Opens the store, with `any_schema` also one with a configuration of a newer schema. The database library panics on
/// some damaged files: such a panic is reported like any other refusal.
fn open_store(state_directory: &Path, any_schema: bool, log: &Log) -> Result<Store, Failure> {
    let (file, log) = (state_directory.join(store::FILE), log.clone());
    let previous_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let cause = panic.payload_as_str().unwrap_or("its pages do not fit each other");
        let failure = Failure::new(format!("{}: is damaged: {cause}", file.display()))
            .hint("restore a good copy, or move the file away to start without a configuration");
        log.print_last(&failure.to_string());
        process::exit(1);
    }));
    let store = match any_schema {
        true => Store::open_any_schema(state_directory),
        false => Store::open(state_directory),
    };
    panic::set_hook(previous_hook);
    store.map_err(|error| Failure::from_chain(&error).hint(error.hint()))
}

/// What is stored of the membership in a fleet, beside the settings.
fn open_fleet(arguments: &BalancerArguments, pins: &Pins) -> Result<FleetStart, Failure> {
    let settings = arguments.fleet()?;
    let record = MembershipRecord::read(&arguments.state_dir)
        .map_err(|error| Failure::from_chain(&error).hint(FLEET_RECORD_HINT))?;
    if let Some(record) = &record {
        let named = settings.as_ref().map(|settings| (&settings.fleet, &settings.name));
        if named != Some((&record.fleet, &record.balancer)) {
            let (fleet, balancer) = (&record.fleet, &record.balancer);
            let said = match named {
                Some((fleet, name)) => format!("{name} of fleet {fleet}"),
                None => "no fleet".into(),
            };
            return Err(Failure::new(format!(
                "this balancer has joined as {balancer} of fleet {fleet}, but the settings say {said}"
            ))
            .hint("set it as it was; to change it, leave the fleet first: `spillway fleet leave`"));
        }
    }
    let lost_maps = !pins.map(names::ARRAYS).exists();
    let portions = match (&record, &settings) {
        (Some(_), Some(settings)) => {
            lb_member::stored_portions(&arguments.state_dir, settings, lost_maps)
        }
        _ => Portions::default(),
    };
    Ok(FleetStart { settings, record, portions, lost_maps })
}

/// The memory of the maps before any configuration, and its limit.
fn map_memory(bpffs: &Path, limit: Option<ByteSize>) -> Result<Budget, Failure> {
    let made = lb_maps::map_memory(bpffs).map_err(|error| Failure::about("maps", &error))?;
    let total = made.iter().map(|(_, bytes)| bytes).sum();
    match limit {
        Some(limit) if total > limit.0 => {
            let total = ByteSize(total);
            Err(Failure::new(format!(
                "maps: take {total} without any configuration, more than --map-memory-limit {limit}"
            ))
            .hint("raise the limit; or detach, and set lower sizes, such as --displaced and --udp-flows"))
        }
        limit => Ok(Budget { made, limit: limit.map(|limit| limit.0) }),
    }
}

/// The unix socket of the API: the one that the service manager hands over, or our own, whose file is removed at the
/// end.
fn listen_unix(arguments: &BalancerArguments) -> Result<(Option<Socket>, UnixListener), Failure> {
    let activated =
        lb_api::activated().map_err(|error| Failure::from_chain(&error).hint(error.hint()))?;
    if let Some(listener) = activated {
        tracing::info!("API: listening on the socket of the service manager");
        return Ok((None, listener));
    }
    let (socket, listener) = Socket::bind(&arguments.socket, arguments.rights())
        .map_err(|error| Failure::from_chain(&error).hint(error.hint()))?;
    Ok((Some(socket), listener))
}

/// The socket for reading, if the settings ask for one: any user may connect.
fn listen_read_only(
    arguments: &BalancerArguments,
) -> Result<Option<(Socket, UnixListener)>, Failure> {
    let Some(path) = &arguments.read_only_socket else { return Ok(None) };
    let rights = Rights { mode: 0o666, ..Rights::default() };
    let bound = Socket::bind(path, rights);
    bound.map(Some).map_err(|error| Failure::from_chain(&error).hint(error.hint()))
}

/// The TLS listener of the API, if the settings ask for one.
async fn listen_tls(
    arguments: &BalancerArguments,
    shared: &Shared,
) -> Result<(Option<Credentials>, Option<mpsc::Receiver<Connection>>), Failure> {
    let Some((address, files)) = arguments.remote()? else { return Ok((None, None)) };
    let failed = |error: TlsError| Failure::from_chain(&error).hint(error.hint());
    let expiry = shared.live.certificates.clone();
    let credentials =
        Credentials::open(files, arguments.clients(), expiry, shared.conditions.clone())
            .map_err(failed)?;
    let (address, connections) =
        tls::listen(address, credentials.clone(), shared.live.api_refused.clone())
            .await
            .map_err(failed)?;
    tracing::info!(%address, "API: listening for TLS on {address}");
    Ok((Some(credentials), Some(connections)))
}

fn open_audit(arguments: &BalancerArguments, conditions: &Conditions) -> Result<Audit, Failure> {
    let path = arguments.audit_file.as_deref();
    Audit::open(path, conditions.clone()).map_err(|error| {
        let path = path.unwrap_or(Path::new(""));
        let hint = write_hint(&error, path.parent().unwrap_or(path), "--audit-file");
        Failure::about(&path.display().to_string(), &error).hint(hint)
    })
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

/// Runs a loop on a thread of its own, which it may block. Its timers are those of `runtime`.
fn on_own_thread<T: Send + 'static>(
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
