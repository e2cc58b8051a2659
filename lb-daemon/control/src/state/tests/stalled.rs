//! A packet path that takes for ever: the state loop completes no round, so that the watchdog is not fed.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::*;

const INTERVAL: Duration = Duration::from_millis(25);

async fn wait_for_rounds(heartbeat: &Heartbeat, more: u64) {
    let begin = heartbeat.rounds();
    let beats = async {
        while heartbeat.rounds() < begin + more {
            sleep(INTERVAL).await;
        }
    };
    timeout(400 * INTERVAL, beats).await.expect("the loop beats");
}

/// The loop that stalls has a thread of its own, so that the rest of the daemon goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_does_not_beat_while_the_packet_path_stalls_it() {
    let heartbeat = Heartbeat::unwatched(INTERVAL);
    let daemon = Daemon::beating(heartbeat.clone());
    wait_for_rounds(&heartbeat, 3).await;

    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: parse(WEB), ..Apply::default() };
    let applying = tokio::spawn(async move { commands.apply(apply, None).await });
    let stall = stall.begun().await;

    // A loop that goes on would complete forty rounds.
    let before = heartbeat.rounds();
    sleep(40 * INTERVAL).await;
    assert_eq!(heartbeat.rounds(), before);

    drop(stall);
    applying.await.unwrap().unwrap().unwrap();
    wait_for_rounds(&heartbeat, 1).await;
}
