//! A packet path that takes for ever.

use std::time::Duration;

use tokio::{
    net::UnixDatagram,
    time::{Instant, timeout, timeout_at},
};

use super::*;
use crate::watchdog::Notifier;

const PERIOD: Duration = Duration::from_millis(100);

/// What the service manager hears next.
async fn hear(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 64];
    let length = manager.recv(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// The loop that stalls has a thread of its own, so that the rest of the daemon goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_feeds_the_watchdog_for_a_round_that_does_not_end() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    let notifier = Notifier::new(socket.as_os_str()).unwrap();
    let mut watchdog = Watchdog::new(Some(notifier), Some(PERIOD));
    let heartbeat = watchdog.register("reconcile");
    let daemon = Daemon::beating(heartbeat.clone());
    let feeding = tokio::spawn(watchdog.run(heartbeat, std::future::pending()));
    assert_eq!(hear(&manager).await, "READY=1");
    assert_eq!(hear(&manager).await, "WATCHDOG=1");

    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: parse(WEB), ..Apply::default() };
    let applying = tokio::spawn(async move { commands.apply(apply).await });
    let stall = stall.begun().await;

    // What was said before the stall does not count. One may be on its way; a daemon that goes on would send
    // twenty.
    while manager.try_recv(&mut [0; 64]).is_ok() {}
    let (end, mut fed) = (Instant::now() + 10 * PERIOD, 0);
    while timeout_at(end, hear(&manager)).await.is_ok() {
        fed += 1;
    }
    assert!(fed <= 1, "fed {fed} times");

    drop(stall);
    applying.await.unwrap().unwrap().unwrap();
    let heard = timeout(100 * PERIOD, hear(&manager)).await.unwrap();
    assert_eq!(heard, "WATCHDOG=1");
    feeding.abort();
}
