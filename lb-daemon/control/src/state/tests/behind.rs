//! The packet path fails after the store has the generation.

use std::time::{Duration, SystemTime};

use Accepts::{All, Nothing};

use super::*;
use lb_model::MemberState;

const CAUSE: &str = "groups: 1 contiguous entries are needed, the largest free range has 0";

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_reported_and_retried() {
    let daemon = Daemon::new();
    let mut subscription = daemon.running.commands.watch(None).await.unwrap().unwrap();
    daemon.path.content().failures = 3;
    let error = daemon.apply(WEB).await.unwrap_err();
    assert_eq!(
        error_chain::message(&error),
        format!(
            "generation 1 is in force, but not yet in the packet path, which is retried \
             every second: {CAUSE}"
        )
    );
    let status = daemon.status().await;
    assert_eq!((status.generation, status.behind.as_deref()), (1, Some(CAUSE)));
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 1);
    assert!(matches!(*subscription.events.try_recv().unwrap(), Event::Generation(_)));
    // Meanwhile a check may report.
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;

    while daemon.status().await.behind.is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(daemon.path.content().applied, 1);
    assert_eq!(daemon.path.content().plan.backends.len(), 2);
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    assert_eq!(daemon.state("web", "10.0.0.2"), Nothing);
}

#[tokio::test(start_paused = true)]
async fn the_next_apply_catches_up() {
    let daemon = Daemon::new();
    daemon.path.content().failures = 1;
    daemon.apply(WEB).await.unwrap_err();
    daemon.path.content().failures = 0;
    let applied = daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap();
    assert_eq!(applied.generation, 2);
    assert_eq!(daemon.status().await.behind, None);
}

#[tokio::test(start_paused = true)]
async fn pinned_states_stay_while_a_start_is_behind() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.restart_after(|path| path.content().failures = 1).await;
    while daemon.status().await.behind.is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.state, MemberState::Up);
}

/// A restart would not help a daemon that is behind, so the watchdog must be fed, and its start is reported
/// as done.
#[tokio::test(start_paused = true)]
async fn the_heartbeat_goes_on_while_behind() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.restart_after(|path| path.content().failures = 4).await;
    let mut seen = 0;
    for second in 1..=3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let rounds = daemon.running.heartbeats.state.rounds();
        assert!(rounds > seen, "none in second {second}");
        seen = rounds;
    }
    assert_ne!(daemon.status().await.behind, None);
}

/// Endless changes from sensors neither count as rounds nor delay them.
#[tokio::test(start_paused = true)]
async fn the_heartbeat_follows_its_own_tick() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let before = daemon.running.heartbeats.state.rounds();
    for _ in 0..1000 {
        daemon.running.commands.export().await.unwrap();
    }
    assert_eq!(daemon.running.heartbeats.state.rounds(), before, "the clock stands still");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let rounds = daemon.running.heartbeats.state.rounds() - before;
    assert!((9..=11).contains(&rounds), "{rounds} in 10 s");
}

/// The conditions, without those that [`WEB`] always has here: subject, cause and since when.
async fn conditions(daemon: &Daemon) -> Vec<(String, String, SystemTime)> {
    let conditions = daemon.status().await.conditions.into_iter();
    let others = ["IPv4 source address", "slots of pool web"];
    let conditions = conditions.filter(|condition| !others.contains(&&*condition.subject));
    conditions.map(|condition| (condition.subject, condition.cause, condition.since)).collect()
}

#[tokio::test(start_paused = true)]
async fn being_behind_is_a_condition() {
    let daemon = Daemon::new();
    daemon.path.content().failures = usize::MAX;
    daemon.apply(WEB).await.unwrap_err();
    let expected =
        |generation| format!("not at generation {generation} yet, retried every second: {CAUSE}");
    let first = conditions(&daemon).await;
    let [(subject, cause, since)] = &*first else { panic!("{first:?}") };
    assert_eq!((&**subject, cause), ("packet path", &expected(1)));
    daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap_err();
    assert_eq!(conditions(&daemon).await, [(subject.clone(), expected(2), *since)]);
    daemon.path.content().failures = 1;
    while daemon.status().await.behind.is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(conditions(&daemon).await, []);
}

/// A client that repeats a refused apply must not be told that all is well.
#[tokio::test(start_paused = true)]
async fn an_equal_apply_catches_up_or_is_refused_alike() {
    let daemon = Daemon::new();
    daemon.path.content().failures = usize::MAX;
    let first = daemon.apply(WEB).await.unwrap_err().to_string();
    // The loop's own first retry comes immediately, the next one after a second.
    tokio::time::sleep(Duration::from_millis(100)).await;
    daemon.path.content().failures = 1;
    let again = daemon.apply(WEB).await.unwrap_err();
    assert!(matches!(again, Refusal::Behind { generation: 1, .. }), "{again:?}");
    assert_eq!(again.to_string(), first);
    assert_eq!(daemon.path.content().failures, 0, "it was tried once a call");
    let done = daemon.apply(WEB).await.unwrap();
    assert_eq!((done.generation, done.changes.len(), done.warnings.len()), (1, 0, 0));
    assert_eq!(daemon.path.content().applied, 1);
    assert_eq!(daemon.status().await.behind, None);
    assert_eq!(conditions(&daemon).await, []);
    // The sensors are updated too.
    assert_eq!(daemon.running.targets.borrow().len(), 2);
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.path.content().applied, 1, "where nothing is behind, nothing is done");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_warns_and_does_not_retry() {
    let daemon = Daemon::new();
    daemon.path.content().failures = usize::MAX;
    daemon.apply(WEB).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(100)).await;
    daemon.path.content().failures = 1;
    let expected = format!(
        "generation 1 is in force, but not yet in the packet path, which is retried every second: {CAUSE}"
    );
    for text in [WEB, &*web("slots = 31", "slots = 37")] {
        let configuration = request(text);
        let apply = Apply { configuration, dry_run: true, ..Apply::default() };
        let planned = daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
        assert_eq!(planned.warnings, [&*expected]);
        assert_eq!(daemon.path.content().failures, 1, "nothing was tried");
    }
    daemon.path.content().failures = 0;
    daemon.apply(WEB).await.unwrap();
    let apply = Apply { configuration: request(WEB), dry_run: true, ..Apply::default() };
    let planned = daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    assert_eq!(planned.warnings, [""; 0]);
}

/// What checks found while packets could not see a backend is written once they do, whichever apply brings them there.
#[tokio::test(start_paused = true)]
async fn an_apply_of_something_else_hands_over_what_a_failed_one_could_not() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.path.content().failures = usize::MAX;
    let third = "[[pool.backend]]\naddress = \"10.0.0.3\"\nregion = \"eu\"\n[[service]]";
    let more = web("[[service]]", third);
    daemon.apply(&more).await.unwrap_err();
    daemon.report_health("web", "10.0.0.3", Passing, "all checks pass").await;
    assert_eq!(daemon.path.state(&name("web"), ip("10.0.0.3")), None);
    daemon.path.content().failures = 0;
    daemon.apply(&format!("{more}\n[[region]]\nname = \"later\"\n")).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.3"), All);
}
