//! The receiver: its program on the interfaces, and an eye on them.

use tokio::time::{MissedTickBehavior, interval};

use super::{Failure, arguments::ReceiverArguments, end};
use crate::{
    causes,
    dataplane::{AllowLists, Attached, Receiver},
    stop::Stopper,
    watchdog::{Heartbeat, Watchdog},
};

/// Runs until it is told to stop.
pub(super) async fn run(arguments: ReceiverArguments) -> Result<(), Failure> {
    let allowed = AllowLists {
        sources: arguments.allow_source.into_iter().collect(),
        vips: arguments.vip.into_iter().collect(),
    };
    let receiver =
        Receiver::open(&arguments.path.options(), &allowed).map_err(super::path_failure)?;
    super::log_interfaces(&receiver.attached);

    let mut watchdog =
        Watchdog::from_environment().map_err(|error| Failure::new(causes::of(&error)))?;
    let rounds = watchdog.register("interfaces");
    let (stopper, stop) = Stopper::new();
    let feeding = tokio::spawn(watchdog.run(rounds.clone(), stop.wait()));
    let end = tokio::select! {
        told = end::told_to_stop() => told,
        () = watch(&receiver.attached, rounds) => Ok(()),
    };
    stopper.stop();
    let _ = feeding.await;
    end
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
