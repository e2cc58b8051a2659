//! Portions of the capacities: what is given away is out of use before anything is taken, whatever else goes on.

use lb_common::abi::limiter::LimitWord;
use tokio::time::timeout;

use super::{next_hops::hop, *};
use crate::command::{Actor, OverrideChange};
use crate::fake::Limited;
use crate::members::NotEnforced;
use lb_model::{
    capacity::{FleetPortions, GroupName, Portion, PortionsInForce, is_lower, per_second},
    overrides::{Action, Percent, Scope, Target},
};

/// Three groups: one of 100/s that follows from its backends, and two of 1,000/s.
const GROUPS: &str = r#"
    [[region]]
    name = "eu"
    overflow_to = ["us"]
    [[region]]
    name = "us"
    [[health_check]]
    name = "tcp"
    port = 80
    tcp = {}
    [[pool]]
    name = "dns"
    slots = 31
    [[pool.group]]
    region = "eu"
    capacity = "1000/s"
    [[pool.backend]]
    address = "10.0.0.9"
    region = "eu"
    [[pool]]
    name = "web"
    health_checks = ["tcp"]
    slots = 31
    [[pool.group]]
    region = "us"
    capacity = "1000/s"
    [[pool.backend]]
    address = "10.0.0.1"
    region = "eu"
    max_connection_rate = "50/s"
    [[pool.backend]]
    address = "10.0.0.2"
    region = "eu"
    max_connection_rate = "50/s"
    [[pool.backend]]
    address = "10.0.1.1"
    region = "us"
"#;

fn fleet(portions: &[(&str, &str, f64)]) -> Arc<FleetPortions> {
    let portions = portions.iter().map(|(pool, region, fraction)| {
        ((name(pool), name(region)), Portion::new(*fraction).unwrap())
    });
    Arc::new(portions.collect())
}

impl Daemon {
    /// [`GROUPS`] with all backends up.
    async fn with_groups() -> Self {
        let daemon = Self::new();
        daemon.apply(GROUPS).await.unwrap();
        for address in ["10.0.0.1", "10.0.0.2", "10.0.1.1"] {
            daemon.report_health("web", address, Passing, "all checks pass").await;
            daemon.resolve(address, Ok(hop(1))).await;
        }
        assert_eq!(daemon.limits(), [1000.0, 100.0, 1000.0]);
        daemon
    }

    async fn enforce(&self, portions: &[(&str, &str, f64)]) {
        self.running.portions.enforce(fleet(portions)).await.unwrap();
    }

    /// Of the three groups, a second.
    fn limits(&self) -> [f64; 3] {
        let content = self.path.content();
        [("dns", "eu"), ("web", "eu"), ("web", "us")].map(|(pool, region)| {
            (per_second(content.limit(pool, region)).unwrap() * 1e3).round() / 1e3
        })
    }

    fn member_limit(&self, pool: &str, address: &str) -> LimitWord {
        self.path.content().limits[&Limited::Member(name(pool), ip(address))]
    }
}

/// Whether each change lowered a limit, in order.
fn lowers(before: &[(GroupName, LimitWord)], changes: &[(GroupName, LimitWord)]) -> Vec<bool> {
    let mut limits: std::collections::BTreeMap<_, _> = before.iter().cloned().collect();
    let is_lower = |(group, limit): &(GroupName, LimitWord)| {
        is_lower(*limit, limits.insert(group.clone(), *limit).unwrap())
    };
    changes.iter().map(is_lower).collect()
}

#[tokio::test]
async fn what_gets_lower_is_written_before_what_gets_higher() {
    let daemon = Daemon::with_groups().await;
    daemon.enforce(&[("dns", "eu", 0.1), ("web", "eu", 0.5), ("web", "us", 0.2)]).await;
    assert_eq!(daemon.limits(), [100.0, 50.0, 200.0]);
    daemon.path.content().groups_at_once = Some(1);
    let before = daemon.path.content().limit_changes.clone();
    daemon.enforce(&[("dns", "eu", 0.3), ("web", "eu", 0.2), ("web", "us", 0.9)]).await;
    assert_eq!(daemon.limits(), [300.0, 20.0, 900.0]);
    let changes = daemon.path.content().limit_changes[before.len()..].to_vec();
    assert_eq!(lowers(&before, &changes), [true, false, false]);
    // The same again writes nothing.
    daemon.enforce(&[("dns", "eu", 0.3), ("web", "eu", 0.2), ("web", "us", 0.9)]).await;
    assert_eq!(daemon.path.content().limit_changes.len(), before.len() + 3);
    // Out of the fleet: all of them, again in this order.
    let before = daemon.path.content().limit_changes.clone();
    daemon.apply(&format!("balancers = 2\nhash_key = \"{:032}\"\n{GROUPS}", 7)).await.unwrap();
    assert_eq!(daemon.limits(), [300.0, 20.0, 900.0], "in a fleet they do not count");
    daemon.running.portions.by_configuration().await.unwrap();
    assert_eq!(daemon.limits(), [500.0, 50.0, 500.0]);
    let changes = daemon.path.content().limit_changes[before.len()..].to_vec();
    assert_eq!(lowers(&before, &changes), [true, false, false]);
    assert_eq!(daemon.running.portions.last(), Portions::ByConfiguration);
}

