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
    Generation {
        at: String,
        generation: u64,
        changes: Vec<Change>,
        /// Changes that are left out of a large generation.
        more_changes: u64,
    },
    /// A backend's state or next hop changed.
    Backend { at: String, backend: Box<BackendRow> },
    /// The configuration no longer has a backend.
    BackendRemoved { at: String, pool: String, address: String },
    /// The configuration no longer has backends of a pool in a region.
    RegionRemoved { at: String, pool: String, region: String },
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
        let mut reader = Reader::default();
        loop {
            let mut was_connected = false;
            let failure = match print_events(&options, &mut reader, &mut was_connected).await {
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

/// Prints events until the reader is gone. Sets `was_connected` with the first event, or when the watch has lasted longer
/// than [`RECONNECT_TIMEOUT`]: a daemon that is being killed still accepts connections, and a watch that was resumed brings
/// nothing until something happens.
async fn print_events(
    options: &Options,
    reader: &mut Reader,
    was_connected: &mut bool,
) -> Result<(), Failure> {
    let mut daemon = DaemonClient::connect(options).await?;
    // A snapshot that broke off is not completed by another watch.
    reader.snapshot = None;
    let mut events = daemon.watch(reader.resume_token.clone()).await?;
    let opened = Instant::now();
    loop {
        let message = events.message().await;
        *was_connected |= matches!(message, Ok(Some(_))) || opened.elapsed() > RECONNECT_TIMEOUT;
        let message = message.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.lost("the daemon ended the watch"))?;
        for event in reader.take(message, SystemTime::now()) {
            if let ControlFlow::Break(()) = print_line(&event, options.output)? {
                return Ok(());
            }
        }
    }
}

/// Makes events of messages, and remembers where a watch can go on.
#[derive(Default)]
struct Reader {
    resume_token: String,
    /// A snapshot whose end has not come yet.
    snapshot: Option<v1::StatusResponse>,
}

impl Reader {
    /// The events of a message: none while a snapshot is not complete, and of an event that only a newer daemon knows.
    fn take(&mut self, message: v1::WatchResponse, now: SystemTime) -> Vec<Event> {
        let v1::WatchResponse { event, resume_token } = message;
        if !resume_token.is_empty() {
            self.resume_token = resume_token;
        }
        let at = || prost_types::Timestamp { nanos: 0, ..now.into() }.to_string();
        let Some(event) = event else { return Vec::new() };
        match (event, &mut self.snapshot) {
            (watch_response::Event::SnapshotBegin(begin), snapshot) => {
                *snapshot = begin.status;
                Vec::new()
            }
            (watch_response::Event::Backends(part), Some(snapshot)) => {
                snapshot.backends.extend(part.backends);
                Vec::new()
            }
            (watch_response::Event::Overrides(part), Some(snapshot)) => {
                snapshot.overrides.extend(part.set);
                Vec::new()
            }
            (watch_response::Event::SnapshotEnd(_), snapshot) => {
                let status = snapshot.take().map(|status| Box::new(Status::new(status, now)));
                status.map(|status| Event::Snapshot { at: at(), status }).into_iter().collect()
            }
            (watch_response::Event::Generation(change), _) => vec![Event::Generation {
                at: at(),
                generation: change.generation,
                changes: change.changes.into_iter().map(Change::from).collect(),
                more_changes: change.more_changes,
            }],
            (watch_response::Event::Backends(change), None) => {
                let removed = change.removed.into_iter();
                let removed = removed.map(|it| Event::BackendRemoved {
                    at: at(),
                    pool: it.pool,
                    address: it.name,
                });
                let changed = change.backends.into_iter().map(|backend| Event::Backend {
                    at: at(),
                    backend: Box::new(BackendRow::new(backend, now)),
                });
                removed.chain(changed).collect()
            }
            (watch_response::Event::Groups(change), _) => {
                let removed = change.removed.into_iter();
                let removed = removed.map(|it| Event::RegionRemoved {
                    at: at(),
                    pool: it.pool,
                    region: it.name,
                });
                let changed = change.groups.into_iter().map(|group| Event::Region {
                    at: at(),
                    capacity: Capacity::new(&group),
                    limit_per_second: group.limit_per_second,
                    pool: group.pool,
                    region: group.region,
                });
                removed.chain(changed).collect()
            }
            (watch_response::Event::Overrides(change), None) => vec![Event::Overrides {
                at: at(),
                revision: change.revision,
                set: change.set.into_iter().map(OverrideRow::new).collect(),
                ended: change.ended,
                unstored: change.unstored,
            }],
        }
    }
}

impl Report for Event {
    fn table(&self) -> String {
        match self {
            Self::Snapshot { at, status } => format!("{at} {}\n", status.summary()),
            Self::Generation { at, generation, changes, more_changes } => {
                let changes = count(changes.len() as u64 + more_changes, "change");
                format!("{at} generation {generation} is in force: {changes}\n")
            }
            Self::Backend { at, backend: b } => {
                format!("{at} pool {}: backend {} is {}: {}\n", b.pool, b.address, b.state, b.why)
            }
            Self::BackendRemoved { at, pool, address } => {
                format!("{at} pool {pool}: backend {address} is removed\n")
            }
            Self::RegionRemoved { at, pool, region } => {
                format!("{at} pool {pool}: region {region} has no backends any more\n")
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

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000_500)
    }

    fn message(event: watch_response::Event, resume_token: &str) -> v1::WatchResponse {
        v1::WatchResponse { event: Some(event), resume_token: resume_token.into() }
    }

    fn line(event: watch_response::Event) -> (String, serde_json::Value) {
        let events = Reader::default().take(message(event, ""), now());
        let [event] = &events[..] else { panic!("one line") };
        (event.table(), serde_json::to_value(event).unwrap())
    }

    fn backends(status: v1::BackendStatus) -> watch_response::Event {
        let backends = vec![status];
        watch_response::Event::Backends(v1::BackendsChange { backends, ..Default::default() })
    }

    fn groups(status: v1::GroupStatus) -> watch_response::Event {
        let groups = vec![status];
        watch_response::Event::Groups(v1::GroupsChange { groups, ..Default::default() })
    }

    #[test]
    fn each_event_is_one_line_with_its_time() {
        let (text, json) = line(backends(v1::BackendStatus {
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

        let (text, json) = line(groups(v1::GroupStatus {
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

        let change = v1::GenerationChange {
            generation: 7,
            changes: vec![v1::Change::default()],
            more_changes: 2,
        };
        let (text, json) = line(watch_response::Event::Generation(change));
        assert_eq!(text, "1970-01-12T13:46:40Z generation 7 is in force: 3 changes\n");
        assert_eq!(json["generation"], 7);

        let removed = |name: &str| {
            vec![v1::ObjectReference {
                name: name.into(),
                pool: "web".into(),
                ..Default::default()
            }]
        };
        let gone = v1::BackendsChange { removed: removed("10.0.0.1"), ..Default::default() };
        let (text, json) = line(watch_response::Event::Backends(gone));
        assert_eq!(text, "1970-01-12T13:46:40Z pool web: backend 10.0.0.1 is removed\n");
        assert_eq!(
            (&json["event"], &json["address"]),
            (&"backend_removed".into(), &"10.0.0.1".into())
        );
        let gone = v1::GroupsChange { removed: removed("eu"), ..Default::default() };
        let (text, _) = line(watch_response::Event::Groups(gone));
        assert_eq!(text, "1970-01-12T13:46:40Z pool web: region eu has no backends any more\n");
    }

    #[test]
    fn a_snapshot_is_one_event_once_it_is_complete() {
        let mut reader = Reader::default();
        let backend = |state: &str| {
            backends(v1::BackendStatus { state: messages::state(state), ..Default::default() })
        };
        let begin = || {
            let status = Some(v1::StatusResponse { generation: 6, ..Default::default() });
            watch_response::Event::SnapshotBegin(v1::SnapshotBegin { cause: 1, status })
        };
        let end = || watch_response::Event::SnapshotEnd(v1::SnapshotEnd {});
        for part in [begin(), backend("up"), begin(), backend("up"), backend("unhealthy")] {
            assert!(reader.take(message(part, ""), now()).is_empty());
            assert_eq!(reader.resume_token, "", "one that broke off begins again");
        }
        let events = reader.take(message(end(), "life-7"), now());
        let [event] = &events[..] else { panic!("one line") };
        assert_eq!(event.table(), "1970-01-12T13:46:40Z generation 6, 1 of 2 backends up\n");
        let json = serde_json::to_value(event).unwrap();
        assert_eq!(
            (&json["event"], &json["status"]["generation"]),
            (&"snapshot".into(), &6.into())
        );
        assert_eq!(reader.resume_token, "life-7");
        assert_eq!(reader.take(message(backend("up"), "life-8"), now()).len(), 1);
        assert_eq!(reader.resume_token, "life-8");
    }
}
