//! `spillway watch`: one line per change, until the user stops it. After a restart of the daemon it goes on
//! watching.

use std::{
    ops::ControlFlow,
    time::{Duration, SystemTime},
};

use serde::Serialize;
use spillway_proto::v1::{self, watch_response};
use tokio::time::{Instant, sleep};

use super::{
    backend_status::BackendRow, changes::Change, overrides::OverrideRow, regions::Capacity,
    status::Status,
};
use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    output::{Report, count, print_line, print_stderr},
};

/// Longest wait for the daemon to come back, several times what a restart takes.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause between two attempts to connect.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// The status when the watch begins.
    Snapshot { at: String, status: Box<Status> },
    /// A generation came into force.
    Generation { at: String, generation: u64, changes: Vec<Change> },
    /// A backend's state or next hop changed.
    Backend { at: String, backend: Box<BackendRow> },
    /// A region's capacity changed.
    Region {
        at: String,
        pool: String,
        region: String,
        capacity: Capacity,
        /// This balancer's share of it; `null`: no limit.
        limit_per_second: Option<f64>,
    },
    /// Overrides changed, or are stored now.
    Overrides {
        at: String,
        revision: u64,
        set: Vec<OverrideRow>,
        /// Names of those that ended.
        ended: Vec<String>,
        unstored: bool,
    },
}

/// Prints events until the user stops it or the reader is gone.
///
/// # Errors
/// The daemon does not answer, or did not come back within [`RECONNECT_TIMEOUT`].
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    block_on(async {
        let mut until = None;
        loop {
            let mut was_connected = false;
            let failure = match print_events(&options, &mut was_connected).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            if was_connected {
                if failure.exit != Exit::Unavailable {
                    return Err(failure);
                }
                print_stderr(&format!("warning: {}; reconnecting", failure.message));
                until = Some(Instant::now() + RECONNECT_TIMEOUT);
            }
            if until.is_none_or(|until| Instant::now() > until) {
                return Err(failure);
            }
            sleep(RETRY_INTERVAL).await;
        }
    })
}

/// Prints events until the reader is gone. Sets `was_connected` with the first event only: a daemon that is
/// being killed still accepts connections.
async fn print_events(options: &Options, was_connected: &mut bool) -> Result<(), Failure> {
    let mut daemon = DaemonClient::connect(options).await?;
    let mut events = daemon.watch().await?;
    loop {
        let message = events.message().await.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.lost("the daemon ended the watch"))?;
        *was_connected = true;
        let Some(event) = Event::new(message, SystemTime::now()) else { continue };
        if let ControlFlow::Break(()) = print_line(&event, options.output)? {
            return Ok(());
        }
    }
}

impl Event {
    /// `None`: an event that only a newer daemon knows.
    fn new(message: v1::WatchResponse, now: SystemTime) -> Option<Self> {
        let at = prost_types::Timestamp { nanos: 0, ..now.into() }.to_string();
        Some(match message.event? {
            watch_response::Event::Snapshot(status) => {
                Self::Snapshot { at, status: Box::new(Status::new(status, now)) }
            }
            watch_response::Event::Generation(change) => Self::Generation {
                at,
                generation: change.generation,
                changes: change.changes.into_iter().map(Change::from).collect(),
            },
            watch_response::Event::Backend(backend) => {
                Self::Backend { at, backend: Box::new(BackendRow::new(backend, now)) }
            }
            watch_response::Event::Region(region) => Self::Region {
                at,
                capacity: Capacity::new(&region),
                limit_per_second: region.limit_per_second,
                pool: region.pool,
                region: region.region,
            },
            watch_response::Event::Overrides(change) => Self::Overrides {
                at,
                revision: change.revision,
                set: change.set.into_iter().map(OverrideRow::new).collect(),
                ended: change.ended,
                unstored: change.unstored,
            },
        })
    }
}

