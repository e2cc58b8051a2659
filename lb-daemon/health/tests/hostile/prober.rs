//! The process whose memory is measured.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::Ipv4Addr,
    sync::Arc,
};

use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, bounded},
};
use lb_health::{Counters, Prober, Streaks, Target, Tunnels};
use lb_model::{Encapsulation, Name};
use lb_net::SourceRules;
use tokio::{runtime::Builder, sync::watch};

use crate::{BACKENDS, kinds::Kind};

/// Checks a thousand backends of a kind once, all at once, and prints what it took.
pub(crate) fn run(kind: Kind, port: u16) {
    let check = kind.check(port);
    let target = |number| Target {
        pool: Name::new("web").unwrap(),
        address: Ipv4Addr::from(0x7f02_0000 + number).into(),
        checks: vec![(Name::new("up").unwrap(), check.clone())],
        vips: BTreeSet::new(),
        encapsulation: Encapsulation::IpInIp,
        urgent: true,
        is_up: false,
    };
    let targets: Vec<_> = (0..BACKENDS).map(target).collect();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(async {
        let (_targets, wanted) = watch::channel(Arc::new(targets));
        let (changes_tx, mut changes) = bounded(4096, &QueueCounters::default());
        let heartbeat = Heartbeat::unwatched(std::time::Duration::from_millis(1000));
        let _prober = Prober::spawn(
            wanted,
            changes_tx,
            heartbeat,
            Counters::default(),
            Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into())),
            Streaks::default(),
        );
        let mut said: BTreeMap<String, u32> = BTreeMap::new();
        for _ in 0..BACKENDS {
            *said.entry(changes.recv().await.unwrap().reason.text).or_default() += 1;
        }
        said
    });
    println!("{}", peak());
    for (reason, times) in said {
        println!("{times} {reason}");
    }
}

/// The most memory that this process has had at once, KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}
