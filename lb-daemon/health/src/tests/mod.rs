//! Probers over real sockets on loopback.

mod agents;
mod answers;
mod authority;
mod bodies;
mod certificates;
mod datagrams;
mod grpc;
mod hostile;
mod hosts;
mod https;
mod openssl;
mod restarts;
mod rounds;
mod server;
mod targets;

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use server::{PATIENCE, Server};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    Health::{self, Failing, Passing},
    HealthChange, Prober, Streaks, Target, Tunnels,
};
use crate::Counters;
use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, Receiver, bounded},
};
use lb_model::{CheckKind, Encapsulation, HealthCheck, HttpCheck, Name, Via};
use lb_net::SourceRules;

/// A check of `server` that waits longer than any test and repeats as fast as it is answered.
fn http(server: SocketAddr) -> HealthCheck {
    HealthCheck {
        kind: CheckKind::Http(HttpCheck {
            method: "GET".to_owned(),
            path: "/health".to_owned(),
            host: None,
            status_min: 200,
            status_max: 299,
            body_contains: None,
            agent_header: None,
        }),
        tls: None,
        via: Via::Address,
        port: server.port(),
        interval: Duration::from_millis(1),
        fast_interval: Duration::from_millis(1),
        timeout: PATIENCE,
        rise: 2,
        fall: 3,
        jitter_percent: 0,
        host_probe: lb_model::HostProbe::Auto,
        host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
    }
}

fn tcp(server: SocketAddr) -> HealthCheck {
    HealthCheck { kind: CheckKind::Tcp, ..http(server) }
}

fn target(pool: &str, server: SocketAddr, checks: &[(&str, &HealthCheck)]) -> Target {
    Target {
        pool: Name::new(pool).unwrap(),
        address: server.ip(),
        checks: checks.iter().map(|(n, c)| (Name::new(n).unwrap(), (*c).clone())).collect(),
        vips: BTreeSet::new(),
        encapsulation: Encapsulation::IpInIp,
        urgent: true,
        is_up: false,
    }
}

/// A running prober.
struct Probing {
    targets: watch::Sender<Arc<Vec<Target>>>,
    changes: Receiver<HealthChange>,
    heartbeat: Heartbeat,
    streaks: Streaks,
    task: JoinHandle<()>,
}

impl Probing {
    fn start(targets: Vec<Target>) -> Self {
        Self::with_limits(targets, 1024, 1024)
    }

    /// At most `room` checks at once, at most `unread` changes told and not read.
    fn with_limits(targets: Vec<Target>, room: usize, unread: usize) -> Self {
        Self::with_streaks(targets, room, unread, Streaks::default())
    }

    fn with_streaks(targets: Vec<Target>, room: usize, unread: usize, streaks: Streaks) -> Self {
        let heartbeat = Heartbeat::unwatched(Duration::from_millis(10));
        let (targets, wanted) = watch::channel(Arc::new(targets));
        let (changes_tx, changes) = bounded(unread, &QueueCounters::default());
        let task = Prober::spawn_with_room(
            wanted,
            changes_tx,
            heartbeat.clone(),
            Counters::default(),
            Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into())),
            streaks.clone(),
            room,
        );
        Self { targets, changes, heartbeat, streaks, task }
    }

    fn configure(&self, targets: Vec<Target>) {
        self.targets.send(Arc::new(targets)).unwrap();
    }

    /// The next change: pool, health, whether first, reason.
    async fn next(&mut self) -> (String, Health, bool, String) {
        let change = timeout(PATIENCE, self.changes.recv()).await.expect("no change came").unwrap();
        (change.pool.to_string(), change.health, change.first, change.reason.text)
    }

    fn is_silent(&self) -> bool {
        self.changes.is_empty()
    }
}

/// What [`Probing::next`] gives for pool `web`.
fn web(health: Health, first: bool, reason: &str) -> (String, Health, bool, String) {
    ("web".to_owned(), health, first, reason.to_owned())
}

const PASSES: &str = "all checks pass";
