//! Keeps the packet program on its interfaces while the daemon runs. An interface may be removed and come back (a driver
//! that is loaded again, hot plug, netplan), and a driver or another tool may take the program off.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{Interval, MissedTickBehavior, interval, sleep},
};

use super::{Failure, interfaces};
use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};
use lb_maps::{AttachError, Attached, Restored};
use lb_net::{Interface, LinkChanges, NetError};

/// Time between two looks without an event: the kernel reports none when a program is taken off.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Time from an event to the look, so that the many events of one change cause one.
const SETTLES: Duration = Duration::from_millis(20);

/// Attaches the program again where it is gone. Until then that is a condition.
pub(super) struct InterfaceKeeper {
    attached: Arc<Attached>,
    conditions: Conditions,
    changes: LinkChanges,
    turns: Interval,
    /// The interfaces as the settings name them, in the order of [`Attached`].
    given: Vec<String>,
    /// Why interfaces are without the program, by name.
    missing: BTreeMap<String, String>,
}

impl InterfaceKeeper {
    /// # Errors
    /// Interfaces cannot be followed.
    pub(super) fn new(
        attached: Arc<Attached>,
        given: Vec<String>,
        conditions: Conditions,
    ) -> Result<Self, Failure> {
        let changes = LinkChanges::follow().map_err(cannot_follow)?;
        let mut turns = interval(LOOK_INTERVAL);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { attached, conditions, changes, turns, given, missing: BTreeMap::new() })
    }

    /// Waits for an event, or for a while, and looks at all interfaces.
    ///
    /// # Errors
    /// Interfaces cannot be followed any more.
    pub(super) async fn next(&mut self) -> Result<(), Failure> {
        tokio::select! {
            _ = self.turns.tick() => {}
            event = self.changes.next() => {
                event.map_err(cannot_follow)?;
                sleep(SETTLES).await;
            }
        }
        self.look().await;
        Ok(())
    }

    async fn look(&mut self) {
        let looked = async {
            let all =
                lb_net::all_interfaces().await.map_err(|error| error_chain::message(&error))?;
            let names = own_names(&self.given, &all);
            let attached = Arc::clone(&self.attached);
            // A driver may take a second to attach a program.
            let restored = spawn_blocking(move || attached.restore(&names)).await;
            restored
                .map_err(|error| error_chain::message(&error))?
                .map_err(|error| error_chain::message(&error))
        };
        match looked.await {
            Ok(restored) => self.report(restored),
            Err(error) => {
                tracing::warn!(
                    error,
                    "interfaces: cannot look at the packet program there: {error}"
                );
            }
        }
    }

    fn report(&mut self, Restored { attached, missing }: Restored) {
        for interface in attached {
            let mode = interface.mode.map_or("not at all".into(), |mode| mode.to_string());
            let interface = interface.name;
            tracing::warn!(
                interface,
                mode,
                "interface {interface}: the packet program was gone, and is attached again ({mode})"
            );
        }
        let missing: BTreeMap<_, _> = missing
            .into_iter()
            .map(|(at, error)| (self.given[at].clone(), cause(&error)))
            .collect();
        for name in self.missing.keys().filter(|name| !missing.contains_key(*name)) {
            self.conditions.end(&subject(name));
        }
        for (name, cause) in &missing {
            self.conditions.begin(&subject(name), cause);
        }
        self.missing = missing;
    }
}

/// The kernel's own names of interfaces that the settings name; `None`: there is no such interface, or it has the place of
/// another one.
fn own_names(given: &[String], all: &[Interface]) -> Vec<Option<String>> {
    let mut names = Vec::with_capacity(given.len());
    for given in given {
        let own =
            interfaces::named_interface(all, given).map(|interface| Some(interface.name.clone()));
        names.push(own.filter(|own| !names.contains(own)).flatten());
    }
    names
}

fn cannot_follow(error: NetError) -> Failure {
    Failure::about("interfaces", &error)
}

fn subject(interface: &str) -> Subject {
    Subject::named(ConditionReason::Interface, format!("interface {interface}"))
}

/// Why an interface is without the program.
fn cause(error: &AttachError) -> String {
    match error {
        AttachError::NoInterface(_) => {
            "gone, and its packets with it; the packet program is attached as soon as it is back"
                .into()
        }
        AttachError::Renamed { now, .. } => format!(
            "is called {now} now; the packet program goes on there, but the next start needs that name in the settings"
        ),
        error => {
            let cause = error_chain::message(error);
            let cause = cause.split_once(": ").map_or(cause.as_str(), |(_, cause)| cause);
            format!("the packet program is not attached, tried again twice a second: {cause}")
        }
    }
}
