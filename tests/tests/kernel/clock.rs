//! A clock that is set by years, forward and back, while a daemon checks a backend.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output},
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
    sys::{signal::Signal, time::TimeSpec},
    time::{ClockId, clock_settime},
};

const DIRECTORY: &str = "/tmp/clock";
const ADDRESS: &str = "10.9.0.1";
const PORT: u16 = 8080;
/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long anything may take in a guest that is emulated on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
const YEAR: u64 = 365 * 24 * 3600;

pub(crate) fn trial() -> Trial {
    Trial::test("clock: setting it by years changes nothing", || {
        run().map_err(|error| Failed::from(format!("{error:#}")))
    })
}

fn run() -> Result<()> {
    fs::create_dir_all(DIRECTORY)?;
    let path = |name: &str| Path::new(DIRECTORY).join(name);
    // Loopback addresses are no backends.
    let mut ip = Command::new("/bin/busybox");
    let added =
        ip.args(["ip", "address", "add", &format!("{ADDRESS}/32"), "dev", "lo"]).status()?;
    ensure!(added.success(), "no address: {added}");
    let backend = Backend::listen()?;
    let mut command = Command::new("/bin/spillwayd");
    command.args(["balancer", "--interface", "lo", "--xdp-mode", "generic", "--region", "eu"]);
    command.args(["--source", "10.0.0.2", "--exceptions", "4096", "--udp-flows", "4096"]);
    command.arg("--state-dir").arg(path("state")).arg("--socket").arg(path("s.sock"));
    let mut daemon = Running::start("spillwayd", &mut command, &path("log"))?;
    let outcome = watched(&backend, &daemon)
        .with_context(|| format!("{:?}\n{}", spillway(&["status"]), daemon.output()));
    daemon.signal(Signal::SIGTERM)?;
    daemon.wait()?;
    let detached = spillway(&["detach"])?;
    ensure!(detached.status.success(), "{detached:?}");
    outcome
}

fn watched(backend: &Backend, daemon: &Running) -> Result<()> {
    until("the daemon answers", LIMIT, || {
        Ok(spillway(&["status"])?.status.success().then_some(()))
    })?;
    apply(1)?;
    until("the backend is up", LIMIT, || Ok((state()? == (1, "up".into())).then_some(())))?;
    until("the log is quiet", LIMIT, || {
        let before = daemon.output();
        backend.checks(4)?;
        Ok((daemon.output() == before).then_some(()))
    })?;

    let (log, begun) = (daemon.output(), SystemTime::now());
    for years in [10_i64, -20, 10] {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let to = now.as_secs().checked_add_signed(years * YEAR as i64).context("no such time")?;
        let to = TimeSpec::from_duration(Duration::from_secs(to));
        clock_settime(ClockId::CLOCK_REALTIME, to).context("set the clock")?;
        // Checks go on, and at their pace.
        let (checks, took) = backend.checks(10)?;
        let most = took.as_secs_f64() / (INTERVAL.as_secs_f64() * 0.9) + 2.0;
        ensure!(f64::from(checks) <= most, "{checks} checks in {took:?} after {years} years");
        // Each change of a state, each trouble has a line.
        ensure!(daemon.output() == log, "{years} years changed something");
        ensure!(state()? == (1, "up".into()), "{years} years: {:?}", state()?);
    }
    let away = begun.elapsed().unwrap_or_default();
    ensure!(away < LIMIT * 3, "the clock is where it was, but for {away:?}");

    // And it does all that it is there for.
    apply(2)?;
    backend.silence();
    until("the backend is down", LIMIT, || {
        let (generation, state) = state()?;
        Ok((generation == 2 && state != "up").then_some(()))
    })
}

fn spillway(arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new("/bin/spillway");
    command.args(["--socket", &format!("{DIRECTORY}/s.sock")]);
    command.args(["--state-dir", &format!("{DIRECTORY}/state")]);
    command.args(arguments).output().context("spillway")
}

fn apply(weight: u32) -> Result<()> {
    let file = format!("{DIRECTORY}/web.toml");
    let interval = INTERVAL.as_millis();
    fs::write(
        &file,
        format!(
            "[[region]]\nname = \"eu\"\n\
             [[health_check]]\nname = \"tcp\"\nport = {PORT}\ntcp = {{}}\n\
             interval = \"{interval}ms\"\njitter_percent = 0\n\
             [[pool]]\nname = \"web\"\nhealth_checks = [\"tcp\"]\nslots = 31\n\
             [[pool.backend]]\naddress = \"{ADDRESS}\"\nregion = \"eu\"\nweight = {weight}\n"
        ),
    )?;
    let applied = spillway(&["apply", "-f", &file])?;
    ensure!(applied.status.success(), "{applied:?}");
    Ok(())
}

/// The generation in force, and the state of the backend.
fn state() -> Result<(u64, String)> {
    let output = spillway(&["--output", "json", "status"])?;
    ensure!(output.status.success(), "{output:?}");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout)?;
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
