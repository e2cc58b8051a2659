//! The balancer: store, packet path, state, sensors and API, put together.

use std::{collections::BTreeSet, ffi::OsString, path::Path, thread};

use tokio::{net::UnixListener, runtime::Handle, sync::mpsc, sync::oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    Failure,
    arguments::BalancerArguments,
    end::{self, Ends},
    interfaces,
    reload::Reload,
    settings::Told,
    status_line, store, vlan,
};
use crate::{
    api::{self, Handles, Socket},
    audit::Audit,
    http,
    metrics::Live,
    reloads::Reloads,
    tls::{self, Connection, Credentials, TlsError},
    watchdog::Watchdog,
};
use lb_base::{bytes::ByteSize, conditions::Conditions, error_chain, write_hint};
use lb_control::{
    FollowedFile, WaitingSettings,
    command::Commands,
    reconcile::{self, DisplacedSweeper, Reconciler},
    state::{Ended, Inbox, Packets, Sensors, Settings, State},
    store::Revision,
};
use lb_health::{Prober, Tunnels};
use lb_inspect::stats;
use lb_maps::{self, Dataplane, Pins};
use lb_model::map_memory::Budget;
use lb_net::NextHops;

/// News that may wait while the state is busy.
const NEWS: usize = 4096;

/// Runs until it is told to stop, or cannot go on.
pub(super) async fn run(
    arguments: BalancerArguments,
    line: Vec<OsString>,
    told: Told,
) -> Result<(), Failure> {
    let hangups = end::hangups()?;
    let given = arguments.sources()?;
    let options = arguments.options();
    let mut watchdog =
        Watchdog::from_environment().map_err(|error| Failure::new(error_chain::message(&error)))?;
    let pins = Pins::new(&options.bpffs, lb_maps::Role::Balancer);
    interfaces::wait_for(arguments.interfaces(), &pins, &watchdog.manager()).await?;
    let store = store::open(&arguments.state_dir, arguments.any_schema)?;
    let conditions = Conditions::default();
    let live = Live::default();
    let (credentials, remote) = remote(&arguments, &conditions, &live).await?;
    let audit = audit(&arguments, &conditions)?;
    let (_socket, listener) = listener(&arguments)?;
    let seen_at = super::listen(arguments.path.http).await?;
    let vlans = vlan::by_interface(&arguments.vlan).await?;
    interfaces::refuse_vlans(&options).await?;
    let Dataplane { attached, maps } = Dataplane::open(&options).map_err(super::path::failure)?;
    super::log_interfaces(&attached);
    let sources = interfaces::sources(given, &options.interfaces).await?;
    let on: BTreeSet<u32> = attached.interfaces().iter().map(|on| on.index).collect();
    let set = reconcile::Settings {
        vlans,
        attached: on.clone(),
        icmp_errors: arguments.icmp_errors,
        icmp_echoes: arguments.icmp_echoes,
    };
    let reconciler = Reconciler::new(maps, set).map_err(|error| Failure::of("maps", &error))?;

    let (reconciles, checks) = (watchdog.register("reconcile"), watchdog.register("check"));
    let rounds = watchdog.register("gates");
    let stop = CancellationToken::new();
    let stop_guard = stop.clone().drop_guard();
    let (applied, file_applied) = oneshot::channel();
    let (commands, asked) = Commands::channel();
    let (healthy, health) = mpsc::channel(NEWS);
    let (resolved, network) = mpsc::channel(NEWS);
    let sensors = Sensors::default();
    let (targets, addresses) = (sensors.targets.subscribe(), sensors.next_hops.subscribe());
    let counters = stats::Source {
        bpffs: options.bpffs.clone(),
        state_directory: arguments.state_dir.clone(),
    };
    let map_memory = map_memory(&options.bpffs, arguments.map_memory_limit)?;
    let followed = FollowedFile::new(arguments.apply);
    let waiting = WaitingSettings::default();
    let (reloads, requests) = Reloads::channel();
    let settings = Settings {
        map_memory,
        region: arguments.region,
        sources,
        state_directory: arguments.state_dir,
        publish_counters: live.publish.clone(),
        conditions: conditions.clone(),
        waiting_settings: waiting.clone(),
        followed: followed.clone(),
        any_schema: arguments.any_schema,
        schema: Revision::CURRENT,
    };
    let state = State::start(settings, store, Packets::new(reconciler, attached), sensors);

    let tunnels = Tunnels::new(sources, crate::attach_tunnel_program);
    let mut prober = Prober::spawn(targets, healthy, checks, live.checks.clone(), tunnels.clone());
    let hops = NextHops::spawn(addresses, resolved, on);
    let hops = hops.map_err(|e| Failure::of("next hops", &e))?;
    let inbox = Inbox { health, network, commands: asked };
    let first = reconciles.clone();
    let state = state.run(inbox, reconciles, stop.clone().cancelled_owned());
    let (mut state, thread) = on_own_thread("state", state)?;
    let keeper =
        DisplacedSweeper::open(&options.bpffs).map_err(|error| Failure::of("gates", &error))?;
    let keeping = keeper.run(conditions.clone(), rounds, stop.clone().cancelled_owned());
    let (mut gates, gate_thread) = on_own_thread("gates", keeping)?;
    let reader = http::Reader::new(commands.clone(), counters.clone(), live.clone());
    let shown = http::balancer(reader, arguments.status_page);
    let seeing = tokio::spawn(super::show(seen_at, shown, stop.clone()));
    let handles =
        Handles { commands: commands.clone(), audit: audit.clone(), counters, tunnels, reloads };
    let mut server = tokio::spawn(api::serve(listener, remote, handles, live, stop.clone()));
    let manager = watchdog.manager();
    let said =
        status_line::run(commands.clone(), conditions.clone(), waiting.clone(), manager.clone());
    let reload = Reload {
        line,
        told,
        followed,
        commands,
        audit: audit.clone(),
        conditions,
        waiting,
        credentials,
    };
    let mut reload = tokio::spawn(async move {
        // What is wrong with it is a condition.
        let _shown = reload.apply().await;
        applied.send(()).ok();
        let credentials = reload.credentials.clone();
        tokio::join!(reload.run(hangups, requests, manager), async {
            if let Some(credentials) = credentials {
                credentials.follow().await;
            }
        });
    });
    let ends = Ends::listen()?;
    // Ready is who has tried to serve what its file says; where that failed, the status line says so.
    let feeding = tokio::spawn(async move {
        tokio::select! {
            _ = file_applied => {}
            () = stop.cancelled() => {}
        }
        watchdog.run(first, stop.cancelled_owned()).await;
    });

    let end = tokio::select! {
        () = ends.told_to_stop() => Ok(()),
        ended = &mut state => Err(Failure::new(match ended {
            Ok(Ended::SensorEnded) => "sensors: one of them ended",
            Ok(Ended::Stopped) | Err(_) => "state: ended by itself",
        })),
        served = &mut server => Err(match served {
            Ok(Err(error)) => Failure::new(error_chain::message(&error)),
            _ => Failure::new("gRPC server: ended by itself"),
        }),
        sensed = hops => Err(match sensed {
            Ok(Err(error)) => Failure::of("next hops", &error),
            _ => Failure::new("next hops: ended by themselves"),
        }),
        _ = &mut prober => Err(Failure::new("health checks: ended by themselves")),
        _ = &mut gates => Err(Failure::new("gates: their keeper ended by itself")),
        _ = &mut reload => Err(Failure::new("reload: ended by itself")),
        () = said => Err(Failure::new("status line: ended by itself")),
    };
    reload.abort();
    drop(stop_guard);
    // Calls under way are answered within their deadline, the store is closed, the service manager
    // told. What is gone already needs no waiting for.
    if !server.is_finished() {
        let _ = server.await;
    }
    let _ = seeing.await;
    let _ = thread.join();
    // With the state went what it wants checked: the prober takes away what it made, and ends.
    if !prober.is_finished() {
        let _ = prober.await;
    }
    let _ = gate_thread.join();
    let _ = feeding.await;
    audit.flush().await;
    end
}

