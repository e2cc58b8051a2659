//! A host that has no file descriptor left says nothing of its backends. The limit belongs to the
//! whole process, so this test has one of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of a test may be blunt too

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, bounded},
};
use lb_health::{Counters, Health, Prober, Streaks, Target, Tunnels};
use lb_model::{CheckKind, Encapsulation, HealthCheck, Name, Via};
use lb_net::SourceRules;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{sleep, timeout},
};

const PATIENCE: Duration = Duration::from_secs(120);

fn target(port: u16) -> Target {
    let check = HealthCheck {
        kind: CheckKind::Tcp,
        tls: None,
        via: Via::Address,
        port,
        interval: Duration::from_millis(10),
        fast_interval: Duration::from_millis(10),
        timeout: Duration::from_secs(1),
        rise: 1,
        fall: 1,
        jitter_percent: 0,
        host_probe: lb_model::HostProbe::Auto,
        host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
    };
    Target {
        pool: Name::new("web").unwrap(),
        address: [127, 0, 0, 1].into(),
        checks: vec![(Name::new("up").unwrap(), check)],
        vips: BTreeSet::new(),
        encapsulation: Encapsulation::IpInIp,
        urgent: true,
        is_up: false,
    }
}

/// Waits until rounds go on (or do not) for a while.
async fn wait_until_rounds(heartbeat: &Heartbeat, go_on: bool) {
    let settled = async {
        loop {
            let before = heartbeat.rounds();
            sleep(10 * heartbeat.interval()).await;
            if (heartbeat.rounds() > before) == go_on {
                return;
            }
        }
    };
    timeout(PATIENCE, settled).await.expect("rounds");
}

#[tokio::test]
async fn without_descriptors_nothing_is_told_and_no_round_is_complete() {
    // Listening is enough for a connect to succeed; nothing accepts, so nothing needs a descriptor.
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let targets = Arc::new(vec![target(server.local_addr().unwrap().port())]);
    let (_configure, targets) = watch::channel(targets);
    let (changes_tx, mut changes) = bounded(16, &QueueCounters::default());
    let heartbeat = Heartbeat::unwatched(Duration::from_millis(20));
    Prober::spawn(
        targets,
        changes_tx,
        heartbeat.clone(),
        Counters::default(),
        Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into())),
        Streaks::default(),
    );
    let first = timeout(PATIENCE, changes.recv()).await.expect("no result").unwrap();
    assert!(first.health == Health::Passing && first.first);

    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 1, hard).unwrap();
    wait_until_rounds(&heartbeat, false).await;
    assert!(changes.is_empty(), "the backend was judged by what this host lacks");

    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    wait_until_rounds(&heartbeat, true).await;
    assert!(changes.is_empty());
}
