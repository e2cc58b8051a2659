use std::time::Duration;

use Accepts::{All, Nothing};

use super::*;
use crate::command::Actor;
use lb_model::{MemberState, plan::Plan};
use lb_store::Generation;

#[tokio::test]
async fn a_restart_keeps_pinned_states_until_checks_decide() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let (before, plan) = (daemon.status().await, daemon.path.content().plan.clone());

    daemon.restart().await;
    let after = daemon.status().await;
    assert_eq!(daemon.path.content().plan, plan, "ids and all");
    assert_eq!(
        (after.generation, after.applied_at, after.checksum),
        (1, before.applied_at, before.checksum)
    );
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    let reason = "state from before the daemon's start, not checked yet";
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, reason);
    assert_eq!(daemon.state("web", "10.0.0.2"), Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.2").await.reason.text, "not checked yet");

    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
}

/// The daemon was killed after the store had the generation and before the packet path had it.
#[tokio::test]
async fn a_restart_applies_the_stored_generation() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let plan = daemon.path.content().plan.clone();
    daemon.restart_after(|path| path.content().plan = Plan::default()).await;
    assert_eq!(daemon.path.content().plan, plan);
}

#[tokio::test]
async fn a_reboot_loses_only_states() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let plan = daemon.path.content().plan.clone();
    daemon.restart_after(|path| *path.content() = fake::Content::default()).await;
    assert_eq!(daemon.path.content().plan, plan);
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
}

#[tokio::test]
async fn an_empty_store_leaves_the_packet_path_and_reserves_its_numbers() {
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
async fn a_stop_leaves_the_packet_path_as_it_is() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let announced = daemon.path.content().state_writes.clone();
    daemon.stop().await;
    assert_eq!(daemon.path.content().state_writes, announced);
    assert_eq!(daemon.path.content().applied, 1);
    assert!(daemon.running.commands.export().await.is_err());
}

#[tokio::test]
async fn a_sensor_that_ends_stops_the_loop() {
    let mut daemon = Daemon::new();
    let (health, _) = bounded(1, &QueueCounters::default());
    drop(std::mem::replace(&mut daemon.running.health, health));
    assert_eq!((&mut daemon.running.ended).await.unwrap(), LoopEnd::Stopped);
}

/// A stopped daemon that served [`WEB`] with a backend up; `change` was made to its store.
async fn stopped(
    change: impl FnOnce(&mut serde_json::Value, &mut spillway_proto::v1::Configuration, &mut Vec<u8>),
) -> Daemon {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.stop().await;
    lb_fake::stored::rewrite(daemon.directory.path(), change).unwrap();
    daemon
}

/// The stored settle time is too short.
async fn refused() -> Daemon {
    stopped(|_, configuration, _| {
        let settle_time = configuration.pools[0].settle_time.as_mut().unwrap();
        (settle_time.seconds, settle_time.nanos) = (0, 1);
    })
    .await
}

fn start(daemon: &mut Daemon) {
    daemon.running = Running::start(&daemon.directory, &daemon.path);
}

fn start_with_any_schema(daemon: &mut Daemon) {
    let store = Store::open_any_schema(daemon.directory.path()).unwrap();
    daemon.running =
        Running::over(store, &daemon.directory, &daemon.path, Duration::from_secs(1), true);
}

/// Whether there is a condition about the stored configuration.
fn is_reported(status: &Status) -> bool {
    status.conditions.iter().any(|condition| condition.subject == "stored configuration")
}

const CAUSE: &str =
    "this version refuses it: pools[0] \"web\": settle_time: 1ns is not within 1s to 24h";

#[tokio::test(start_paused = true)]
async fn an_unusable_generation_leaves_the_packet_path_and_is_reported() {
    let mut daemon = refused().await;
    let (plan, applied, announced) = {
        let content = daemon.path.content();
        (content.plan.clone(), content.applied, content.state_writes.len())
    };
    start(&mut daemon);
    // The rounds that come every second do not change it either.
    tokio::time::sleep(Duration::from_secs(10)).await;
    {
        let content = daemon.path.content();
        assert_eq!(
            (&content.plan, content.applied, content.state_writes.len()),
            (&plan, applied, announced)
        );
    }
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    assert!(daemon.running.targets.borrow().is_empty());

    let status = daemon.status().await;
    assert_eq!((status.generation, status.behind.clone(), status.backends().count()), (1, None, 0));
    assert!(status.applied_at.is_some());
    let [condition] = &status.conditions[..] else { panic!("{:?}", status.conditions) };
    assert_eq!(condition.subject, "stored configuration");
    let words = format!(
        "generation 1 cannot be used: {CAUSE}; packets are forwarded as before, but health and next hops are frozen \
         until a valid configuration is applied (`spillway export` shows the stored one)"
    );
    assert_eq!(condition.cause, words);
    let condition = daemon.running.commands.condition().await.unwrap();
    assert_eq!(condition, Some(format!("the stored generation 1 cannot be used: {CAUSE}")));
    // The loop turns, which readiness and watchdog depend on.
    assert_ne!(daemon.running.heartbeats.state.rounds(), 0);
    let exported = daemon.running.commands.export().await.unwrap();
    assert_eq!(exported.unusable.unwrap().cause, CAUSE);
    let unknown = daemon.running.commands.history("web".into(), None).await.unwrap().unwrap_err();
    assert_eq!(unknown.to_string(), format!("the stored configuration cannot be used: {CAUSE}"));
    let regions = daemon.running.commands.regions(None).await.unwrap().expect("for the metrics");
    assert_eq!((regions.balancers, regions.regions.len()), (None, 1));
}

