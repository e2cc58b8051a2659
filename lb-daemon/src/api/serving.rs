//! The standard health service (`grpc.health.v1.Health`): SERVING while the state answers and the
//! packet path is where it should be.

use std::time::Duration;

use spillway_proto::v1::{objects_server, spillway_server};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health, HealthServer},
    server::{HealthReporter, HealthService},
};

use lb_control::command::Commands;

/// The daemon as a whole, and its services.
const NAMES: [&str; 3] = ["", spillway_server::SERVICE_NAME, objects_server::SERVICE_NAME];

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Longest time that the state may take for an answer; a large configuration keeps it busy for some of
/// that.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who says how things are, and the service that passes it on.
pub(super) fn reporter() -> (HealthReporter, HealthServer<impl Health>) {
    let reporter = HealthReporter::new();
    let service = HealthService::from_health_reporter(reporter.clone());
    (reporter, HealthServer::new(service))
}

/// Looks again and again until the daemon stops; then those who watch are let go.
pub(super) async fn report(
    mut reporter: HealthReporter,
    commands: Commands,
    stop: CancellationToken,
) {
    let looks = async {
        let mut turns = interval(LOOK);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut previous = None;
        loop {
            turns.tick().await;
            let condition = look(&commands).await;
            if previous.as_ref() == Some(&condition) {
                continue;
            }
            match (&condition, &previous) {
                (Some(condition), _) => tracing::warn!(
                    condition,
                    "the API's health service answers NOT_SERVING: {condition}"
                ),
                (None, Some(_)) => tracing::info!("the API's health service answers SERVING again"),
                (None, None) => {}
            }
            set(&reporter, if condition.is_none() { Serving } else { NotServing }).await;
            previous = Some(condition);
        }
    };
    tokio::select! {
        () = looks => {}
        () = stop.cancelled() => {}
    }
    for name in NAMES {
        reporter.clear_service_status(name).await;
    }
}

use ServingStatus::{NotServing, Serving};

/// Why things are not as they should be; `None`: they are.
async fn look(commands: &Commands) -> Option<String> {
    match timeout(PATIENCE, commands.condition()).await {
        Ok(Ok(condition)) => condition,
        Ok(Err(stopping)) => Some(stopping.to_string()),
        Err(_) => Some(format!("the state does not answer within {PATIENCE:?}")),
    }
}

/// Sets it for all of them.
pub(super) async fn set(reporter: &HealthReporter, status: ServingStatus) {
    for name in NAMES {
        reporter.set_service_status(name, status).await;
    }
}
