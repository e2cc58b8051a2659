//! Overrides: in force at once, beside the configuration, and over restarts.

use super::{next_hops::hop, *};
use crate::command::{OverrideChange, OverridesChanged};
use lb_config::Reason;
use lb_fake::test_disk::Answer;
use lb_model::{
    MemberState, StateCause, StateReason,
    overrides::{Action, Key, Percent, Scope},
};

impl Daemon {
    /// [`WEB`] with two backends that are up.
    async fn serving() -> Self {
        let daemon = Self::new();
        daemon.apply(WEB).await.unwrap();
        daemon.all_up().await;
        daemon
    }

    async fn all_up(&self) {
        for address in ["10.0.0.1", "10.0.0.2"] {
            self.report_health("web", address, Passing, "all checks pass").await;
            self.resolve(address, Ok(hop(1))).await;
        }
    }

    async fn change(&self, change: OverrideChange) -> Result<OverridesChanged, Refusal> {
        let by = (crate::command::Actor::user(7), Reason::new("ticket 1").unwrap());
        self.running.commands.change_overrides(change, false, by).await.unwrap()
    }

    async fn set(&self, path: &str, action: Action) -> OverridesChanged {
        self.set_for(path, action, None).await
    }

    async fn set_for(
        &self,
        path: &str,
        action: Action,
        time: Option<Duration>,
    ) -> OverridesChanged {
        let Key { target, .. } = key(path);
        self.change(OverrideChange::Set {
            targets: vec![target],
            action,
            time,
            scope: Scope::Shared,
        })
        .await
        .unwrap()
    }

    async fn remove(&self, path: &str) -> OverridesChanged {
        self.change(OverrideChange::Remove(vec![key(path)])).await.unwrap()
    }

    async fn condition(&self) -> Option<String> {
        let conditions = self.status().await.conditions;
        conditions.into_iter().find(|it| it.subject == "overrides").map(|it| it.cause)
    }

    async fn keys(&self) -> Vec<String> {
        let in_force = self.running.commands.overrides().await.unwrap();
        in_force.overrides.iter().map(|(key, _)| key.to_string()).collect()
    }
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn percent(percent: u8) -> Percent {
    Percent::try_from(percent).unwrap()
}

const FIRST: &str = "backends/10.0.0.1/drain";

#[tokio::test]
async fn a_drain_is_in_force_and_no_generation() {
    let daemon = Daemon::serving().await;
    let changed = daemon.set(FIRST, Action::Drain).await;
    assert_eq!((changed.revision, changed.unstored, changed.warnings), (1, None, vec![]));
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    let backend = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(backend.state, MemberState::Draining);
    let reason = "drained by an override of uid 7: ticket 1";
    assert_eq!(backend.reason, StateReason::new(StateCause::Override, reason));
    assert_eq!(backend.overrides, [key(FIRST)]);
    assert_eq!(daemon.status().await.generation, 1);
    // A failure and a return change nothing of it.
    daemon.report_health("web", "10.0.0.1", Failing, "check web-http: refused").await;
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    daemon.remove(FIRST).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All, "the drain's end ended the hold");
    assert_eq!(daemon.backend("web", "10.0.0.1").await.overrides, []);
    let nothing = daemon.remove(FIRST).await;
    assert_eq!((nothing.revision, nothing.overrides.len()), (2, 0));
}

#[tokio::test]
async fn a_disabled_backend_comes_back_as_a_new_one() {
    let daemon = Daemon::serving().await;
    let disable = "pools/web/backends/10.0.0.1/disable";
    daemon.set(disable, Action::Disable).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.state, MemberState::Disabled);
    daemon.remove(disable).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All, "its checks went on");
    daemon.set(disable, Action::Disable).await;
    daemon.report_health("web", "10.0.0.1", Failing, "check web-http: refused").await;
    daemon.remove(disable).await;
    let backend = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(
        (backend.state, &*backend.reason.text),
        (MemberState::Pending, "check web-http: refused")
    );
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::Nothing);
}