impl Report for Event {
    fn table(&self) -> String {
        match self {
            Self::Snapshot { at, status } => format!("{at} {}\n", status.summary()),
            Self::Generation { at, generation, changes } => {
                let changes = count(changes.len() as u64, "change");
                format!("{at} generation {generation} is in force: {changes}\n")
            }
            Self::Backend { at, backend: b } => {
                format!("{at} pool {}: backend {} is {}: {}\n", b.pool, b.address, b.state, b.why)
            }
            Self::Overrides { at, revision, set, ended, unstored } => {
                let set = set.iter().map(|it| format!("{} is in force", it.name));
                let ended = ended.iter().map(|name| format!("{name} ended"));
                let changes: Vec<_> = set.chain(ended).collect();
                let stored = if *unstored { "in memory only" } else { "stored" };
                let changes = match changes.len() {
                    0 => String::new(),
                    1..=3 => format!(": {}", changes.join(", ")),
                    number => format!(": {}", count(number as u64, "change")),
                };
                format!("{at} overrides of revision {revision}, {stored}{changes}\n")
            }
            Self::Region { at, pool, region, capacity, .. } => {
                format!("{at} pool {pool}: region {region}: {}\n", capacity.describe())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::commands::backend_status::messages;

    fn line(event: watch_response::Event) -> (String, serde_json::Value) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000_500);
        let event = Event::new(v1::WatchResponse { event: Some(event) }, now).unwrap();
        (event.table(), serde_json::to_value(&event).unwrap())
    }

    #[test]
    fn each_event_is_one_line_with_its_time() {
        let (text, json) = line(watch_response::Event::Backend(v1::BackendStatus {
            pool: "web".into(),
            address: "10.0.0.1".into(),
            state: messages::state("unreachable"),
            reason: messages::reason("check tcp: timed out"),
            next_hop_resolved: true,
            ..Default::default()
        }));
        assert_eq!(
            text,
            "1970-01-12T13:46:40Z pool web: backend 10.0.0.1 is unreachable: check tcp: timed out\n"
        );
        assert_eq!(json["event"], "backend");
        assert_eq!(json["backend"]["state"], "unreachable");

        let (text, json) = line(watch_response::Event::Region(v1::GroupStatus {
            pool: "web".into(),
            region: "eu".into(),
            configured_per_second: Some(15.0),
            scaler: 1.0,
            capacity_per_second: Some(10.0),
            limit_per_second: Some(5.0),
            backends_up: 2,
            backends: 3,
            ..Default::default()
        }));
        assert_eq!(
            text,
            "1970-01-12T13:46:40Z pool web: region eu: capacity 10/s of 15/s; 2 of 3 up\n"
        );
        assert_eq!((&json["event"], &json["region"]), (&"region".into(), &"eu".into()));
        assert_eq!(
            (&json["limit_per_second"], &json["capacity"]["backends_up"]),
            (&5.0.into(), &2.into())
        );

        let (text, json) = line(watch_response::Event::Overrides(v1::OverridesChange {
            revision: 4,
            set: vec![v1::Override { name: "regions/eu/drain".into(), ..Default::default() }],
            ended: vec!["pools/web/drain".into()],
            unstored: true,
        }));
        assert_eq!(
            text,
            "1970-01-12T13:46:40Z overrides of revision 4, in memory only: regions/eu/drain is in force, pools/web/drain ended\n"
        );
        assert_eq!((&json["event"], &json["revision"]), (&"overrides".into(), &4.into()));

        let change = v1::GenerationChange { generation: 7, changes: vec![v1::Change::default()] };
        let (text, json) = line(watch_response::Event::Generation(change));
        assert_eq!(text, "1970-01-12T13:46:40Z generation 7 is in force: 1 change\n");
        assert_eq!(json["generation"], 7);

        let (text, json) = line(watch_response::Event::Snapshot(v1::StatusResponse {
            generation: 6,
            backends: vec![v1::BackendStatus {
                state: messages::state("up"),
                ..Default::default()
            }],
            ..Default::default()
        }));
        assert_eq!(text, "1970-01-12T13:46:40Z generation 6, 1 of 1 backends up\n");
        assert_eq!(json["status"]["generation"], 6);
    }
}
