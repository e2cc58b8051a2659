//! The balancer's status line (`STATUS=`) for the service manager.

use std::{collections::BTreeMap, future, net::IpAddr, time::Duration};

use prost_types::Timestamp;
use tokio::{sync::broadcast::error::RecvError, time::sleep};

use crate::watchdog::ServiceManager;
use lb_base::conditions::{Condition, ConditionReason, Conditions};
use lb_control::{
    WaitingSettings,
    command::{Commands, Event, Stopping, Subscription},
};
use lb_model::{MemberState, Name};

/// Least time between two lines.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Whether each backend is up.
type Backends = BTreeMap<(Name, IpAddr), bool>;

/// Sends the status line after each change, until the daemon stops. Does nothing without a service manager.
pub(super) async fn run(
    commands: Commands,
    conditions: Conditions,
    waiting: WaitingSettings,
    manager: ServiceManager,
) {
    if manager.is_present() {
        let Err(Stopping) = send_changes(&commands, &conditions, &waiting, &manager).await;
    }
    future::pending().await
}

async fn send_changes(
    commands: &Commands,
    conditions: &Conditions,
    waiting: &WaitingSettings,
    manager: &ServiceManager,
) -> Result<std::convert::Infallible, Stopping> {
    let (mut changes, mut settings) = (conditions.changes(), waiting.changes());
    let mut sent = String::new();
    loop {
        let Ok(Subscription { snapshot: Some(snapshot), mut events, .. }) =
            commands.watch(None).await?
        else {
            sleep(MIN_INTERVAL).await;
            continue;
        };
        let up = |state: MemberState| state == MemberState::Up;
        let backends = snapshot.backends();
        let backends = backends.map(|b| ((b.pool.clone(), b.address), up(b.state)));
        let mut backends: Backends = backends.collect();
        loop {
            changes.mark_unchanged();
            settings.mark_unchanged();
            let mut line = line(snapshot.generation, &backends, &conditions.now());
            line += &names(&waiting.now());
            if line != sent {
                manager.status(&line);
                sent = line;
                sleep(MIN_INTERVAL).await;
            }
            let event = tokio::select! {
                event = events.recv() => event,
                _ = changes.changed() => continue,
                _ = settings.changed() => continue,
            };
            match event.as_deref() {
                Ok(Event::Backends(change)) => {
                    for key in &change.removed {
                        backends.remove(key);
                    }
                    let changed = change.changed.iter();
                    backends.extend(changed.map(|b| ((b.pool.clone(), b.address), up(b.state))));
                }
                Ok(Event::Groups(_) | Event::Overrides(_)) => {}
                Ok(Event::Generation(_)) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return Err(Stopping),
            }
        }
    }
}

/// `; waiting for the next start: region`
pub(super) fn names(waiting: &[String]) -> String {
    match waiting {
        [] => String::new(),
        names => format!("; waiting for the next start: {}", names.join(", ")),
    }
}

/// `generation 7, 12 of 14 backends up; FILE: cause (since 2026-01-02T03:04:05Z)`
fn line(generation: u64, backends: &Backends, conditions: &[Condition]) -> String {
    let up = backends.values().filter(|up| **up).count();
    let mut line = match generation {
        0 => "nothing applied yet".to_owned(),
        _ if conditions
            .iter()
            .any(|condition| condition.reason == ConditionReason::StoredConfiguration) =>
        {
            format!("generation {generation} cannot be used, packets are forwarded as before")
        }
        _ => format!("generation {generation}, {up} of {} backends up", backends.len()),
    };
    for Condition { subject, cause, since, .. } in conditions {
        let since = Timestamp { nanos: 0, ..Timestamp::from(*since) };
        line.push_str(&format!("; {subject}: {cause} (since {since})"));
    }
    line
}
