//! Setting the clock hours or years forward and back changes nothing for a daemon that checks a backend, and only shown
//! times move: no backend fails, no check is early or late, and what ends after a time does not end.

use std::{
    net::TcpListener,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{Running, until};
use libtest_mimic::{Failed, Trial};
use nix::{
    sys::time::TimeSpec,
    time::{ClockId, clock_settime},
};

use crate::service::{LIMIT, Service};

const ADDRESS: &str = "10.9.0.1";
const PORT: u16 = 8080;
/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(500);
/// Seconds.
const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;
/// How long the pool's remap takes to settle, hours.
const SETTLES: i64 = 2;
/// By how much the clock is set, one after the other: further than the remap takes, and further than all else.
const STEPS: [i64; 6] = [3 * HOUR, -6 * HOUR, 3 * HOUR, 10 * YEAR, -20 * YEAR, 10 * YEAR];
/// How the daemon says that its tracepoints are there, or why they are not.
const TRACING: [&str; 2] = ["the kernel's tracepoints count", "are not traced"];

pub(crate) fn trial() -> Trial {
    Trial::test("clock: setting it by hours and years changes nothing", || {
        run().map_err(|error| Failed::from(format!("{error:#}")))
    })
}

fn run() -> Result<()> {
    let service = Service::new("/tmp/clock")?;
    // Loopback addresses are no backends.
    let mut ip = Command::new("/bin/busybox");
    let added =
        ip.args(["ip", "address", "add", &format!("{ADDRESS}/32"), "dev", "lo"]).status()?;
    ensure!(added.success(), "no address: {added}");
    let backend = Backend::listen()?;
    let daemon = service.start()?;
    watched(service, &backend, &daemon).with_context(|| daemon.output())?;
    service.stop(daemon)?;
    service.detach()
}

fn watched(service: Service, backend: &Backend, daemon: &Running) -> Result<()> {
    service.apply(&configuration(1, 1))?;
    until("the backend is up", LIMIT, || Ok((state(service)? == (1, "up".into())).then_some(())))?;
    // Another key gives all connections another home.
    service.apply(&configuration(1, 2))?;
    settles(service)?;
    until("the log is quiet", LIMIT, || {
        let before = daemon.output();
        backend.checks(4)?;
        // The last of what a daemon begins beside its start; on a slow machine it takes seconds.
        let is_traced = TRACING.iter().any(|line| before.contains(line));
        Ok((is_traced && daemon.output() == before).then_some(()))
    })?;

    let log = daemon.output();
    for step in STEPS {
        let to = seconds_now()?.checked_add(step).context("no such time")?;
        let to = TimeSpec::from_duration(Duration::from_secs(to.try_into()?));
        clock_settime(ClockId::CLOCK_REALTIME, to).context("set the clock")?;
        // Checks go on, and at their pace.
        let (checks, took) = backend.checks(10)?;
        let most = took.as_secs_f64() / (INTERVAL.as_secs_f64() * 0.9) + 2.0;
        ensure!(f64::from(checks) <= most, "{checks} checks in {took:?} after {step} s");
        // Each change of a state, each condition has a line.
        ensure!(daemon.output() == log, "{step} s changed something");
        ensure!(state(service)? == (2, "up".into()), "{step} s: {:?}", state(service)?);
        settles(service).with_context(|| format!("{step} s"))?;
    }

    // And it does all that it is there for.
    service.apply(&configuration(2, 2))?;
    backend.silence();
    until("the backend is down", LIMIT, || {
        let (generation, state) = state(service)?;
        Ok((generation == 3 && state != "up").then_some(()))
    })
}

/// The pool is in a remap that is not nearly over; the shown time of its end is by the clock as it is set.
fn settles(service: Service) -> Result<()> {
    let text = service.must(&["--output", "json", "status"])?;
    let status: serde_json::Value = serde_json::from_str(&text)?;
    let settling = &status["settling"][0];
    ensure!(settling["pool"] == "web" && settling["overdue"] == false, "{settling}");
    let ends_at = settling["ends_at"].as_str().context("no time")?;
    let left = seconds(ends_at)? - seconds_now()?;
    ensure!((HOUR..=SETTLES * HOUR + 60).contains(&left), "{left} s until {ends_at}");
    Ok(())
}

/// Seconds of the Unix epoch.
fn seconds_now() -> Result<i64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs().try_into()?)
}

/// The same of a time such as `2026-01-02T03:04:05.678Z`.
fn seconds(time: &str) -> Result<i64> {
    let time = time.get(..19).context("a short time")?.replace('T', " ");
    let output = Command::new("/bin/busybox").args(["date", "-u", "-d", &time, "+%s"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.trim().parse().with_context(|| format!("{time}: {text}"))
}

fn configuration(weight: u32, key: u8) -> String {
    let interval = INTERVAL.as_millis();
    format!(
        "hash_key = \"{key:032x}\"\n[[region]]\nname = \"eu\"\n\
         [[health_check]]\nname = \"tcp\"\nport = {PORT}\ntcp = {{}}\n\
         interval = \"{interval}ms\"\njitter_percent = 0\n\
         [[pool]]\nname = \"web\"\nhealth_checks = [\"tcp\"]\nslots = 31\n\
         settle_time = \"{SETTLES}h\"\n\
         [[pool.backend]]\naddress = \"{ADDRESS}\"\nregion = \"eu\"\nweight = {weight}\n"
    )
}

/// The generation in force, and the state of the backend.
fn state(service: Service) -> Result<(u64, String)> {
    let text = service.must(&["--output", "json", "status"])?;
    let status: serde_json::Value = serde_json::from_str(&text)?;
    let state = status["backends"][0]["state"].as_str().unwrap_or("none").to_owned();
    Ok((status["generation"].as_u64().context("no generation")?, state))
}

/// A backend that counts who connects.
struct Backend {
    connections: Arc<AtomicU32>,
    over: Arc<AtomicBool>,
}

impl Backend {
    fn listen() -> Result<Self> {
        let listener = TcpListener::bind((ADDRESS, PORT))?;
        let backend = Self { connections: Arc::default(), over: Arc::default() };
        let (connections, over) = (Arc::clone(&backend.connections), Arc::clone(&backend.over));
        thread::spawn(move || {
            for _connection in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                connections.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(backend)
    }

    /// Waits for so many checks; how many there were, and in what time.
    fn checks(&self, number: u32) -> Result<(u32, Duration)> {
        let (before, begun) = (self.connections.load(Ordering::Relaxed), Instant::now());
        until("more checks", LIMIT, || {
            let checks = self.connections.load(Ordering::Relaxed) - before;
            Ok((checks >= number).then_some((checks, begun.elapsed())))
        })
    }

    /// It does not listen from the next connection on.
    fn silence(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
