//! The receiver: its program on the interfaces, and an eye on them.

use std::{
    collections::BTreeSet, ffi::OsString, mem, net::IpAddr, path::Path, sync::Arc, time::SystemTime,
};

use tokio::{
    net::UnixListener,
    time::{MissedTickBehavior, interval},
};

use super::{
    Failure,
    arguments::{ReceiverArguments, Role},
    end::{self, Ends},
    interfaces, reload,
    settings::Told,
    status_line,
};
use crate::{
    api::{Rights, Socket},
    http,
    metrics::ReceiverFacts,
    reloads::{Outcome, Reloads},
    watchdog::Watchdog,
};
use lb_base::receiver_socket::{self, Answer};
use lb_base::{
    conditions::Conditions,
    error_chain,
    heartbeat::Heartbeat,
    shutdown::{Stop, Stopper},
};
use lb_control::WaitingSettings;
use lb_inspect::stats::ReceiverStats;
use lb_maps::{self, AllowLists, Attached, Options, Pins, Receiver, ReceiverMaps};
use lb_net::{HostAddresses, NetError};

/// Runs until it is told to stop.
pub(super) async fn run(
    arguments: ReceiverArguments,
    line: Vec<OsString>,
    told: Told,
) -> Result<(), Failure> {
    let mut hangups = end::hangups()?;
    let (options, started) = (arguments.options(), SystemTime::now());
    let mut watchdog =
        Watchdog::from_environment().map_err(|error| Failure::new(error_chain::message(&error)))?;
    let manager = watchdog.manager();
    let pins = Pins::new(&options.bpffs, lb_maps::Component::Receiver);
    interfaces::wait_for(arguments.path.interfaces(), &pins, &manager).await?;
    let seen_at = super::listen(arguments.path.http).await?;
    let control = control_socket(arguments.socket.as_deref())?;
    interfaces::refuse_vlans(&options).await?;
    let mut addresses = HostAddresses::follow().map_err(unknown)?;
    let own = addresses.next().await.map_err(unknown)?;
    let mut wanted = Wanted { settings: arguments.allowed(), own, left_out: 0 };
    let Receiver { attached, mut maps } =
        Receiver::open(&options, &wanted.lists()).map_err(super::path::failure)?;
    let attached = Arc::new(attached);
    super::log_interfaces(&attached);

    let rounds = watchdog.register("interfaces");
    let (stopper, stop) = Stopper::new();
    let ends = Ends::listen()?;
    let feeding = tokio::spawn(watchdog.run(rounds.clone(), stop.clone().wait()));
    let known = Known::default();
    let shown = http::receiver(reading(options, attached.clone(), known.clone(), started));
    let seeing = tokio::spawn(super::show(seen_at, shown, stop.clone()));
    let (reloads, mut requests) = Reloads::channel();
    let answering = tokio::spawn(answer(control, reloads, known.clone(), stop));
    let keeping = async {
        loop {
            tokio::select! {
                waiters = reload::next(&mut hangups, &mut requests) => {
                    let Some(mut waiters) = waiters else { return Ok(()) };
                    manager.reloading();
                    waiters.join(&mut requests);
                    let refused = read_again(&line, &told, &known, &mut wanted, &mut maps).err();
                    let waiting = known.waiting.now();
                    let status = match &refused {
                        Some(refused) => refused.clone(),
                        None => "letting through what the settings say".into(),
                    };
                    manager.status(&(status + &status_line::names(&waiting)));
                    manager.reloaded();
                    let refused = refused.into_iter().collect();
                    waiters.answer(&Outcome { refused, waiting, ..Outcome::default() });
                }
                own = addresses.next() => wanted.follow(own.map_err(unknown)?, &mut maps),
            }
        }
    };
    let end = tokio::select! {
        () = ends.told_to_stop() => Ok(()),
        () = watch(&attached, rounds) => Ok(()),
        kept = keeping => kept,
    };
    stopper.stop();
    let _ = feeding.await;
    let _ = seeing.await;
    let _ = answering.await;
    end
}

/// How the settings are.
#[derive(Clone, Debug, Default)]
struct Known {
    conditions: Conditions,
    waiting: WaitingSettings,
}

/// The control socket. By default the receiver goes on without one that it cannot have: it is there for packets.
fn control_socket(given: Option<&Path>) -> Result<Option<(Socket, UnixListener)>, Failure> {
    let path = given.unwrap_or(Path::new(receiver_socket::DEFAULT_SOCKET));
    match Socket::bind(path, Rights { owner: None, group: None, mode: 0o600 }) {
        Ok(bound) => Ok(Some(bound)),
        Err(error) if given.is_none() => {
            tracing::warn!(
                "control socket: there is none, so `spillway reload` cannot ask this receiver: {} (set `socket`, \
                 a path of its own)",
                error_chain::message(&error)
            );
            Ok(None)
        }
        Err(error) => Err(Failure::new(error_chain::message(&error)).hint(error.hint())),
    }
}

