//! The standard health service (`grpc.health.v1.Health`): SERVING while the state answers and the packet path is at the
//! generation in force; of a member of a fleet, while it has what the fleet has.

use std::time::Duration;

use spillway_proto::v1::{fleet_server, objects_server, overrides_server, spillway_server};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health, HealthServer},
    server::{HealthReporter, HealthService},
};

use lb_member::Changes;

/// The daemon as a whole, and its services.
const NAMES: [&str; 5] = [
    "",
    fleet_server::SERVICE_NAME,
    spillway_server::SERVICE_NAME,
    objects_server::SERVICE_NAME,
    overrides_server::SERVICE_NAME,
];

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time for the state to answer: a large configuration keeps it busy for a while.
const STATE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reporter, and the service that it reports to.
pub(super) fn reporter() -> (HealthReporter, HealthServer<impl Health>) {
    let reporter = HealthReporter::new();
    let service = HealthService::from_health_reporter(reporter.clone());
    (reporter, HealthServer::new(service))
}

/// Polls the state until the daemon stops, and then ends all watches.
pub(super) async fn report(
    mut reporter: HealthReporter,
    changes: Changes,
    stop: CancellationToken,
) {
    let polls = async {
        let mut turns = interval(POLL_INTERVAL);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut previous = None;
        loop {
            turns.tick().await;
            let condition = find_condition(&changes).await;
            if previous.as_ref() == Some(&condition) {
                continue;
            }
            match (&condition, &previous) {
                (Some(condition), _) => tracing::warn!(
                    condition,
                    "API: health service reports NOT_SERVING: {condition}"
                ),
                (None, Some(_)) => tracing::info!("API: health service reports SERVING again"),
                (None, None) => {}
            }
            set(&reporter, if condition.is_none() { Serving } else { NotServing }).await;
            previous = Some(condition);
        }
    };
    tokio::select! {
        () = polls => {}
        () = stop.cancelled() => {}
    }
    for name in NAMES {
        reporter.clear_service_status(name).await;
    }
}

use ServingStatus::{NotServing, Serving};

/// Why the daemon is not serving; `None`: it is.
async fn find_condition(changes: &Changes) -> Option<String> {
    match timeout(STATE_TIMEOUT, changes.commands().condition()).await {
        Ok(Ok(condition)) => condition.or_else(|| changes.not_ready()),
        Ok(Err(stopping)) => Some(stopping.to_string()),
        Err(_) => Some(format!("the status loop does not answer within {STATE_TIMEOUT:?}")),
    }
}

/// Sets the status of all services.
pub(super) async fn set(reporter: &HealthReporter, status: ServingStatus) {
    for name in NAMES {
        reporter.set_service_status(name, status).await;
    }
}
