//! The socket is real, the clock is not: sending a datagram is done when `send` returns, so what was
//! sent up to a moment of the stopped clock can be counted exactly.

use std::{
    ffi::OsStr,
    io::ErrorKind,
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr, unix::net::UnixDatagram},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{interval, sleep},
};

use super::*;

const PERIOD: Duration = Duration::from_millis(1000);

/// The service manager.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("spillway-notify-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, path }
    }

    /// What is sent within `time`; read as it comes, since the kernel queues only ten datagrams.
    async fn hears_for(&self, time: Duration) -> Vec<String> {
        let end = Instant::now() + time;
        let mut heard = Vec::new();
        while Instant::now() < end {
            sleep(time / 100).await;
            heard.extend(self.heard());
        }
        heard
    }

    fn heard(&self) -> Vec<String> {
        let mut heard = Vec::new();
        let mut buffer = [0; 64];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => heard.push(String::from_utf8(buffer[..length].to_vec()).unwrap()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return heard,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A loop that completes a round every [`Heartbeat::interval`] until it is stopped.
fn beating(heartbeat: Heartbeat) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut rounds = interval(heartbeat.interval());
        loop {
            rounds.tick().await;
            heartbeat.beat();
        }
    })
}

struct Daemon {
    health: Heartbeat,
    reconcile: Heartbeat,
    stop: oneshot::Sender<()>,
    watchdog: JoinHandle<()>,
}

fn daemon(manager: &Manager, period: Option<Duration>) -> Daemon {
    let notifier = Notifier::new(manager.path.as_os_str()).unwrap();
    let mut watchdog = Watchdog::new(Some(notifier), period);
    let health = watchdog.register("health");
    let reconcile = watchdog.register("reconcile");
    let (stop, stopped) = oneshot::channel();
    let run = watchdog.run(reconcile.clone(), async { drop(stopped.await) });
    Daemon { health, reconcile, stop, watchdog: tokio::spawn(run) }
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_the_first_reconcile_round_and_stopping_for_the_stop() {
    let manager = Manager::new();
    let daemon = daemon(&manager, Some(PERIOD));
    let _health = beating(daemon.health.clone());
    sleep(10 * PERIOD).await;
    assert_eq!(manager.heard(), [""; 0]);

    daemon.reconcile.beat();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(manager.heard(), ["READY=1"]);

    daemon.stop.send(()).unwrap();
    daemon.watchdog.await.unwrap();
    assert_eq!(manager.heard(), ["STOPPING=1"]);
}

#[tokio::test(start_paused = true)]
async fn feeding_comes_at_half_the_period_while_all_loops_beat() {
    let manager = Manager::new();
    let daemon = daemon(&manager, Some(PERIOD));
    let _loops = [beating(daemon.health.clone()), beating(daemon.reconcile.clone())];
    sleep(Duration::from_millis(499)).await;
    assert_eq!(manager.heard(), ["READY=1"]);
    sleep(Duration::from_millis(2)).await;
    assert_eq!(manager.heard(), ["WATCHDOG=1"]);
    assert_eq!(manager.hears_for(10 * PERIOD).await, ["WATCHDOG=1"; 20]);
}

#[tokio::test(start_paused = true)]
async fn one_stalled_loop_ends_feeding_until_it_goes_on() {
    for stall_health in [true, false] {
        let manager = Manager::new();
        let daemon = daemon(&manager, Some(PERIOD));
        let (stalls, beats) = match stall_health {
            true => (daemon.health.clone(), daemon.reconcile.clone()),
            false => (daemon.reconcile.clone(), daemon.health.clone()),
        };
        let _goes_on = beating(beats);
        let stalling = beating(stalls.clone());
        sleep(PERIOD).await;
        assert!(manager.heard().contains(&"WATCHDOG=1".to_owned()));

        stalling.abort();
        // One feeding may still rest on a round from before the stall.
        sleep(PERIOD).await;
        assert!(manager.heard().len() <= 1);
        assert_eq!(
            manager.hears_for(100 * PERIOD).await,
            [""; 0],
            "health stalled: {stall_health}"
        );

        stalls.beat();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(manager.heard(), ["WATCHDOG=1"], "one round, one feeding, at once");
        assert_eq!(manager.hears_for(100 * PERIOD).await, [""; 0]);

        let _resumed = beating(stalls);
        assert!(manager.hears_for(10 * PERIOD).await.len() >= 19);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fed_where_nobody_asks() {
    let manager = Manager::new();
    let daemon = daemon(&manager, None);
    let _loops = [beating(daemon.health.clone()), beating(daemon.reconcile.clone())];
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(manager.heard(), ["READY=1"]);
}

#[test]
fn an_abstract_socket_is_told_too() {
    let name = format!("spillway-abstract-{}", process::id());
    let manager =
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
    Notifier::new(OsStr::new(&format!("@{name}"))).unwrap().send("READY=1").unwrap();
    let mut buffer = [0; 64];
    let length = manager.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"READY=1");
}

#[test]
fn a_name_that_is_no_socket_is_refused_and_a_missing_manager_is_an_error() {
    let refused = Notifier::new(OsStr::new("vsock:2:1234")).unwrap_err();
    assert_eq!(refused.to_string(), "notify socket \"vsock:2:1234\": must begin with '/' or '@'");
    let gone =
        Notifier::new(OsStr::new("/nonexistent/notify")).unwrap().send("READY=1").unwrap_err();
    assert_eq!(gone.to_string(), "notify socket: READY=1 not sent");
}

#[test]
fn the_environment_says_whom_to_tell_and_how_often() {
    let own = process::id().to_string();
    for (usec, pid, period) in [
        (Some("3000000"), None, Some(Duration::from_secs(3))),
        (Some("3000000"), Some(&*own), Some(Duration::from_secs(3))),
        (Some("3000000"), Some("1"), None),
        (Some("0"), None, None),
        (Some("soon"), None, None),
        (None, Some(&*own), None),
    ] {
        let variable = |name: &str| match name {
            "NOTIFY_SOCKET" => Some("/run/notify".into()),
            "WATCHDOG_USEC" => usec.map(Into::into),
            "WATCHDOG_PID" => pid.map(Into::into),
            _ => None,
        };
        let watchdog = Watchdog::from_variables(variable).unwrap();
        assert_eq!(watchdog.period, period, "{usec:?} {pid:?}");
        assert!(watchdog.manager.listens());
    }
    let nobody = Watchdog::from_variables(|_| None).unwrap();
    assert!(!nobody.manager.listens() && nobody.period.is_none());
}
