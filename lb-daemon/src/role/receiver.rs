//! The receiver: its program on the interfaces, and an eye on them.

use std::{ffi::OsString, sync::Arc, time::SystemTime};

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
    let Receiver { attached, mut maps } =
        Receiver::open(&options, &arguments.allowed()).map_err(super::path::failure)?;
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
    let reloading = async {
        while hangups.recv().await.is_some() {
            tracing::info!("SIGHUP: reading settings again");
            manager.reloading();
            match read_again(&line, &told, &mut maps) {
                Ok(()) => manager.status("letting through what the settings say"),
                Err(cause) => {
                    tracing::error!("settings: {cause}");
                    manager.status(&format!("settings: {cause}"));
                }
            }
            manager.reloaded();
        }
    };
    let end = tokio::select! {
        () = ends.told_to_stop() => Ok(()),
        () = watch(&attached, rounds) => Ok(()),
        () = reloading => Ok(()),
    };
    stopper.stop();
    let _ = feeding.await;
    let _ = seeing.await;
    end
}

/// Settings of the receiver that a reload brings into force.
const LIVE: [&str; 4] = ["allow-source", "config", "gue-port", "vip"];

/// Brings what is let through to what the settings say now. What is let through before and after is
/// let through all the time; where they cannot be read, nothing changes.
fn read_again(line: &[OsString], told: &Told, maps: &mut ReceiverMaps) -> Result<(), String> {
    let settings = Settings::read(line).map_err(reload::cause)?;
    reload::say_what_waits(told, &settings.told, &LIVE);
    let Role::Receiver(arguments) = settings.arguments.role else { return Ok(()) };
    let allowed: AllowLists = arguments.allowed();
    maps.fill(&allowed).map_err(|error| causes::of(&error))?;
    tracing::info!(sources = allowed.sources.len(), vips = allowed.vips.len(), "let through");
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
