//! Overrides that a fleet decides.

use std::time::SystemTime;

use super::{
    fleet::{shared, web_of_fleet},
    *,
};
use crate::command::{Actor, OverrideChange, OverridesChanged};
use lb_config::Reason;
use lb_model::overrides::{Action, Key, Kind, Moment, Override, Percent};

const FIRST: &str = "backends/10.0.0.1/drain";
const SECOND: &str = "backends/10.0.0.2/drain";

pub(super) fn key(text: &str) -> Key {
    text.parse().unwrap()
}

/// Milliseconds, as a fleet shares times.
fn wall(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_323_045_678 + seconds * 1000)
}

fn asked(action: Action) -> Override {
    Override {
        action,
        who: "certificate ops.example".into(),
        reason: "ticket 1".into(),
        set_at: wall(0),
        until: None,
        absent_since: None,
    }
}

/// As a caller reads it from etcd each time.
fn until(seconds: u64) -> Option<Moment> {
    let instant = members::clock() + Duration::from_secs(seconds);
    Some(Moment { wall: wall(seconds), instant })
}

pub(super) fn drains(paths: &[&str]) -> Vec<(Key, Override)> {
    paths.iter().map(|path| (key(path), asked(Action::Drain))).collect()
}

impl Daemon {
    /// [`WEB`] with two backends that are up.
    pub(super) async fn with_both_up() -> Self {
        let daemon = Self::new();
        daemon.apply(WEB).await.unwrap();
        daemon.both_up().await;
        daemon
    }

    pub(super) async fn both_up(&self) {
        for address in ["10.0.0.1", "10.0.0.2"] {
            self.report_health("web", address, Passing, "all checks pass").await;
        }
    }

    pub(super) async fn ask_for(
        &self,
        change: OverrideChange,
        dry_run: bool,
    ) -> Result<OverridesChanged, Refusal> {
        let by = (Actor::user(7), Reason::default());
        self.running.commands.change_overrides(change, dry_run, by).await.unwrap()
    }

    pub(super) async fn follow(&self, overrides: Vec<(Key, Override)>) -> OverridesChanged {
        self.ask_for(OverrideChange::Follow(overrides), false).await.unwrap()
    }

    pub(super) async fn unfollow(&self) -> OverridesChanged {
        self.ask_for(OverrideChange::Unfollow, false).await.unwrap()
    }

    /// What is in force, by key, and whether a fleet decides it.
    pub(super) async fn overridden(&self) -> (Vec<String>, bool) {
        let overrides = self.running.commands.overrides().await.unwrap().overrides;
        (overrides.iter().map(|(key, _)| key.to_string()).collect(), overrides.is_followed())
    }

    async fn get(&self, path: &str) -> Override {
        let overrides = self.running.commands.overrides().await.unwrap().overrides;
        overrides.get(&key(path)).unwrap().clone()
    }

    pub(super) fn accepts(&self) -> [Accepts; 2] {
        ["10.0.0.1", "10.0.0.2"].map(|address| self.state("web", address))
    }

    async fn overdue(&self) -> Option<String> {
        let conditions = self.status().await.conditions.into_iter();
        conditions.filter(|it| it.subject == "expired overrides").map(|it| it.cause).next()
    }
}

pub(super) fn set(path: &str) -> OverrideChange {
    let Key { target, scope, kind } = key(path);
    let action = if kind == Kind::Disable { Action::Disable } else { Action::Drain };
    OverrideChange::Set { targets: vec![target], action, time: None, scope }
}

