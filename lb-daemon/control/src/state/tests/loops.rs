//! What is measured of the loops.

use tokio::time::timeout;

use super::*;

/// How many entries were taken, and how many turns were made.
fn measured(of: &LoopCounters) -> (u64, u64) {
    (of.queue().waiting().read().count, of.service().read().count)
}

#[tokio::test]
async fn each_loop_counts_what_it_takes() {
    let daemon = Daemon::new();
    let AllLoopCounters { member, state, publisher, overrides, status } = &daemon.running.loops;
    daemon.apply(WEB).await.unwrap();
    // The apply is not alone: the member loop tells the state loop of the new backends.
    let (taken, turns) = measured(state);
    assert!(taken >= 2 && turns >= 1, "{taken} {turns}");
    // Gateways are dropped, pools handed over, next hops kept.
    assert!(measured(member).0 >= 3 && measured(member).1 >= 3, "{:?}", measured(member));
    // The plan is checked and published.
    assert!(measured(publisher).0 >= 2 && measured(publisher).1 >= 2, "{:?}", measured(publisher));
    let before = (measured(state).0, measured(member).0);
    for _ in 0..3 {
        daemon.status().await;
    }
    assert!(measured(status).0 >= 3 && measured(status).1 >= 3, "{:?}", measured(status));
    assert_eq!((measured(state).0, measured(member).0), before, "they answer no question");
    assert_eq!(measured(overrides).0, 0, "nor does the override loop");
    assert!(measured(overrides).1 >= 1, "it is shown the configuration");
    // The status loop may have been told something again since.
    assert_eq!((state.queue().length(), member.queue().length()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_apply_that_stalls_shows_in_the_queue_and_the_age_of_the_state_loop() {
    const A_WHILE: Duration = Duration::from_millis(200);
    let daemon = Daemon::new();
    let AllLoopCounters { state, status, .. } = &daemon.running.loops;
    daemon.apply(WEB).await.unwrap();
    let stall = daemon.path.stall();
    let apply = |text: &str| {
        let (commands, configuration) = (daemon.running.commands.clone(), request(text));
        let apply = Apply { configuration, ..Apply::default() };
        tokio::spawn(async move { commands.apply(apply, None).await })
    };
    let first = apply(&web("31", "37"));
    let (stall, begun) = (stall.begun().await, Instant::now());
    let second = apply(WEB);
    let shows = async {
        while state.queue().length() == 0 || begun.elapsed() < A_WHILE {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(120), shows).await.unwrap();
    assert!(state.since_last_turn() >= A_WHILE);
    let (service, waiting) = (state.service().read(), state.queue().waiting().read());
    daemon.status().await;
    assert!(status.since_last_turn() < state.since_last_turn(), "the status loop turns meanwhile");

    drop(stall);
    first.await.unwrap().unwrap().unwrap();
    second.await.unwrap().unwrap().unwrap();
    let added = state.service().read().sum - service.sum;
    assert!(added >= A_WHILE.as_secs_f64(), "{added}");
    assert!(state.queue().waiting().read().sum > waiting.sum, "the second apply has waited");
    assert_eq!(state.queue().length(), 0);
}
