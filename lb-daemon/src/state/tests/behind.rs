//! The packet path fails after the store has the generation.

use MemberState::{Dead, Up};

use super::*;

const CAUSE: &str = "groups: 1 more are needed in one piece, the largest free one has 0";

#[tokio::test(start_paused = true)]
async fn it_is_said_and_tried_again_until_done() {
    let daemon = Daemon::new();
    let mut subscription = daemon.running.commands.watch().await.unwrap().unwrap();
    daemon.path.content().failures = 3;
    let error = daemon.apply(WEB).await.unwrap_err();
    assert_eq!(
        causes::of(&error),
        format!(
            "generation 1 is in force, but the packet path is not there yet and is tried again \
             every second: {CAUSE}"
        )
    );
    let status = daemon.status().await;
    assert_eq!((status.generation, status.behind.as_deref()), (1, Some(CAUSE)));
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 1);
    assert!(matches!(subscription.events.try_recv(), Ok(Event::Generation(_))));
    // A check may speak meanwhile.
    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;

    while daemon.status().await.behind.is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(daemon.path.content().applied, 1);
    assert_eq!(daemon.path.content().plan.backends.len(), 2);
    assert_eq!(daemon.state("web", "10.0.0.1"), Up);
    assert_eq!(daemon.state("web", "10.0.0.2"), Dead);
}

#[tokio::test(start_paused = true)]
async fn the_next_apply_may_bring_it_along() {
    let daemon = Daemon::new();
    daemon.path.content().failures = 1;
    daemon.apply(WEB).await.unwrap_err();
    daemon.path.content().failures = 0;
    let applied = daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap();
    assert_eq!(applied.generation, 2);
    assert_eq!(daemon.status().await.behind, None);
}

#[tokio::test(start_paused = true)]
async fn at_a_start_pinned_states_stand_until_it_is_done() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.restart_after(|path| path.content().failures = 1).await;
    while daemon.status().await.behind.is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(daemon.state("web", "10.0.0.1"), Up);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.state, Up);
}

/// The watchdog must not be fed by a daemon whose packets do not go where they should.
#[tokio::test(start_paused = true)]
async fn no_round_counts_as_complete_while_behind() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.restart_after(|path| path.content().failures = 3).await;
    loop {
        let rounds = daemon.running.heartbeat.rounds();
        if daemon.status().await.behind.is_none() {
            break;
        }
        assert_eq!(rounds, 0);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    daemon.running.commands.export().await.unwrap();
    assert_ne!(daemon.running.heartbeat.rounds(), 0);
}
