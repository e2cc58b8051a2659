//! Overrides of one balancer of a fleet alone.

use super::{
    fleet_mark_outs::{agreed, seconds},
    fleet_overrides::{drains, key, set},
    *,
};
use crate::command::{Actor, OverrideChange};
use lb_config::Reason;
use lb_model::overrides::{Action, Kind, Scope};

const FIRST: &str = "backends/10.0.0.1/drain";
const LOCAL: &str = "local/backends/10.0.0.1/drain";
const DISABLE: &str = "local/backends/10.0.0.2/disable";

fn remove(path: &str) -> OverrideChange {
    OverrideChange::Remove(vec![key(path)])
}

#[tokio::test]
async fn a_local_override_stands_beside_those_of_the_fleet() {
    use Accepts::{All, Nothing, OpenOnly};
    let mut daemon = Daemon::with_both_up().await;
    daemon.follow(drains(&[])).await;
    let local = daemon.ask_for(set(LOCAL), false).await.unwrap();
    assert_eq!((local.overrides.len(), local.unstored), (1, None));
    assert_eq!(daemon.accepts(), [OpenOnly, All]);
    let reason = "drained by a local override of uid 7";
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, reason);
    // The fleet drains it too, and ends that.
    daemon.follow(drains(&[FIRST])).await;
    assert_eq!(daemon.overridden().await, (vec![FIRST.into(), LOCAL.into()], true));
    let both = daemon.backend("web", "10.0.0.1").await.reason.text;
    assert!(both.contains("override of certificate ops.example"), "{both}");
    daemon.follow(drains(&[])).await;
    assert_eq!(
        (daemon.overridden().await.0, daemon.accepts()),
        (vec![LOCAL.into()], [OpenOnly, All])
    );

    daemon.ask_for(set(DISABLE), false).await.unwrap();
    assert_eq!(daemon.accepts(), [OpenOnly, Nothing]);
    daemon.restart().await;
    daemon.both_up().await;
    let both = (vec![LOCAL.to_owned(), DISABLE.to_owned()], true);
    assert_eq!((daemon.overridden().await, daemon.accepts()), (both, [OpenOnly, Nothing]));
    // Only the fleet changes what is the fleet's.
    let refused = daemon.ask_for(set(FIRST), false).await.unwrap_err();
    assert!(matches!(refused, Refusal::Member), "{refused}");
    let both = OverrideChange::Remove(vec![key(FIRST), key(LOCAL)]);
    let refused = daemon.ask_for(both, false).await.unwrap_err();
    assert!(matches!(refused, Refusal::Member), "{refused}");
    for path in [LOCAL, DISABLE] {
        assert_eq!(daemon.ask_for(remove(path), false).await.unwrap().overrides.len(), 1, "{path}");
    }
    assert_eq!((daemon.overridden().await.0, daemon.accepts()), (vec![], [All, All]));
}

#[tokio::test]
async fn a_balancer_without_a_fleet_has_no_local_overrides() {
    let daemon = Daemon::with_both_up().await;
    for change in [set(LOCAL), remove(LOCAL)] {
        for dry_run in [true, false] {
            let refused = daemon.ask_for(change.clone(), dry_run).await.unwrap_err();
            assert!(matches!(refused, Refusal::NoMember), "{refused}");
        }
    }
    assert_eq!(daemon.overridden().await, (vec![], false));
}

#[tokio::test(start_paused = true)]
async fn a_local_override_ends_by_the_own_clock_and_with_its_target() {
    let daemon = Daemon::with_both_up().await;
    daemon.follow(drains(&["backends/10.0.0.2/drain"])).await;
    let time = Some(Duration::from_secs(120));
    let (targets, action) = (vec![key(LOCAL).target], Action::Drain);
    let set_local = OverrideChange::Set { targets, action, time, scope: Scope::Local };
    daemon.ask_for(set_local, false).await.unwrap();
    let second = "backends/10.0.0.2/drain".to_owned();
    seconds(115).await;
    assert_eq!(daemon.overridden().await.0, [LOCAL.to_owned(), second.clone()]);
    seconds(10).await;
    assert_eq!(
        (daemon.overridden().await.0, daemon.accepts()[0]),
        (vec![second.clone()], Accepts::All)
    );

    daemon.ask_for(set(LOCAL), false).await.unwrap();
    let first = "[[pool.backend]]\n    address = \"10.0.0.1\"\n    region = \"eu\"\n";
    daemon.apply(&web(first, "")).await.unwrap();
    seconds(3595).await;
    assert_eq!(daemon.overridden().await.0.len(), 2);
    seconds(10).await;
    assert_eq!(daemon.overridden().await.0, [second], "that of the fleet is the fleet's");
}