#[tokio::test]
async fn members_and_overrides_and_health_go_by_the_portion() {
    let daemon = Daemon::with_groups().await;
    let whole = daemon.member_limit("web", "10.0.0.1");
    assert_eq!(per_second(whole), Some(50.0));
    daemon.enforce(&[("dns", "eu", 1.0), ("web", "eu", 0.2), ("web", "us", 0.2)]).await;
    assert_eq!(per_second(daemon.member_limit("web", "10.0.0.1")), Some(10.0));
    daemon.report_health("web", "10.0.0.2", Failing, "check tcp: refused").await;
    assert_eq!(daemon.limits(), [1000.0, 10.0, 200.0]);
    daemon.report_health("web", "10.0.0.2", Passing, "all checks pass").await;
    assert_eq!(daemon.limits(), [1000.0, 20.0, 200.0]);

    let target = Target::Group { pool: name("web"), region: name("us") };
    let action = Action::Scale(Percent::try_from(50).unwrap());
    let set =
        OverrideChange::Set { targets: vec![target], action, time: None, scope: Scope::Shared };
    let by = (Actor::user(7), lb_config::Reason::new("test").unwrap());
    daemon.running.commands.change_overrides(set, false, by).await.unwrap().unwrap();
    assert_eq!(daemon.limits(), [1000.0, 20.0, 100.0]);
    daemon.enforce(&[("dns", "eu", 1.0), ("web", "eu", 0.0), ("web", "us", 0.6)]).await;
    assert_eq!(daemon.limits(), [1000.0, 0.0, 300.0]);
    assert!(daemon.member_limit("web", "10.0.0.1").is_closed());
    daemon.running.portions.by_configuration().await.unwrap();
    assert_eq!(daemon.member_limit("web", "10.0.0.1"), whole);
    assert_eq!(daemon.limits(), [1000.0, 100.0, 500.0]);
}

#[tokio::test]
async fn a_group_that_the_fleet_does_not_name_is_closed() {
    let daemon = Daemon::new();
    // Named before it is applied.
    daemon.enforce(&[("web", "eu", 0.5)]).await;
    daemon.apply(GROUPS).await.unwrap();
    for address in ["10.0.0.1", "10.0.0.2"] {
        daemon.report_health("web", address, Passing, "all checks pass").await;
    }
    assert_eq!(daemon.limits(), [0.0, 50.0, 0.0]);
    daemon.enforce(&[("web", "eu", 0.5), ("web", "us", 0.25)]).await;
    assert_eq!(daemon.limits(), [0.0, 50.0, 250.0]);
    daemon.enforce(&[("web", "us", 0.25)]).await;
    assert_eq!(daemon.limits(), [0.0, 0.0, 250.0]);
    // Without a capacity there is nothing to divide.
    daemon.apply(&GROUPS.replacen("capacity = \"1000/s\"", "", 1)).await.unwrap();
    assert!(daemon.path.content().limit("dns", "eu").is_unlimited());
}

#[tokio::test]
async fn a_start_opens_no_limit() {
    let mut daemon = Daemon::with_groups().await;
    let portions = [("dns", "eu", 0.3), ("web", "eu", 0.2), ("web", "us", 0.4)];
    daemon.enforce(&portions).await;
    let states = daemon.path.content().states.clone();
    daemon.stop().await;
    // Once over the limits that the last daemon left, once over new maps.
    for path in [daemon.path.clone(), FakePacketPath::default()] {
        let changes = path.content().limit_changes.len();
        path.content().states.clone_from(&states);
        let store = Store::open(daemon.directory.path()).unwrap();
        let initial =
            (HoldDowns::default(), FleetHandles::default(), Portions::Fleet(fleet(&portions)));
        let (directory, beat) = (&daemon.directory, Duration::from_secs(1));
        daemon.running =
            Running::owning(store, directory, &path, beat, (Revision::CURRENT, false), initial);
        daemon.running.begun().await;
        daemon.path = path;
        for ((pool, region), limit) in &daemon.path.content().limit_changes[changes..] {
            let most = portions.iter().find(|it| it.0 == pool.as_str() && it.1 == region.as_str());
            let most = most.unwrap().2
                * if region.as_str() == "us" || pool.as_str() == "dns" { 1000.0 } else { 100.0 };
            assert!(per_second(*limit).unwrap() <= most, "{pool} {region}: {limit:?}");
        }
        assert_eq!(daemon.limits(), [300.0, 20.0, 400.0]);
        let shown = daemon.running.commands.regions(None).await.unwrap().unwrap().regions;
        let shown: Vec<_> = shown.iter().map(|it| it.reading.portion.fraction()).collect();
        assert_eq!(shown, [0.3, 0.2, 0.4], "by pool and region");
        daemon.running.portions.enforce(fleet(&portions)).await.unwrap();
        daemon.stop().await;
    }
}