#[tokio::test(start_paused = true)]
async fn it_stays_over_applies_and_restarts() {
    let mut daemon = Daemon::serving().await;
    daemon.set(FIRST, Action::Drain).await;
    daemon.set("pools/web/backends/10.0.0.2/weight", Action::Weight(percent(40))).await;
    let applied = daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap();
    assert_eq!(applied.warnings, [""; 0], "it sets nothing that is overridden");
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    for _ in 0..2 {
        // All that packets see stays, from the first moment on.
        let writes = daemon.path.content().state_writes.len();
        daemon.restart().await;
        daemon.all_up().await;
        assert_eq!(daemon.path.content().state_writes[writes..].len(), 0);
        assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
        assert_eq!(daemon.keys().await, [FIRST, "pools/web/backends/10.0.0.2/weight"]);
    }
    let revision = daemon.running.commands.overrides().await.unwrap().overrides.revision();
    assert_eq!(revision, 2);
}

#[tokio::test]
async fn an_apply_that_sets_what_is_overridden_says_so() {
    let daemon = Daemon::serving().await;
    daemon.set(FIRST, Action::Drain).await;
    daemon.set("backends/10.0.0.2/weight", Action::Weight(percent(40))).await;
    let address = "address = \"10.0.0.1\"\n";
    let drain = web(address, &format!("{address}admin_state = \"drain\"\n"));
    let warnings = daemon.apply(&drain).await.unwrap().warnings;
    assert_eq!(
        warnings,
        ["backend 10.0.0.1: the override drain of uid 7 stays in force beside this change"]
    );
    let address = "address = \"10.0.0.2\"\n";
    let weight = drain.replace(address, &format!("{address}weight = 3\n"));
    let warnings = daemon.apply(&weight).await.unwrap().warnings;
    let expected =
        "backend 10.0.0.2: the override weight 40 % of uid 7 stays in force beside this change";
    assert_eq!(warnings, [expected]);
    // What the configuration asks stays when the override goes.
    let removed = daemon.remove(FIRST).await;
    let still = "pool web: backend 10.0.0.1 still has the admin_state drain in the configuration";
    assert_eq!(removed.warnings, [still]);
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
}

#[tokio::test(start_paused = true)]
async fn an_override_ends_at_its_time() {
    let daemon = Daemon::serving().await;
    daemon.set_for(FIRST, Action::Drain, Some(Duration::from_secs(60))).await;
    tokio::time::sleep(Duration::from_secs(58)).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All);
    assert_eq!(daemon.keys().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_override_of_what_is_gone_stays_for_an_hour() {
    let daemon = Daemon::serving().await;
    daemon.set(FIRST, Action::Drain).await;
    let without = web("10.0.0.1", "10.0.0.3");
    daemon.apply(&without).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3500)).await;
    let in_force = daemon.running.commands.overrides().await.unwrap();
    assert!(in_force.overrides.iter().next().unwrap().1.absent_since.is_some());
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly, "it is back with its object");
    daemon.apply(&without).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3605)).await;
    assert_eq!(daemon.keys().await, [""; 0]);
}

#[tokio::test]
async fn weights_are_ramps_and_only_their_ratio_counts() {
    let daemon = Daemon::serving().await;
    let changed = daemon.set("backends/10.0.0.1/weight", Action::Weight(percent(20))).await;
    assert_eq!(changed.warnings, [""; 0]);
    assert_eq!((daemon.ramp("10.0.0.1"), daemon.ramp("10.0.0.2")), (Some(51), Some(255)));
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All);
    daemon.set("pools/web/backends/10.0.0.1/weight", Action::Weight(percent(50))).await;
    assert_eq!(daemon.ramp("10.0.0.1"), Some(26), "weights are multiplied");
    daemon.set("backends/10.0.0.2/weight", Action::Weight(percent(10))).await;
    assert_eq!((daemon.ramp("10.0.0.1"), daemon.ramp("10.0.0.2")), (Some(255), Some(255)));
    daemon.remove("pools/web/backends/10.0.0.1/weight").await;
    assert_eq!((daemon.ramp("10.0.0.1"), daemon.ramp("10.0.0.2")), (Some(255), Some(128)));
    daemon.remove("backends/10.0.0.1/weight").await;
    let none = daemon.set("backends/10.0.0.2/weight", Action::Weight(percent(0))).await;
    assert_eq!(daemon.state("web", "10.0.0.2"), Accepts::OpenOnly);
    assert_eq!(none.warnings, [""; 0], "the other one is left");
    daemon.remove("backends/10.0.0.2/weight").await;
    assert_eq!((daemon.ramp("10.0.0.1"), daemon.ramp("10.0.0.2")), (Some(255), Some(255)));
}