#[tokio::test]
async fn the_overrides_of_the_fleet_replace_what_is_in_force() {
    use Accepts::{All, OpenOnly};
    let mut daemon = Daemon::with_both_up().await;
    daemon.ask_for(set(FIRST), false).await.unwrap();
    let changed = daemon.follow(drains(&[SECOND])).await;
    let keys: Vec<_> = changed.overrides.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!((keys, changed.unstored), (vec![SECOND.into(), FIRST.into()], None));
    assert_eq!(daemon.accepts(), [All, OpenOnly]);
    let reason = "drained by an override of certificate ops.example: ticket 1";
    assert_eq!(daemon.backend("web", "10.0.0.2").await.reason.text, reason);
    // Nothing changes, so nothing is written.
    let again = daemon.follow(drains(&[SECOND])).await;
    assert_eq!((again.revision, again.overrides), (changed.revision, vec![]));
    // Only what differs is looked at again.
    let limits = daemon.path.content().limit_writes.len();
    let mut three = drains(&[SECOND, "pools/web/regions/eu/scale"]);
    three[1].1.action = Action::Scale(Percent::try_from(50).unwrap());
    daemon.follow(three.clone()).await;
    assert_eq!(daemon.path.content().limit_writes.len(), limits + 1);
    three[0].1.reason = "ticket 2".into();
    daemon.follow(three).await;
    assert_eq!(daemon.path.content().limit_writes.len(), limits + 1);
    let reason = "drained by an override of certificate ops.example: ticket 2";
    assert_eq!(daemon.backend("web", "10.0.0.2").await.reason.text, reason);
    for _ in 0..2 {
        daemon.restart().await;
        daemon.both_up().await;
        let keys = vec![SECOND.into(), "pools/web/regions/eu/scale".into()];
        assert_eq!((daemon.overridden().await, daemon.accepts()), ((keys, true), [All, OpenOnly]));
    }
    daemon.follow(Vec::new()).await;
    assert_eq!((daemon.overridden().await, daemon.accepts()), ((vec![], true), [All, All]));
    daemon.restart().await;
    assert_eq!(daemon.overridden().await, (vec![], true), "that there are none is the fleet's too");
}

#[tokio::test]
async fn a_follower_takes_changes_from_the_fleet_alone() {
    let mut daemon = Daemon::with_both_up().await;
    daemon.follow(drains(&[FIRST])).await;
    for _ in 0..2 {
        for change in [set(SECOND), OverrideChange::Remove(vec![key(FIRST)])] {
            let refused = daemon.ask_for(change.clone(), false).await.unwrap_err();
            assert!(matches!(refused, Refusal::Member), "{refused}");
            let checked = daemon.ask_for(change, true).await.unwrap();
            assert_eq!(checked.overrides.len(), 1);
        }
        let warnings = daemon.ask_for(set(SECOND), true).await.unwrap().warnings;
        assert_eq!(warnings, ["pool web has no backend left for new connections"]);
        let missing = daemon.ask_for(set("pools/none/drain"), true).await.unwrap_err();
        assert!(matches!(missing, Refusal::NoTarget(_)), "{missing}");
        assert_eq!(daemon.overridden().await.0, [FIRST]);
        daemon.restart().await;
        daemon.both_up().await;
    }
    daemon.ask_for(OverrideChange::Follow(Vec::new()), true).await.unwrap();
    daemon.ask_for(OverrideChange::Unfollow, true).await.unwrap();
    assert_eq!(daemon.overridden().await, (vec![FIRST.into()], true), "they only checked");

    daemon.unfollow().await;
    assert_eq!(daemon.unfollow().await.overrides, []);
    daemon.restart().await;
    daemon.both_up().await;
    assert_eq!(daemon.overridden().await, (vec![FIRST.into()], false));
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    daemon.ask_for(OverrideChange::Remove(vec![key(FIRST)]), false).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All);
}

#[tokio::test(start_paused = true)]
async fn an_hour_begins_anew_when_the_clock_was_set() {
    let mut daemon = Daemon::with_both_up().await;
    let gone = "backends/10.0.0.9/drain";
    daemon.follow(drains(&[FIRST, gone])).await;
    let first = daemon.get(gone).await.absent_since.unwrap();
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(daemon.get(gone).await.absent_since, Some(first));
    let changed = daemon.ask_for(OverrideChange::ClockSet, false).await.unwrap();
    assert_eq!(changed.overrides, []);
    let since = daemon.get(gone).await.absent_since.unwrap();
    assert_eq!(since.instant, first.instant + Duration::from_secs(3000));
    assert_eq!(daemon.get(FIRST).await.absent_since, None);
    daemon.restart().await;
    assert!(daemon.get(gone).await.absent_since.is_some(), "it is stored");
}

