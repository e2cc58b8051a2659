//! The receiver: its program on the interfaces, the allow lists, and a watch on both.

mod control_socket;

use std::{
    collections::BTreeSet, ffi::OsString, mem, net::IpAddr, path::Path, sync::Arc, time::SystemTime,
};
use tokio_util::sync::CancellationToken;

use tokio::{net::UnixListener, signal::unix::Signal};

use super::{
    Failure,
    arguments::{Component, ReceiverArguments},
    failure,
    interface_keeper::InterfaceKeeper,
    interfaces,
    log::Log,
    reload,
    settings::SettingValues,
    signals::{self, StopSignals},
    status_line,
};
use crate::watchdog::{ServiceManager, Watchdog};
use lb_api::{
    Rights, Socket,
    reload::{Refused, ReloadOutcome, ReloadRequests, Reloads},
};
use lb_base::{
    conditions::Conditions,
    error_chain,
    heartbeat::Heartbeat,
    receiver_socket::{self, Answer},
};
use lb_control::WaitingSettings;
use lb_inspect::stats::ReceiverStats;
use lb_maps::{self, AllowLists, Attached, Options, Pins, Receiver, ReceiverMaps};
use lb_net::{HostAddresses, NetError};
use lb_observe::{
    http::{self, HttpCredentials},
    metrics::{Counter, ReceiverFacts},
};
use lb_secure::tls::CertificateExpiry;

/// Runs until a signal stops it, or until the host's addresses cannot be followed any more.
pub(super) async fn run(
    arguments: ReceiverArguments,
    line: Vec<OsString>,
    values: SettingValues,
    log: &Log,
) -> Result<(), Failure> {
    let hangups = signals::hangups()?;
    let (mut options, started) = (arguments.options(), SystemTime::now());
    let mut watchdog = Watchdog::from_environment().map_err(|error| Failure::from_chain(&error))?;
    let manager = watchdog.manager();
    let pins = Pins::new(&options.bpffs, lb_maps::Component::Receiver);
    let own_names = interfaces::wait_for(arguments.path.interfaces(), &pins, &manager).await?;
    let (given, own) = own_names.of(&options.interfaces);
    options.interfaces = own;
    let shared = Shared { log_dropped: log.dropped(), ..Shared::default() };
    let Shared { certificates, conditions, http_refused, .. } = &shared;
    let http_listener =
        super::listen_http(&arguments.path, certificates, conditions, http_refused).await?;
    let control = bind_control_socket(arguments.socket.as_deref())?;
    interfaces::refuse_native_vlans(&options).await?;
    let mut addresses = HostAddresses::follow().map_err(addresses_unknown)?;
    let own = addresses.next().await.map_err(addresses_unknown)?;
    let mut allowed = Allowed { settings: arguments.allowed(), own, left_out: 0 };
    let Receiver { attached, maps } =
        Receiver::open(&options, &allowed.lists()).map_err(failure::packet_path)?;
    let attached = Arc::new(attached);
    super::log_interfaces(&attached);
    super::record_start(&pins, &line);

    let keeper = InterfaceKeeper::new(attached.clone(), given, conditions.clone())?;
    let rounds = watchdog.register("interfaces");
    let stop = CancellationToken::new();
    let stop_guard = stop.clone().drop_guard();
    let stop_signals = StopSignals::listen()?;
    let watchdog = tokio::spawn(watchdog.run(rounds.clone(), stop.clone().cancelled_owned()));
    tokio::spawn(log.clone().keep_condition(shared.conditions.clone()));
    let shown = http::receiver(facts_reader(options, attached.clone(), shared.clone(), started));
    let http_credentials = http_listener.as_ref().map(|(_, credentials)| credentials.clone());
    let http = tokio::spawn(super::serve_http(http_listener, shown, stop.clone()));
    let (reloads, requests) = Reloads::channel();
    let control = tokio::spawn(serve_control_socket(control, reloads, shared.clone(), stop));
    let allow_lists =
        AllowListLoop { line, values, shared, http_credentials, allowed, maps, manager };

    let end = tokio::select! {
        () = stop_signals.next() => Ok(()),
        failure = keep_interfaces(keeper, rounds) => Err(failure),
        ended = allow_lists.run(hangups, requests, addresses) => ended,
    };
    drop(stop_guard);
    let _ = watchdog.await;
    let _ = http.await;
    let _ = control.await;
    end
}