#[tokio::test]
async fn what_is_shown_goes_by_the_portion() {
    let daemon = Daemon::with_groups().await;
    daemon.enforce(&[("dns", "eu", 0.3), ("web", "eu", 0.1)]).await;
    let shown = daemon.running.commands.regions(Some("web".into())).await.unwrap().unwrap();
    assert_eq!(shown.balancers.map(u32::from), Some(1));
    let [eu, us] = &shown.regions[..] else { panic!("{shown:?}") };
    assert_eq!((eu.reading.portion.fraction(), us.reading.portion), (0.1, Portion::NONE));
    assert_eq!(per_second(eu.reading.limit), Some(10.0));
    // One more backend of 50/s brings a tenth of that here.
    assert_eq!(eu.reading.gain(), Some(5.0));
    assert_eq!(us.reading.limit, LimitWord::CLOSED);
    daemon.running.portions.by_configuration().await.unwrap();
    let shown = daemon.running.commands.regions(None).await.unwrap().unwrap();
    assert!(shown.regions.iter().all(|it| it.reading.portion == Portion::WHOLE), "{shown:?}");
}

/// The publisher waits for packets; portions do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn portions_do_not_wait_for_a_publication() {
    let daemon = Daemon::with_groups().await;
    daemon.enforce(&[("dns", "eu", 0.5), ("web", "eu", 0.5), ("web", "us", 0.5)]).await;
    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let configuration = request(&GROUPS.replace("1000/s", "2000/s"));
    let apply = Apply { configuration, ..Apply::default() };
    let applied = tokio::spawn(async move { commands.apply(apply, None).await });
    let stall = stall.begun().await;
    daemon.enforce(&[("dns", "eu", 0.1), ("web", "eu", 0.1), ("web", "us", 0.9)]).await;
    assert_eq!(daemon.limits(), [100.0, 10.0, 900.0]);
    drop(stall);
    timeout(Duration::from_secs(120), applied).await.unwrap().unwrap().unwrap().unwrap();
    assert_eq!(daemon.limits(), [200.0, 10.0, 1800.0]);
}

#[tokio::test]
async fn a_change_that_nobody_waits_for_is_made() {
    let daemon = Daemon::with_groups().await;
    daemon.path.content().groups_at_once = Some(1);
    let first = [("dns", "eu", 0.1), ("web", "eu", 0.1), ("web", "us", 0.1)];
    tokio::select! {
        biased;
        _ = daemon.running.portions.enforce(fleet(&first)) => panic!("at once"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(daemon.running.portions.last(), Portions::Fleet(fleet(&first)));
    // The next one begins where that one ended.
    daemon.enforce(&[("dns", "eu", 0.1), ("web", "eu", 0.2), ("web", "us", 0.1)]).await;
    assert_eq!(daemon.limits(), [100.0, 20.0, 100.0]);
}

#[tokio::test]
async fn limits_that_no_plan_has_described_are_not_called_enforced() {
    let mut daemon = Daemon::with_groups().await;
    daemon.path.content().is_undescribed = true;
    let portions = fleet(&[("dns", "eu", 0.1), ("web", "eu", 0.1), ("web", "us", 0.1)]);
    let commands = daemon.running.portions.clone();
    let enforced = commands.enforce(Arc::clone(&portions)).await;
    assert_eq!(enforced, Err(NotEnforced::NoPlan));
    daemon.apply(&GROUPS.replace("1000/s", "2000/s")).await.unwrap();
    assert_eq!(commands.enforce(Arc::clone(&portions)).await, Ok(()));
    assert_eq!(daemon.limits(), [200.0, 10.0, 200.0]);
    daemon.stop().await;
    // The commands keep no loop running.
    assert_eq!(commands.enforce(portions).await, Err(NotEnforced::Stopping));
    assert_eq!(commands.by_configuration().await, Err(NotEnforced::Stopping));
}

/// Between two steps of a change a backend comes back, and a plan is published: neither raises a limit early.
#[tokio::test]
async fn until_all_lower_limits_are_written_no_group_has_more() {
    let daemon = Daemon::with_groups().await;
    daemon.enforce(&[("dns", "eu", 0.5), ("web", "eu", 0.1), ("web", "us", 0.5)]).await;
    let changing = PortionsInForce::changing(
        Portions::Fleet(fleet(&[("dns", "eu", 0.5), ("web", "eu", 0.1), ("web", "us", 0.5)])),
        Portions::Fleet(fleet(&[("dns", "eu", 0.2), ("web", "eu", 0.9), ("web", "us", 0.5)])),
    );
    // As the member loop leaves it between two steps.
    let mut words = daemon.path.clone();
    words.set_portions(changing);
    daemon.report_health("web", "10.0.0.2", Failing, "check tcp: refused").await;
    assert_eq!(daemon.limits()[1], 5.0);
    daemon.report_health("web", "10.0.0.2", Passing, "all checks pass").await;
    assert_eq!(daemon.limits()[1], 10.0);
    daemon.apply(&GROUPS.replace("1000/s", "2000/s")).await.unwrap();
    assert_eq!(daemon.limits(), [400.0, 10.0, 1000.0]);
}