/// What a generation in between did is not known.
#[tokio::test(start_paused = true)]
async fn a_target_that_is_back_after_a_generation_was_skipped_is_there() {
    let daemon = Daemon::new();
    daemon.put(shared(1, &web_of_fleet())).await.unwrap();
    daemon.follow(drains(&[FIRST])).await;
    let without = web_of_fleet().replace("10.0.0.1", "10.0.0.3");
    daemon.put(shared(2, &without)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(daemon.get(FIRST).await.absent_since.is_some());
    daemon.put(shared(4, &web_of_fleet())).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(daemon.get(FIRST).await.absent_since, None);
}

#[tokio::test(start_paused = true)]
async fn only_the_fleet_ends_what_is_followed() {
    let mut daemon = Daemon::with_both_up().await;
    let mut shared = drains(&[FIRST]);
    shared[0].1.until = until(60);
    daemon.follow(shared.clone()).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let ends = daemon.get(FIRST).await.until;
    // It is read again, with the time that is left.
    shared[0].1.until = until(30).map(|it| Moment { wall: wall(60), ..it });
    assert_eq!(daemon.follow(shared).await.overrides, []);
    assert_eq!(daemon.get(FIRST).await.until, ends);
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(daemon.overdue().await, None, "the fleet has a moment");
    tokio::time::sleep(Duration::from_secs(8)).await;
    let cause =
        format!("their time is over, and they stay in force until the fleet removes them: {FIRST}");
    assert_eq!(daemon.overdue().await, Some(cause.clone()));
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    daemon.restart().await;
    daemon.both_up().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(
        (daemon.overridden().await.0, daemon.overdue().await),
        (vec![FIRST.into()], Some(cause))
    );
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    // As its own it ends.
    daemon.unfollow().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((daemon.overridden().await, daemon.overdue().await), ((vec![], false), None));
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All);
}

/// A generation with the target may come after the override.
#[tokio::test(start_paused = true)]
async fn what_has_no_target_is_kept_and_acts_once_it_has() {
    let mut daemon = Daemon::with_both_up().await;
    let third = "backends/10.0.0.3/drain";
    daemon.follow(drains(&[third])).await;
    assert!(daemon.get(third).await.absent_since.is_some());
    tokio::time::sleep(Duration::from_secs(7300)).await;
    let since = daemon.get(third).await.absent_since;
    daemon.follow(drains(&[third, FIRST])).await;
    assert_eq!(daemon.get(third).await.absent_since, since, "it is gone for as long as before");
    daemon.restart().await;
    daemon.apply(&web("10.0.0.2", "10.0.0.3")).await.unwrap();
    daemon.report_health("web", "10.0.0.3", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.3"), Accepts::OpenOnly);
    assert_eq!(daemon.get(third).await.absent_since, None);
    // As its own it ends an hour after its target.
    daemon.apply(WEB).await.unwrap();
    daemon.unfollow().await;
    tokio::time::sleep(Duration::from_secs(3605)).await;
    assert_eq!(daemon.overridden().await, (vec![FIRST.into()], false));
}

/// What another balancer let pass must not cost all overrides at the next start.
#[tokio::test]
async fn what_the_file_cannot_hold_is_cleaned() {
    let mut daemon = Daemon::with_both_up().await;
    let long = Override {
        who: format!("uid\u{1b}[2J{}", "é".repeat(2000)),
        reason: format!("a\nb\u{202e}{}", "é".repeat(2000)),
        ..asked(Action::Drain)
    };
    let scale = Override { action: Action::Scale(Percent::NONE), ..asked(Action::Drain) };
    let shared = vec![
        (key(FIRST), long),
        (key("backends/10.0.0.2/scale"), scale.clone()),
        (key("pools/web/drain"), scale),
    ];
    let changed = daemon.follow(shared.clone()).await;
    assert_eq!((daemon.overridden().await.0, changed.unstored), (vec![FIRST.into()], None));
    let it = daemon.get(FIRST).await;
    assert_eq!((it.who.len(), &it.who[..6]), (1024, "uid[2J"));
    assert!(it.reason.starts_with("abé") && it.reason.len() == 256, "{}", it.reason);
    daemon.restart().await;
    assert_eq!(daemon.overridden().await, (vec![FIRST.into()], true));
    assert_eq!(daemon.follow(shared).await.overrides, [], "it is still the same");
    let many = (0..=10_000u32).map(|number| {
        let address = IpAddr::from(number.to_be_bytes());
        (key(&format!("backends/{address}/drain")), asked(Action::Drain))
    });
    let refused = daemon.ask_for(OverrideChange::Follow(many.collect()), false).await.unwrap_err();
    assert!(matches!(refused, Refusal::TooManyOverrides), "{refused}");
}