/// What the maps take as they are, within the limit.
fn map_memory(bpffs: &Path, limit: Option<ByteSize>) -> Result<Budget, Failure> {
    let made = lb_maps::map_memory(bpffs).map_err(|error| Failure::of("maps", &error))?;
    let all = made.iter().map(|(_, bytes)| bytes).sum();
    match limit {
        Some(limit) if all > limit.0 => {
            let (all, message) = (ByteSize(all), "more than --map-memory-limit");
            Err(Failure::new(format!(
                "maps: take {all} without any configuration, {message} {limit}"
            ))
            .hint("raise the limit; or detach, and give fewer --displaced and --udp-flows"))
        }
        limit => Ok(Budget { made, limit: limit.map(|limit| limit.0) }),
    }
}

/// What to answer on: what the service manager hands over, or a socket of our own, whose file goes
/// with it.
fn listener(arguments: &BalancerArguments) -> Result<(Option<Socket>, UnixListener), Failure> {
    let activated = api::activated()
        .map_err(|error| Failure::new(error_chain::message(&error)).hint(error.hint()))?;
    if let Some(listener) = activated {
        tracing::info!("API: answering on the socket of the service manager");
        return Ok((None, listener));
    }
    let (socket, listener) = Socket::bind(&arguments.socket, arguments.rights())
        .map_err(|error| Failure::new(error_chain::message(&error)).hint(error.hint()))?;
    Ok((Some(socket), listener))
}

/// The door over TLS, if there is to be one.
async fn remote(
    arguments: &BalancerArguments,
    conditions: &Conditions,
    live: &Live,
) -> Result<(Option<Credentials>, Option<mpsc::Receiver<Connection>>), Failure> {
    let Some((address, files)) = arguments.remote()? else { return Ok((None, None)) };
    let failed = |error: TlsError| Failure::new(error_chain::message(&error)).hint(error.hint());
    let credentials =
        Credentials::open(files, arguments.clients(), conditions.clone()).map_err(failed)?;
    let (address, connections) =
        tls::listen(address, credentials.clone(), live.clone()).await.map_err(failed)?;
    tracing::info!(%address, "API: answering over TLS at {address}");
    Ok((Some(credentials), Some(connections)))
}

/// The log of changes.
fn audit(arguments: &BalancerArguments, conditions: &Conditions) -> Result<Audit, Failure> {
    let path = arguments.audit_file.as_deref();
    Audit::open(path, conditions.clone()).map_err(|error| {
        let path = path.unwrap_or(Path::new(""));
        Failure::of(&path.display().to_string(), &error).hint(write_hint(
            &error,
            path.parent().unwrap_or(path),
            "--audit-file",
        ))
    })
}

/// Runs a loop on a thread of its own, which it may block.
fn on_own_thread<T: Send + 'static>(
    name: &str,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<(oneshot::Receiver<T>, thread::JoinHandle<()>), Failure> {
    let (sender, ended) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        let ended = runtime.block_on(work);
        // The program may have ended for another reason meanwhile.
        let _ = sender.send(ended);
    };
    let thread = thread::Builder::new().name(name.into()).spawn(work);
    Ok((ended, thread.map_err(|error| Failure::of(&format!("{name} thread"), &error))?))
}