#[tokio::test]
async fn an_apply_replaces_an_unusable_generation_and_keeps_numbers() {
    let mut daemon = refused().await;
    let plan = daemon.path.content().plan.clone();
    start(&mut daemon);
    let conflict = Apply { expected_generation: Some(0), ..Apply::default() };
    let conflict = daemon.running.commands.apply(conflict, None).await.unwrap().unwrap_err();
    assert!(matches!(conflict, Refusal::Conflict { expected: 0, current: 1 }));
    let dry = Apply { configuration: request(WEB), dry_run: true, ..Apply::default() };
    let dry = daemon.running.commands.apply(dry, None).await.unwrap().unwrap();
    assert_eq!((dry.generation, dry.movements_unknown), (1, true));
    assert!(is_reported(&daemon.status().await));

    let applied = daemon.apply(WEB).await.unwrap();
    assert_eq!((applied.generation, applied.warnings), (2, dry.warnings.clone()));
    assert!(dry.warnings[0].text.starts_with("generation 1 could not be used, so "), "{dry:?}");
    assert_eq!(daemon.path.content().plan, plan, "tables, numbers and all");
    let status = daemon.status().await;
    assert_eq!((is_reported(&status), status.backends().count()), (false, 2));
    assert_eq!(daemon.running.commands.condition().await.unwrap(), None);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.state, MemberState::Up, "as it was pinned");
    assert_eq!(daemon.running.targets.borrow().len(), 2);
    daemon.restart().await;
    let status = daemon.status().await;
    assert_eq!((is_reported(&status), status.generation), (false, 2));
}

/// An empty configuration differs from an unreadable one.
#[tokio::test]
async fn an_empty_configuration_replaces_an_unusable_generation() {
    let mut daemon = stopped(|_, _, more| more.push(0x0f)).await;
    start(&mut daemon);
    let condition = daemon.status().await.conditions.remove(0);
    assert!(
        condition.cause.contains("generation 1 cannot be used: it cannot be read: "),
        "{condition:?}"
    );
    assert_eq!(daemon.apply("# nothing").await.unwrap().generation, 2);
    assert_eq!(daemon.path.content().plan, Plan::default());
    assert!(!is_reported(&daemon.status().await));
}

/// Numbers that packets may still meet are not assigned to other objects.
#[tokio::test]
async fn an_unusable_generation_keeps_its_numbers() {
    let mut daemon = refused().await;
    start(&mut daemon);
    daemon.apply(&web("10.0.0.1", "10.0.0.9")).await.unwrap();
    let content = daemon.path.content();
    let numbers: Vec<_> = content.plan.backends.values().map(|b| b.id.index).collect();
    assert_eq!(numbers, [2, 3], "10.0.0.2 has its own, and 1 is at rest");
}

#[tokio::test]
async fn a_generation_without_a_plan_is_unusable() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.stop().await;
    let plan = daemon.path.content().plan.clone();
    let mut store = Store::open(daemon.directory.path()).unwrap();
    let stored = store.generation().unwrap().clone();
    store.commit(Generation { ids: Arc::default(), ..stored }).await.unwrap();
    drop(store);
    start(&mut daemon);
    let condition = daemon.status().await.conditions.remove(0);
    assert!(
        condition.cause.starts_with("generation 1 cannot be used: its tables cannot be computed: "),
        "{condition:?}"
    );
    assert_eq!(daemon.path.content().plan, plan);
    assert_eq!(daemon.apply(WEB).await.unwrap().generation, 2);
    assert!(!is_reported(&daemon.status().await));
}

/// A package that is rolled back goes on with a configuration that has nothing new.
#[tokio::test]
async fn an_older_daemon_starts_with_what_a_newer_one_applied() {
    let mut daemon = Daemon::new();
    daemon.stop().await;
    let newer = Revision::new(Revision::CURRENT.number() + 1);
    let store = Store::open(daemon.directory.path()).unwrap();
    let outlives = (HoldDowns::default(), FleetHandles::default(), Portions::ByConfiguration);
    let interval = Duration::from_secs(1);
    let (directory, path) = (&daemon.directory, &daemon.path);
    daemon.running = Running::owning(store, directory, path, interval, (newer, false), outlives);
    let apply = Apply { configuration: request(WEB), schema: newer, ..Apply::default() };
    daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    daemon.stop().await;
    start(&mut daemon);
    let status = daemon.status().await;
    assert!(!is_reported(&status) && status.generation == 1, "{:?}", status.conditions);
}

/// The setting accepts a newer store only for the configuration file.
#[tokio::test]
async fn a_newer_store_is_replaced_only_on_request() {
    for (actor, any_schema) in [(Actor::File("/f".into()), false), (Actor::default(), true)] {
        let mut daemon = stopped(|description, _, more| {
            description["schema"] = (Revision::CURRENT.number() + 1).into();
            more.extend([0xc0, 0x3e, 7]);
        })
        .await;
        start_with_any_schema(&mut daemon);
        let refused = daemon.apply(WEB).await.unwrap_err();
        assert!(matches!(refused, Refusal::Schema(_)), "{refused}");
        assert!(
            refused.to_string().starts_with("the daemon is older than the stored"),
            "{refused}"
        );
        let apply = Apply { configuration: request(WEB), any_schema, actor, ..Apply::default() };
        let applied = daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
        assert_eq!(applied.generation, 2);
        assert!(applied.warnings.iter().any(|w| w.text.contains("would be erased")), "{applied:?}");
        daemon.stop().await;
        let store = Store::open(daemon.directory.path()).unwrap();
        // Nothing in it is of a later one.
        assert_eq!(store.generation().unwrap().schema, Revision::FIRST);
    }
}