/// Answers on the control socket until the daemon stops; its file goes then.
async fn answer(
    control: Option<(Socket, UnixListener)>,
    reloads: Reloads,
    known: Known,
    stop: Stop,
) {
    let Some((_socket, listener)) = control else { return stop.wait().await };
    let status = move || Answer {
        version: env!("CARGO_PKG_VERSION").into(),
        conditions: known
            .conditions
            .now()
            .into_iter()
            .map(|condition| receiver_socket::Condition {
                subject: condition.subject,
                cause: condition.cause,
            })
            .collect(),
        waiting_settings: known.waiting.now(),
    };
    crate::receiver_socket::serve(listener, reloads, status, stop).await;
}

/// What is to be let through: what the settings say, on a host with these addresses.
#[derive(Debug)]
struct Wanted {
    settings: AllowLists,
    own: BTreeSet<IpAddr>,
    /// Addresses for which there was no room.
    left_out: usize,
}

impl Wanted {
    fn lists(&mut self) -> AllowLists {
        AllowLists { endpoints: self.endpoints(), ..self.settings.clone() }
    }

    fn endpoints(&mut self) -> BTreeSet<IpAddr> {
        let (endpoints, left_out) = self.settings.endpoints_on(&self.own);
        if mem::replace(&mut self.left_out, left_out) != left_out && left_out > 0 {
            tracing::error!(
                left_out,
                "this host has more addresses than there is room for: no tunnel ends at the last ones"
            );
        }
        endpoints
    }

    /// Takes the host's addresses as they are now. Where the maps refuse them, the next look tries again.
    fn follow(&mut self, own: BTreeSet<IpAddr>, maps: &mut ReceiverMaps) {
        let changed = mem::replace(&mut self.own, own) != self.own;
        let endpoints = self.endpoints();
        match maps.fill_endpoints(&endpoints) {
            Ok(()) if changed => {
                let endpoints = endpoints.len();
                tracing::info!(
                    endpoints,
                    "addresses of this host changed: tunnels end at {endpoints}"
                );
            }
            Ok(()) => {}
            Err(error) => tracing::error!("tunnel endpoints: {}", error_chain::message(&error)),
        }
    }
}

/// This host's addresses cannot be told.
fn unknown(error: NetError) -> Failure {
    Failure::of("addresses", &error)
}

/// Brings what is let through to what the settings say now. What is let through before and after is
/// let through all the time; where they cannot be read, nothing changes.
///
/// # Errors
/// Why they are not in force, `settings: cause`.
fn read_again(
    line: &[OsString],
    told: &Told,
    known: &Known,
    wanted: &mut Wanted,
    maps: &mut ReceiverMaps,
) -> Result<(), String> {
    let settings = reload::take(line, told, &known.conditions, &known.waiting);
    let settings = settings.map_err(reload::refused)?;
    let Role::Receiver(arguments) = settings.arguments.role else { return Ok(()) };
    wanted.settings = arguments.allowed();
    let lists = wanted.lists();
    maps.fill(&lists).map_err(|error| {
        let cause = error_chain::message(&error);
        known.conditions.begin(reload::SETTINGS, &cause);
        reload::refused(cause)
    })?;
    let (sources, vips, endpoints) = (lists.sources.len(), lists.vips.len(), lists.endpoints.len());
    tracing::info!(
        sources,
        vips,
        endpoints,
        "allow lists: {sources} sources, {vips} VIPs and {endpoints} tunnel endpoints are let through"
    );
    Ok(())
}

/// Reads what a receiver shows.
fn reading(
    options: Options,
    attached: Arc<Attached>,
    known: Known,
    started: SystemTime,
) -> http::ReadReceiver {
    Arc::new(move || {
        let stats =
            ReceiverStats::read(&options.bpffs).map_err(|error| error_chain::message(&error))?;
        let interfaces = attached.interfaces().into_iter().map(Into::into).collect();
        let (conditions, waiting_settings) =
            (known.conditions.now().len(), known.waiting.now().len());
        Ok(ReceiverFacts { stats, interfaces, conditions, waiting_settings, started })
    })
}

/// Says when a program is no longer where it was put, and when it is again.
async fn watch(attached: &Attached, rounds: Heartbeat) {
    let mut turns = interval(rounds.interval());
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut gone: Vec<String> = Vec::new();
    loop {
        turns.tick().await;
        let interfaces = attached.interfaces().into_iter();
        let now: Vec<_> =
            interfaces.filter(|interface| interface.mode.is_none()).map(|i| i.name).collect();
        for interface in now.iter().filter(|name| !gone.contains(name)) {
            tracing::error!(
                interface,
                "interface {interface}: the packet program is not attached any more"
            );
        }
        gone = now;
        rounds.beat();
    }
}
