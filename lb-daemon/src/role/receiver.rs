//! The receiver: its program on the interfaces, and an eye on them.

use std::{collections::BTreeSet, ffi::OsString, mem, net::IpAddr, sync::Arc, time::SystemTime};

use tokio::time::{MissedTickBehavior, interval};

use super::{
    Failure,
    arguments::{ReceiverArguments, Role},
    end::{self, Ends},
    reload,
    settings::{Settings, Told},
};
use crate::{
    causes,
    dataplane::{AllowLists, Attached, Options, Receiver, ReceiverMaps},
    http,
    metrics::ReceiverFacts,
    net::{HostAddresses, NetError},
    stats::ReceiverStats,
    stop::Stopper,
    watchdog::{Heartbeat, Watchdog},
};

/// Runs until it is told to stop.
pub(super) async fn run(
    arguments: ReceiverArguments,
    line: Vec<OsString>,
    told: Told,
) -> Result<(), Failure> {
    let mut hangups = end::hangups()?;
    let (options, started) = (arguments.options(), SystemTime::now());
    let seen_at = super::listen(arguments.path.http).await?;
    super::interfaces::refuse_vlans(&options).await?;
    let mut addresses = HostAddresses::follow().map_err(unknown)?;
    let own = addresses.next().await.map_err(unknown)?;
    let mut wanted = Wanted { settings: arguments.allowed(), own, left_out: 0 };
    let Receiver { attached, mut maps } =
        Receiver::open(&options, &wanted.lists()).map_err(super::path::failure)?;
    let attached = Arc::new(attached);
    super::log_interfaces(&attached);

    let mut watchdog =
        Watchdog::from_environment().map_err(|error| Failure::new(causes::of(&error)))?;
    let rounds = watchdog.register("interfaces");
    let manager = watchdog.manager();
    let (stopper, stop) = Stopper::new();
    let ends = Ends::listen()?;
    let feeding = tokio::spawn(watchdog.run(rounds.clone(), stop.clone().wait()));
    let shown = http::receiver(reading(options, attached.clone(), started));
    let seeing = tokio::spawn(super::show(seen_at, shown, stop));
    let keeping = async {
        loop {
            tokio::select! {
                hangup = hangups.recv() => {
                    let Some(()) = hangup else { return Ok(()) };
                    tracing::info!("SIGHUP: reading settings again");
                    manager.reloading();
                    match read_again(&line, &told, &mut wanted, &mut maps) {
                        Ok(()) => manager.status("letting through what the settings say"),
                        Err(cause) => {
                            tracing::error!("settings: {cause}");
                            manager.status(&format!("settings: {cause}"));
                        }
                    }
                    manager.reloaded();
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
    end
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
            Ok(()) if changed => tracing::info!(endpoints = endpoints.len(), "addresses changed"),
            Ok(()) => {}
            Err(error) => tracing::error!("tunnel endpoints: {}", causes::of(&error)),
        }
    }
}

/// This host's addresses cannot be told.
fn unknown(error: NetError) -> Failure {
    Failure::of("addresses", &error)
}

/// Settings of the receiver that a reload brings into force.
const LIVE: [&str; 5] = ["allow-source", "config", "gue-port", "tunnel-endpoint", "vip"];

/// Brings what is let through to what the settings say now. What is let through before and after is
/// let through all the time; where they cannot be read, nothing changes.
fn read_again(
    line: &[OsString],
    told: &Told,
    wanted: &mut Wanted,
    maps: &mut ReceiverMaps,
) -> Result<(), String> {
    let settings = Settings::read(line).map_err(reload::cause)?;
    reload::say_what_waits(told, &settings.told, &LIVE);
    let Role::Receiver(arguments) = settings.arguments.role else { return Ok(()) };
    wanted.settings = arguments.allowed();
    let lists = wanted.lists();
    maps.fill(&lists).map_err(|error| causes::of(&error))?;
    let (sources, vips) = (lists.sources.len(), lists.vips.len());
    tracing::info!(sources, vips, endpoints = lists.endpoints.len(), "let through");
    Ok(())
}

/// Reads what a receiver shows.
fn reading(options: Options, attached: Arc<Attached>, started: SystemTime) -> http::ReadReceiver {
    Arc::new(move || {
        let stats = ReceiverStats::read(&options.bpffs).map_err(|error| causes::of(&error))?;
        let interfaces = attached.interfaces().into_iter().map(Into::into).collect();
        Ok(ReceiverFacts { stats, interfaces, started })
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
            tracing::error!(interface, "the packet program is not attached any more");
        }
        gone = now;
        rounds.beat();
    }
}
