//! What it costs to check many backends, and how late their checks start.
//!
//! The prober runs on one core, as in the daemon; the servers, a process of their own, on the others.
//! Backends are addresses of loopback, each checked by a connection of its own.
//!
//! ```text
//! cargo run --release -p lb-health --example many_checks [BACKENDS] [SECONDS] [tcp|http]
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "it is a measurement")]

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, bounded},
};
use lb_health::{Counters, Health, Prober, Streaks, Target, Tunnels};
use lb_model::{CheckKind, Encapsulation, HealthCheck, HttpCheck, Name, Via};
use lb_net::SourceRules;
use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    },
    unistd::Pid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::watch,
    time::{Instant, sleep},
};

const INTERVAL: Duration = Duration::from_secs(1);
const SERVE: &str = "serve";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";

/// The core of the prober.
const CORE: usize = 0;

fn main() {
    let mut arguments = env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some(SERVE) {
        return serve();
    }
    let backends: u32 = first.map_or(10_000, |text| text.parse().unwrap());
    let seconds = arguments.next().map_or(30, |text| text.parse().unwrap());
    let http = arguments.next().is_none_or(|kind| kind == "http");

    let (mut servers, port) = Servers::start();
    pin([CORE]);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(targets(backends, port, http), Duration::from_secs(seconds)));
    servers.0.kill().unwrap();
    servers.0.wait().unwrap();
}

/// The process of the servers.
struct Servers(Child);

impl Servers {
    fn start() -> (Self, u16) {
        let mut child = Command::new(env::current_exe().unwrap())
            .arg(SERVE)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        (Self(child), port.trim().parse().unwrap())
    }
}

/// Answers on all addresses of loopback until it is killed.
fn serve() {
    let cores = thread::available_parallelism().unwrap().get();
    let others = (0..cores).filter(|core| *core != CORE || cores == 1);
    pin(others);
    let runtime: Runtime = Builder::new_multi_thread()
        .worker_threads(cores.saturating_sub(1).max(1))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([0, 0, 0, 0], 0))).unwrap();
        let listener: TcpListener = socket.listen(16_384).unwrap();
        println!("{}", listener.local_addr().unwrap().port());
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 512];
                // A connect alone ends here.
                if stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(ANSWER).await;
                }
            });
        }
    });
}

/// Each backend has an address of its own, from 127.1.0.0 on.
fn targets(backends: u32, port: u16, http: bool) -> Vec<Target> {
    let request = HttpCheck {
        method: "GET".to_owned(),
        path: "/healthz".to_owned(),
        host: None,
        status_min: 200,
        status_max: 299,
        body_contains: None,
        agent_header: None,
    };
    let check = HealthCheck {
        kind: if http { CheckKind::Http(request) } else { CheckKind::Tcp },
        tls: None,
        via: Via::Address,
        port,
        interval: INTERVAL,
        fast_interval: INTERVAL,
        timeout: INTERVAL,
        rise: 2,
        fall: 3,
        jitter_percent: 10,
        host_probe: lb_model::HostProbe::Auto,
        host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
    };
    let target = |number| Target {
        pool: Name::new("web").unwrap(),
        address: Ipv4Addr::from(0x7f01_0000 + number).into(),
        checks: vec![(Name::new("up").unwrap(), check.clone())],
        vips: BTreeSet::new(),
        encapsulation: Encapsulation::IpInIp,
        urgent: true,
        is_up: false,
    };
    (0..backends).map(target).collect()
}

async fn measure(targets: Vec<Target>, time: Duration) {
    let backends = targets.len();
    let counters = Counters::default();
    let lateness = counters.exact_lateness();
    let (_targets, wanted) = watch::channel(Arc::new(targets));
    let (changes_tx, mut changes) = bounded(4096, &QueueCounters::default());
    let heartbeat = Heartbeat::unwatched(Duration::from_millis(1000));
    let _prober = Prober::spawn(
        wanted,
        changes_tx,
        heartbeat,
        counters.clone(),
        Tunnels::new(SourceRules::default(), |_| Err("this test has no packet program".into())),
        Streaks::default(),
    );

    // Until all have passed once; they begin together, which is not what is measured.
    let began = Instant::now();
    for _ in 0..backends {
        assert_eq!(changes.recv().await.unwrap().health, Health::Passing);
    }
    println!("{backends} backends up after {:.2?}", began.elapsed());
    sleep(3 * INTERVAL).await;

    lateness.clear();
    let (began, before) = (Instant::now(), used());
    sleep(time).await;
    let (time, used) = (began.elapsed(), used() - before);
    let mut fell = 0;
    while let Some(change) = changes.try_recv() {
        fell += usize::from(change.health != Health::Passing);
    }
    println!("checks: {:.0}/s over {time:.1?}", lateness.count() as f64 / time.as_secs_f64());
    println!(
        "CPU of the prober: {:.1} % of one core",
        100.0 * used.as_secs_f64() / time.as_secs_f64()
    );
    let late = |per_mille| lateness.quantile(per_mille);
    println!("late: p50 {:?}, p99 {:?}, max {:?}", late(500), late(990), lateness.most());
    println!("told to have failed: {fell}");
}

/// CPU time of this process, with that of the kernel on its behalf.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let time = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(time).unwrap())
}

fn pin(cores: impl IntoIterator<Item = usize>) {
    let mut set = CpuSet::new();
    cores.into_iter().for_each(|core| set.set(core).unwrap());
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}