#[tokio::test]
async fn the_answer_says_what_cannot_be_kept() {
    let daemon = Daemon::serving().await;
    for address in ["10.0.0.1", "10.0.0.2"] {
        let warnings =
            daemon.set(&format!("backends/{address}/drain"), Action::Drain).await.warnings;
        let left = address == "10.0.0.1";
        assert_eq!(warnings.is_empty(), left, "{warnings:?}");
        if !left {
            assert_eq!(warnings, ["pool web has no backend left for new connections"]);
        }
    }
    // It has none already, so another drain takes nothing away.
    let again = daemon.set("pools/web/drain", Action::Drain).await;
    assert_eq!(again.warnings, [""; 0]);
    let scale = daemon.set("pools/web/regions/eu/scale", Action::Scale(percent(50))).await;
    let without = "pool web: region eu has no capacity, so a scale changes nothing";
    assert!(scale.warnings.iter().any(|it| *it == without), "{:?}", scale.warnings);
}

/// A region that the configuration drains, by a flag or a scaler of 0, leaves nothing for new connections.
#[tokio::test]
async fn what_the_configuration_drains_is_not_left() {
    for drained in ["drained = true", "scaler = 0"] {
        let daemon = Daemon::new();
        let group = format!("group = [{{ region = \"us\", {drained} }}]");
        let text =
            WEB.replacen("[[pool]]", &format!("[[region]]\nname = \"us\"\n[[pool]]\n{group}"), 1);
        let us = "[[pool.backend]]\naddress = \"10.0.0.3\"\nregion = \"us\"\n";
        let text = text.replacen("[[service]]", &format!("{us}[[service]]"), 1);
        daemon.apply(&text).await.unwrap();
        daemon.all_up().await;
        daemon.report_health("web", "10.0.0.3", Passing, "all checks pass").await;
        daemon.resolve("10.0.0.3", Ok(hop(1))).await;
        let region = daemon.set("regions/eu/drain", Action::Drain).await;
        let warning = "pool web has no backend left for new connections";
        assert_eq!(region.warnings, [warning], "{drained}");
    }
}

#[tokio::test]
async fn a_region_is_drained_with_its_backends_and_limits() {
    let daemon = Daemon::serving().await;
    daemon.set("regions/eu/drain", Action::Drain).await;
    for address in ["10.0.0.1", "10.0.0.2"] {
        assert_eq!(daemon.state("web", address), Accepts::OpenOnly);
    }
    assert_eq!(daemon.path.content().limit_writes, [name("web")]);
    let regions = daemon.running.commands.regions(None).await.unwrap().unwrap().regions;
    assert!(regions[0].reading.limit.is_closed());
    assert_eq!(regions[0].reading.settings.effective_scaler().share(), 0.0);
    daemon.remove("regions/eu/drain").await;
    assert_eq!(daemon.state("web", "10.0.0.2"), Accepts::All);
    let regions = daemon.running.commands.regions(None).await.unwrap().unwrap().regions;
    assert!(regions[0].reading.limit.is_unlimited());
}

#[tokio::test]
async fn what_does_not_exist_is_refused_and_nothing_changes() {
    let daemon = Daemon::serving().await;
    for path in [
        "backends/10.0.0.9/drain",
        "pools/web/backends/10.0.0.9/drain",
        "pools/none/drain",
        "pools/web/regions/us/drain",
        "regions/asia/drain",
    ] {
        let Key { target, .. } = key(path);
        let both = vec![key(FIRST).target, target.clone()];
        let set = OverrideChange::Set {
            targets: both,
            action: Action::Drain,
            time: None,
            scope: Scope::Shared,
        };
        let refused = daemon.change(set).await.unwrap_err();
        assert_eq!(refused.to_string(), target.missing());
        let refused = daemon.change(OverrideChange::Remove(vec![key(path)])).await.unwrap_err();
        assert!(matches!(refused, Refusal::NoTarget(_)), "{refused:?}");
    }
    assert_eq!(daemon.keys().await, [""; 0]);
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::All);
}

