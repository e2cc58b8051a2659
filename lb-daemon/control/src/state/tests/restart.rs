use Accepts::{All, Nothing};

use super::*;
use lb_model::plan::Plan;

#[tokio::test]
async fn everything_is_as_before_and_pinned_states_stand_until_checks_speak() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;
    let (before, plan) = (daemon.status().await, daemon.path.content().plan.clone());

    daemon.restart().await;
    let after = daemon.status().await;
    assert_eq!(daemon.path.content().plan, plan, "ids and all");
    assert_eq!(
        (after.generation, after.applied_at, after.checksum),
        (1, before.applied_at, before.checksum)
    );
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    let reason = "as before the daemon's start, not checked yet";
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason, reason);
    assert_eq!(daemon.state("web", "10.0.0.2"), Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.2").await.reason, "not checked yet");

    daemon.judge("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
}

/// The daemon was killed after the store had the generation and before the packet path had it.
#[tokio::test]
async fn what_the_store_has_comes_into_the_packet_path() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let plan = daemon.path.content().plan.clone();
    daemon.restart_after(|path| path.content().plan = Plan::default()).await;
    assert_eq!(daemon.path.content().plan, plan);
}

#[tokio::test]
async fn a_reboot_loses_states_and_nothing_else() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;
    let plan = daemon.path.content().plan.clone();
    daemon.restart_after(|path| *path.content() = fake::Content::default()).await;
    assert_eq!(daemon.path.content().plan, plan);
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
}

#[tokio::test]
async fn an_empty_store_leaves_the_packet_path_alone_and_its_numbers_reserved() {
    let first = Daemon::new();
    first.apply(WEB).await.unwrap();
    let path = first.path.clone();
    let plan = path.content().plan.clone();
    let lost = Daemon::with(tempfile::tempdir().unwrap(), path);
    assert_eq!(lost.status().await.generation, 0);
    assert_eq!(lost.path.content().plan, plan);

    lost.apply(WEB).await.unwrap();
    let content = lost.path.content();
    let numbers = |plan: &Plan| -> Vec<u32> {
        let backends = plan.backends.values().map(|backend| backend.id.index);
        backends.chain(plan.pools.keys().copied()).collect()
    };
    assert_eq!(numbers(&plan), [1, 2, 1]);
    assert_eq!(numbers(&content.plan), [3, 4, 2]);
}

#[tokio::test]
async fn a_state_that_stops_leaves_the_packet_path_as_it_is() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;
    let told = daemon.path.content().told.clone();
    daemon.stop().await;
    assert_eq!(daemon.path.content().told, told);
    assert_eq!(daemon.path.content().applied, 1);
    assert!(daemon.running.commands.export().await.is_err());
}

#[tokio::test]
async fn a_sensor_that_ends_ends_the_daemon() {
    let mut daemon = Daemon::new();
    let (health, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut daemon.running.health, health));
    assert_eq!((&mut daemon.running.ended).await.unwrap(), Ended::SensorEnded);
}