/// What several parts of the receiver write and show.
#[derive(Clone, Debug, Default)]
struct Shared {
    conditions: Conditions,
    waiting: WaitingSettings,
    log_dropped: Counter,
    /// That of the HTTP listener.
    certificates: CertificateExpiry,
    http_refused: Counter,
}

/// Keeps the allow lists in the maps at what the settings say and the host's addresses are.
struct AllowListLoop {
    line: Vec<OsString>,
    values: SettingValues,
    shared: Shared,
    http_credentials: Option<HttpCredentials>,
    allowed: Allowed,
    maps: ReceiverMaps,
    manager: ServiceManager,
}

impl AllowListLoop {
    async fn run(
        mut self,
        mut hangups: Signal,
        mut requests: ReloadRequests,
        mut addresses: HostAddresses,
    ) -> Result<(), Failure> {
        loop {
            tokio::select! {
                waiters = reload::next(&mut hangups, &mut requests) => {
                    let Some(mut waiters) = waiters else { return Ok(()) };
                    self.manager.reloading();
                    waiters.join(&mut requests);
                    let outcome = self.reload();
                    self.manager.reloaded();
                    waiters.answer(&outcome);
                }
                own = addresses.next() => {
                    self.allowed.follow(own.map_err(addresses_unknown)?, &mut self.maps);
                }
            }
        }
    }

    fn reload(&mut self) -> ReloadOutcome {
        let http = self.http_credentials.as_ref().map_or(Ok(()), HttpCredentials::refresh);
        let refused: Vec<_> = [self.read_settings().err(), http.err().map(Into::into)]
            .into_iter()
            .flatten()
            .collect();
        let waiting = self.shared.waiting.now();
        let status = match refused.first() {
            Some(refused) => refused.text.clone(),
            None => "allow lists are as the settings say".into(),
        };
        self.manager.status(&(status + &status_line::names(&waiting)));
        ReloadOutcome { refused, waiting, ..ReloadOutcome::default() }
    }

    /// Brings the allow lists to what the settings say now. What is allowed before and after stays allowed meanwhile.
    /// If the settings cannot be read, nothing changes.
    ///
    /// # Errors
    /// Why they are not in force, `settings: cause`.
    fn read_settings(&mut self) -> Result<(), Refused> {
        let Shared { conditions, waiting, .. } = &self.shared;
        let settings = reload::read_settings(&self.line, &self.values, conditions, waiting);
        let settings = settings.map_err(reload::settings_refused)?;
        let Component::Receiver(arguments) = settings.arguments.component else { return Ok(()) };
        self.allowed.settings = arguments.allowed();
        let lists = self.allowed.lists();
        self.maps.fill(&lists).map_err(|error| {
            let cause = error_chain::message(&error);
            conditions.begin(&reload::SETTINGS, &cause);
            reload::settings_refused(cause.into())
        })?;
        let (sources, vips, endpoints) =
            (lists.sources.len(), lists.vips.len(), lists.endpoints.len());
        tracing::info!(
            sources,
            vips,
            endpoints,
            "allow lists: {sources} sources, {vips} VIPs and {endpoints} tunnel endpoints"
        );
        Ok(())
    }
}

/// The control socket. If the default path cannot be used, the receiver runs without: packets matter more.
fn bind_control_socket(given: Option<&Path>) -> Result<Option<(Socket, UnixListener)>, Failure> {
    let path = given.unwrap_or(Path::new(receiver_socket::DEFAULT_SOCKET));
    match Socket::bind(path, Rights { owner: None, group: None, mode: 0o600 }) {
        Ok(bound) => Ok(Some(bound)),
        Err(error) if given.is_none() => {
            tracing::warn!(
                "control socket: none, so `spillway reload` cannot reach this receiver: {} (set `socket` to a path \
                 of its own)",
                error_chain::message(&error)
            );
            Ok(None)
        }
        Err(error) => Err(Failure::from_chain(&error).hint(error.hint())),
    }
}