#[tokio::test]
async fn a_dry_run_only_checks() {
    let daemon = Daemon::serving().await;
    let targets = vec![key("pools/web/drain").target];
    let change =
        OverrideChange::Set { targets, action: Action::Drain, time: None, scope: Scope::Shared };
    let by = (crate::command::Actor::user(7), Reason::default());
    let checked =
        daemon.running.commands.change_overrides(change, true, by).await.unwrap().unwrap();
    assert_eq!((checked.revision, checked.overrides.len()), (0, 1));
    assert_eq!(checked.warnings, ["pool web has no backend left for new connections"]);
    assert_eq!((daemon.keys().await, daemon.state("web", "10.0.0.1")), (vec![], Accepts::All));
}

/// A folder stands where the file is written.
#[tokio::test]
async fn a_disk_that_takes_nothing_costs_only_its_place_after_a_restart() {
    let mut daemon = Daemon::serving().await;
    let in_the_way = daemon.directory.path().join("overrides.json.next");
    daemon.set(FIRST, Action::Drain).await;
    std::fs::create_dir(&in_the_way).unwrap();
    let changed = daemon.set("backends/10.0.0.2/drain", Action::Drain).await;
    let cause = changed.unstored.unwrap();
    assert!(cause.contains("directory"), "{cause}");
    assert_eq!(daemon.state("web", "10.0.0.2"), Accepts::OpenOnly);
    let condition = daemon.condition().await.unwrap();
    assert!(condition.starts_with("in force, but in memory only: "), "{condition}");
    assert!(
        condition.ends_with("a restart before that begins with those of revision 1"),
        "{condition}"
    );
    assert!(daemon.running.commands.overrides().await.unwrap().is_unstored);
    std::fs::remove_dir(&in_the_way).unwrap();
    while daemon.condition().await.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!daemon.running.commands.overrides().await.unwrap().is_unstored);
    daemon.restart().await;
    assert_eq!(daemon.keys().await, [FIRST, "backends/10.0.0.2/drain"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_a_condition_until_it_is_replaced() {
    let mut daemon = Daemon::serving().await;
    daemon.set(FIRST, Action::Drain).await;
    daemon.stop().await;
    let file = daemon.directory.path().join("overrides.json");
    std::fs::write(&file, "{").unwrap();
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    daemon.running.begun().await;
    daemon.all_up().await;
    let condition = daemon.condition().await.unwrap();
    assert!(
        condition.contains("overrides.json cannot be used, so those from before"),
        "{condition}"
    );
    assert_eq!(daemon.keys().await, [""; 0]);
    daemon.set(FIRST, Action::Drain).await;
    while daemon.condition().await.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.restart().await;
    assert_eq!(daemon.keys().await, [FIRST]);
}

/// An apply that waits for the disk is not in the way.
#[tokio::test]
async fn an_override_waits_for_no_apply() {
    let (daemon, disk) = Daemon::with_disk();
    daemon.apply(WEB).await.unwrap();
    daemon.all_up().await;
    disk.set(Answer::Nothing);
    let commands = daemon.running.commands.clone();
    let configuration = request(&web("slots = 31", "slots = 37"));
    let apply = Apply { configuration, ..Apply::default() };
    let waiting = tokio::spawn(async move { commands.apply(apply, None).await.unwrap() });
    while daemon.running.loops.state.queue().length() > 0 {
        tokio::task::yield_now().await;
    }
    daemon.set(FIRST, Action::Drain).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    assert!(!waiting.is_finished());
    disk.set(Answer::Writes);
    assert_eq!(waiting.await.unwrap().unwrap().generation, 2);
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
}

/// Once it was out for the settle time, as any absence; a weight above 0 never.
#[tokio::test(start_paused = true)]
async fn a_drain_beyond_the_settle_time_is_marked_out_and_a_weight_is_not() {
    let daemon = Daemon::serving().await;
    daemon.set(FIRST, Action::Drain).await;
    daemon.set("backends/10.0.0.2/weight", Action::Weight(percent(1))).await;
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert!(!daemon.backend("web", "10.0.0.1").await.marked_out);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(daemon.backend("web", "10.0.0.1").await.marked_out);
    assert!(!daemon.backend("web", "10.0.0.2").await.marked_out);
    daemon.remove(FIRST).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!daemon.backend("web", "10.0.0.1").await.marked_out);
}
