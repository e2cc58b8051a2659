//! Messages are taken from the queue instead of a socket, and the clock is stopped, so that what was sent up to a moment
//! can be counted exactly.

use std::sync::mpsc::Receiver;

use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{interval, sleep},
};

use super::{service_manager::Message, *};

const PERIOD: Duration = Duration::from_millis(1000);

/// The messages for the service manager.
struct Sent(Receiver<Message>);

impl Sent {
    fn channel() -> (ServiceManager, Self) {
        let (manager, messages) = ServiceManager::channel();
        (manager, Self(messages))
    }

    /// What is sent within `time`; taken as it comes, since the queue is bounded.
    async fn within(&mut self, time: Duration) -> Vec<String> {
        let end = Instant::now() + time;
        let mut sent = Vec::new();
        while Instant::now() < end {
            sleep(time / 100).await;
            sent.extend(self.now());
        }
        sent
    }

    fn now(&mut self) -> Vec<String> {
        let states = self.0.try_iter().filter_map(|message| match message {
            Message::State(state) => Some(state),
            Message::Flush(sent) => {
                let _ = sent.send(());
                None
            }
        });
        states.collect()
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

fn daemon(manager: ServiceManager, period: Option<Duration>) -> Daemon {
    let mut watchdog = Watchdog::new(manager, period);
    let health = watchdog.register("health");
    let reconcile = watchdog.register("reconcile");
    let (stop, stopped) = oneshot::channel();
    let run = watchdog.run(reconcile.clone(), async { drop(stopped.await) });
    Daemon { health, reconcile, stop, watchdog: tokio::spawn(run) }
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_the_first_reconcile_round_and_stopping_for_the_stop() {
    let (manager, mut sent) = Sent::channel();
    let daemon = daemon(manager, Some(PERIOD));
    let _health = beating(daemon.health.clone());
    sleep(10 * PERIOD).await;
    assert_eq!(sent.now(), [""; 0]);

    daemon.reconcile.beat();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(sent.now(), ["READY=1"]);

    daemon.stop.send(()).unwrap();
    daemon.watchdog.await.unwrap();
    assert_eq!(sent.now(), ["STOPPING=1"]);
}

#[tokio::test(start_paused = true)]
async fn feeding_comes_at_half_the_period_while_all_loops_beat() {
    let (manager, mut sent) = Sent::channel();
    let daemon = daemon(manager, Some(PERIOD));
    let _loops = [beating(daemon.health.clone()), beating(daemon.reconcile.clone())];
    sleep(Duration::from_millis(499)).await;
    assert_eq!(sent.now(), ["READY=1"]);
    sleep(Duration::from_millis(2)).await;
    assert_eq!(sent.now(), ["WATCHDOG=1"]);
    assert_eq!(sent.within(10 * PERIOD).await, ["WATCHDOG=1"; 20]);
}

#[tokio::test(start_paused = true)]
async fn one_stalled_loop_ends_feeding_until_it_goes_on() {
    for stall_health in [true, false] {
        let (manager, mut sent) = Sent::channel();
        let daemon = daemon(manager, Some(PERIOD));
        let (stalls, beats) = match stall_health {
            true => (daemon.health.clone(), daemon.reconcile.clone()),
            false => (daemon.reconcile.clone(), daemon.health.clone()),
        };
        let _goes_on = beating(beats);
        let stalling = beating(stalls.clone());
        sleep(PERIOD).await;
        assert!(sent.now().contains(&"WATCHDOG=1".to_owned()));

        stalling.abort();
        // One feeding may still rest on a round from before the stall.
        sleep(PERIOD).await;
        assert!(sent.now().len() <= 1);
        assert_eq!(sent.within(100 * PERIOD).await, [""; 0], "health stalled: {stall_health}");

        stalls.beat();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(sent.now(), ["WATCHDOG=1"], "one round, one feeding, at once");
        assert_eq!(sent.within(100 * PERIOD).await, [""; 0]);

        let _resumed = beating(stalls);
        assert!(sent.within(10 * PERIOD).await.len() >= 19);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_period_nothing_is_fed() {
    let (manager, mut sent) = Sent::channel();
    let daemon = daemon(manager, None);
    let _loops = [beating(daemon.health.clone()), beating(daemon.reconcile.clone())];
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(sent.now(), ["READY=1"]);
}

#[test]
fn a_reload_carries_the_time_and_a_status_is_one_line() {
    let (manager, mut sent) = Sent::channel();
    manager.reloading();
    manager.status("two\nlines");
    manager.extend_start(Duration::from_secs(30));
    let [reloading, status, extension] = &sent.now()[..] else { panic!("three messages") };
    let (first, time) = reloading.split_once('\n').unwrap();
    assert_eq!(first, "RELOADING=1");
    assert!(time.strip_prefix("MONOTONIC_USEC=").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!((&**status, &**extension), ("STATUS=two lines", "EXTEND_TIMEOUT_USEC=30000000"));
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_does_not_read_holds_nothing_up() {
    let (manager, _unread) = Sent::channel();
    (0..1000).for_each(|_| manager.feed_watchdog());
    manager.stopping().await;
}