/// Serves the control socket until the daemon stops; then its file is removed.
async fn serve_control_socket(
    control: Option<(Socket, UnixListener)>,
    reloads: Reloads,
    shared: Shared,
    stop: CancellationToken,
) {
    let Some((_socket, listener)) = control else { return stop.cancelled().await };
    let status = move || {
        let conditions = shared.conditions.now().into_iter();
        let conditions = conditions
            .map(|it| receiver_socket::Condition { subject: it.subject, cause: it.cause })
            .collect();
        let version = env!("CARGO_PKG_VERSION").into();
        let waiting_settings = shared.waiting.now();
        Answer { version, conditions, waiting_settings, mistakes: Vec::new() }
    };
    control_socket::serve(listener, reloads, status, stop).await;
}

/// What the receiver lets through: what the settings say, on a host with these addresses.
#[derive(Debug)]
struct Allowed {
    settings: AllowLists,
    own: BTreeSet<IpAddr>,
    /// Number of addresses for which the map has no room.
    left_out: usize,
}

impl Allowed {
    fn lists(&mut self) -> AllowLists {
        AllowLists { endpoints: self.endpoints(), ..self.settings.clone() }
    }

    fn endpoints(&mut self) -> BTreeSet<IpAddr> {
        let (endpoints, left_out) = self.settings.endpoints_on(&self.own);
        if mem::replace(&mut self.left_out, left_out) != left_out && left_out > 0 {
            tracing::error!(
                left_out,
                "tunnel endpoints: {left_out} addresses of this host are over the maximum; packets in tunnels to \
                 them are not decapsulated"
            );
        }
        endpoints
    }

    /// Takes the host's current addresses. If the maps refuse them, the next look at the addresses tries again.
    fn follow(&mut self, own: BTreeSet<IpAddr>, maps: &mut ReceiverMaps) {
        let changed = mem::replace(&mut self.own, own) != self.own;
        let endpoints = self.endpoints();
        match maps.fill_endpoints(&endpoints) {
            Ok(()) if changed => {
                let endpoints = endpoints.len();
                tracing::info!(
                    endpoints,
                    "addresses of this host changed: tunnels end at {endpoints} addresses"
                );
            }
            Ok(()) => {}
            Err(error) => tracing::error!("tunnel endpoints: {}", error_chain::message(&error)),
        }
    }
}

fn addresses_unknown(error: NetError) -> Failure {
    Failure::about("addresses", &error)
}

/// Reads the facts that metrics and status page show.
fn facts_reader(
    options: Options,
    attached: Arc<Attached>,
    shared: Shared,
    started: SystemTime,
) -> http::ReadReceiver {
    let packet_program = options.objects.digest(lb_maps::Component::Receiver);
    Arc::new(move || {
        let stats =
            ReceiverStats::read(&options.bpffs).map_err(|error| error_chain::message(&error))?;
        let interfaces = attached.interfaces().into_iter().map(Into::into).collect();
        let (conditions, waiting_settings) =
            (shared.conditions.now().len(), shared.waiting.now().len());
        Ok(ReceiverFacts {
            stats,
            interfaces,
            conditions,
            waiting_settings,
            log_dropped: shared.log_dropped.get(),
            certificates: shared.certificates.now(),
            http_refused: shared.http_refused.get(),
            packet_program,
            started,
        })
    })
}

/// Keeps the program on its interfaces until they cannot be followed any more.
async fn keep_interfaces(mut keeper: InterfaceKeeper, rounds: Heartbeat) -> Failure {
    loop {
        if let Err(failure) = keeper.next().await {
            return failure;
        }
        rounds.beat();
    }
}