/// Whoever leaves a fleet keeps what is in force; of two that ask the same, the one that lasts longer.
#[tokio::test]
async fn after_the_fleet_local_overrides_are_ordinary_ones() {
    let mut daemon = Daemon::with_both_up().await;
    daemon.follow(drains(&[FIRST])).await;
    let time = Some(Duration::from_secs(7200));
    let (targets, action) = (vec![key(LOCAL).target], Action::Drain);
    let set_local = OverrideChange::Set { targets, action, time, scope: Scope::Local };
    daemon.ask_for(set_local, false).await.unwrap();
    daemon.ask_for(set(DISABLE), false).await.unwrap();
    daemon.unfollow().await;
    let own = (vec![FIRST.to_owned(), "backends/10.0.0.2/disable".to_owned()], false);
    assert_eq!(daemon.overridden().await, own);
    let overrides = daemon.running.commands.overrides().await.unwrap().overrides;
    assert_eq!(overrides.get(&key(FIRST)).unwrap().until, None);
    daemon.restart().await;
    assert_eq!(daemon.overridden().await, own);
    // A fleet that it joins has others.
    daemon.follow(drains(&[])).await;
    assert_eq!(daemon.overridden().await, (vec![], true));
}

/// What is drained or disabled here serves at the other balancers, so it must not become absent from home.
#[tokio::test(start_paused = true)]
async fn local_overrides_mark_nothing_out() {
    let daemon = Daemon::with_down(&[3]).await;
    daemon.decide(agreed(&[], &[]));
    daemon.follow(drains(&[])).await;
    let digests = async || daemon.running.commands.table_digests().await.unwrap().unwrap();
    let before = digests().await;
    for path in [LOCAL, DISABLE, "local/backends/10.0.0.3/drain", "local/regions/us/drain"] {
        daemon.ask_for(set(path), false).await.unwrap();
    }
    seconds(70).await;
    assert_eq!(daemon.state("web", "10.0.0.4"), Accepts::OpenOnly);
    assert_eq!(daemon.own_view(), [3], "by its checks, whatever is drained");
    let view = daemon.running.fleet.mark_outs.own_view().borrow().clone().unwrap();
    assert!(view[&name("web")].regions.is_empty(), "{view:?}");
    assert_eq!(digests().await, before);
    // The same by the fleet does.
    daemon.follow(drains(&[FIRST])).await;
    daemon.ask_for(remove(DISABLE), false).await.unwrap();
    seconds(70).await;
    assert_eq!(daemon.own_view(), [1, 3]);
    // A backend that fails its checks while it is drained here is out of service.
    daemon.ask_for(set(DISABLE), false).await.unwrap();
    daemon.report_health("web", "10.0.0.2", Silent, "check tcp: timed out").await;
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.follow(drains(&[])).await;
    seconds(70).await;
    assert_eq!(daemon.own_view(), [2, 3]);
}

#[tokio::test]
async fn a_fleet_has_room_for_its_overrides_whatever_is_local() {
    let daemon = Daemon::with_both_up().await;
    daemon.follow(drains(&[])).await;
    daemon.ask_for(set(LOCAL), false).await.unwrap();
    let most: Vec<String> =
        (0..10_000u32).map(|n| format!("backends/10.1.{}.{}/drain", n / 256, n % 256)).collect();
    let most: Vec<&str> = most.iter().map(String::as_str).collect();
    daemon.follow(drains(&most)).await;
    assert_eq!(daemon.overridden().await.0.len(), 10_001);
    let backends: Vec<_> = (0..1001u32)
        .map(|n| lb_model::overrides::Target::Backend {
            address: std::net::Ipv4Addr::from(0x0a02_0000 + n).into(),
            pool: None,
        })
        .collect();
    let text: String = backends
        .iter()
        .map(|it| format!("[[pool.backend]]\naddress = \"{}\"\nregion = \"eu\"\n", address(it)))
        .collect();
    daemon
        .apply(&web("slots = 31", "slots = 2039").replacen(
            "[[service]]",
            &(text + "[[service]]"),
            1,
        ))
        .await
        .unwrap();
    let scope = Scope::Local;
    let local = |targets| OverrideChange::Set { targets, action: Action::Drain, time: None, scope };
    let by = (Actor::user(7), Reason::default());
    let refused = daemon.running.commands.change_overrides(local(backends.clone()), false, by);
    assert!(matches!(refused.await.unwrap(), Err(Refusal::TooManyOverrides)));
    daemon.ask_for(local(backends[..999].to_vec()), false).await.unwrap();
    assert_eq!(daemon.overridden().await.0.len(), 11_000);
    assert_eq!(key(LOCAL).kind, Kind::Drain);
}

fn address(target: &lb_model::overrides::Target) -> IpAddr {
    match target {
        lb_model::overrides::Target::Backend { address, .. } => *address,
        other => panic!("{other}"),
    }
}
