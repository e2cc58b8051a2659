use tokio::sync::broadcast::error::TryRecvError;

use super::*;
use crate::command::{BackendsEvent, Subscription, WatchPosition};
use lb_model::{capacity::Capacity, next_hop::NextHop};

fn next(subscription: &mut Subscription) -> Event {
    Event::clone(&*subscription.events.try_recv().unwrap())
}

fn changed<const N: usize>(changed: [BackendStatus; N]) -> Event {
    Event::Backends(BackendsEvent { changed: changed.into(), removed: Vec::new() })
}

#[tokio::test]
async fn a_watcher_gets_a_snapshot_and_then_every_change_in_order() {
    let daemon = Daemon::new();
    let mut early = daemon.running.commands.watch(None).await.unwrap().unwrap();
    assert_eq!(early.snapshot.as_ref().unwrap().generation, 0);
    let applied = daemon.apply(WEB).await.unwrap();
    assert_eq!(next(&mut early), Event::Generation(applied));
    let one = daemon.backend("web", "10.0.0.1").await;
    let other = daemon.backend("web", "10.0.0.2").await;
    assert_eq!(next(&mut early), changed([one, other]));
    let mut late = daemon.running.commands.watch(None).await.unwrap().unwrap();
    let now = daemon.status().await;
    assert!(late.snapshot.as_ref().unwrap().backends().eq(now.backends()));

    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let expected = changed([daemon.backend("web", "10.0.0.1").await]);
    assert_eq!(next(&mut early), expected);
    assert_eq!(next(&mut late), expected);

    // A result that changes nothing is no event.
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(WEB).await.unwrap();
    assert_eq!(early.events.try_recv(), Err(TryRecvError::Empty));
}

/// Announced groups: region, capacity, and backends that are up.
fn announced_regions(subscription: &mut Subscription) -> Vec<(String, Capacity, usize)> {
    let mut announced = Vec::new();
    while let Ok(event) = subscription.events.try_recv() {
        if let Event::Groups(groups) = &*event {
            announced.extend(
                groups
                    .changed
                    .iter()
                    .map(|it| (it.region.to_string(), it.reading.capacity(), it.backends_up())),
            );
        }
    }
    announced
}

#[tokio::test(start_paused = true)]
async fn a_watcher_gets_changes_of_what_a_region_can_take() {
    const EVERYBODY: [(&str, u32); 2] = [("10.0.0.1", 2), ("10.0.0.2", 3)];
    let daemon = Daemon::new();
    let look = || tokio::time::sleep(Duration::from_millis(1_100));
    look().await;
    let mut watcher = daemon.running.commands.watch(None).await.unwrap().unwrap();
    let backends = EVERYBODY.map(|(address, rate)| {
        format!(
            "[[pool.backend]]\naddress = \"{address}\"\nregion = \"eu\"\n\
             max_connection_rate = \"{rate}/s\"\n"
        )
    });
    let text = format!(
        "[[region]]\nname = \"eu\"\n[[health_check]]\nname = \"up\"\nport = 80\ntcp = {{}}\n\
         [[pool]]\nname = \"web\"\nhealth_checks = [\"up\"]\n{}",
        backends.concat()
    );
    daemon.apply(&text).await.unwrap();
    look().await;
    let announced = announced_regions(&mut watcher);
    assert_eq!(announced, [("eu".into(), Capacity::Closed, 0)]);

    for (address, _) in EVERYBODY {
        let hop = NextHop {
            gateway: ip(address),
            mac: [2, 0, 0, 0, 0, 1],
            interface: 2,
            vlan: None,
            interface_mac: [2, 0, 0, 0, 0, 2],
            mtu: 1500,
            source: Some(ip("10.0.0.250")),
        };
        let change = NextHopChange { address: ip(address), hop: Ok(hop) };
        daemon.running.network.send(NetChange::NextHops(vec![change])).await.unwrap();
        daemon.report_health("web", address, Passing, "all checks pass").await;
    }
    look().await;
    assert_eq!(announced_regions(&mut watcher), [("eu".into(), Capacity::PerSecond(5.0), 2)]);
    daemon.report_health("web", "10.0.0.2", Failing, "check up: connection refused").await;
    look().await;
    assert_eq!(announced_regions(&mut watcher), [("eu".into(), Capacity::PerSecond(2.0), 1)]);
    look().await;
    assert_eq!(announced_regions(&mut watcher), [], "no news");
}

/// What a watcher knows of a backend's state from its subscription.
fn known(subscription: &mut Subscription, address: &str) -> String {
    let address = ip(address);
    let snapshot = subscription.snapshot.clone().unwrap();
    let mut backends = snapshot.backends();
    let mut state = backends.find(|it| it.address == address).unwrap().state.name().to_owned();
    let mut take = |event: &Event| {
        let Event::Backends(change) = event else { return };
        for backend in change.changed.iter().filter(|it| it.address == address) {
            state = backend.state.name().to_owned();
        }
    };
    subscription.since.iter().for_each(|event| take(event));
    while let Ok(event) = subscription.events.try_recv() {
        take(&event);
    }
    state
}

fn is_shared(one: &Subscription, other: &Subscription) -> bool {
    Arc::ptr_eq(one.snapshot.as_ref().unwrap(), other.snapshot.as_ref().unwrap())
}

#[tokio::test(start_paused = true)]
async fn watchers_that_lag_share_a_snapshot_and_miss_nothing() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let commands = daemon.running.commands.clone();
    let again = async || commands.watch_again().await.unwrap().unwrap();
    let mut first = again().await;
    assert!(first.since.is_empty());
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let mut second = again().await;
    assert!(is_shared(&first, &second));
    assert_eq!(second.since.len(), 1);
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    for subscription in [&mut first, &mut second, &mut again().await] {
        assert_eq!(known(subscription, "10.0.0.1"), "unhealthy");
    }
    // There are two backends: after two events a new snapshot costs no more.
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let third = again().await;
    assert!(third.since.is_empty() && !is_shared(&first, &third));
    assert!(is_shared(&third, &again().await));

    // A new generation is in no event as a whole.
    daemon.apply(&web("31", "37")).await.unwrap();
    let mut fourth = again().await;
    assert_eq!((fourth.snapshot.as_ref().unwrap().generation, fourth.since.len()), (2, 0));
    assert_eq!(known(&mut fourth, "10.0.0.1"), "up");
    // Conditions are in no event at all.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!is_shared(&fourth, &again().await));
}

/// One that does not lag sees what is now.
#[tokio::test]
async fn a_new_watcher_gets_a_snapshot_of_its_own() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let commands = &daemon.running.commands;
    let lagging = commands.watch_again().await.unwrap().unwrap();
    let new = commands.watch(None).await.unwrap().unwrap();
    assert!(!is_shared(&lagging, &new) && new.since.is_empty());
}

#[tokio::test]
async fn backends_that_go_are_told() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let mut watcher = daemon.running.commands.watch(None).await.unwrap().unwrap();
    let applied = daemon.apply(&web("10.0.0.2", "10.0.0.3")).await.unwrap();
    let removed = vec![(name("web"), ip("10.0.0.2"))];
    assert_eq!(
        next(&mut watcher),
        Event::Backends(BackendsEvent { removed, ..Default::default() })
    );
    assert_eq!(next(&mut watcher), Event::Generation(applied));
    let new = daemon.backend("web", "10.0.0.3").await;
    assert_eq!(next(&mut watcher), changed([new]));
    daemon.force("# nothing").await.unwrap();
    let Event::Backends(gone) = next(&mut watcher) else { panic!("its pool is gone") };
    let gone: Vec<_> = gone.removed.iter().map(|(_, address)| address.to_string()).collect();
    assert_eq!(gone, ["10.0.0.1", "10.0.0.3"]);
}

#[tokio::test]
async fn a_watcher_goes_on_from_its_position_without_a_snapshot() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let commands = &daemon.running.commands;
    let mut first = commands.watch(None).await.unwrap().unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.report_health("web", "10.0.0.2", Passing, "all checks pass").await;
    let events = [next(&mut first), next(&mut first)];

    let resumed = commands.watch(Some(first.position.next())).await.unwrap().unwrap();
    assert!(resumed.snapshot.is_none() && resumed.position == first.position.next());
    let since: Vec<_> = resumed.since.iter().map(|event| Event::clone(event)).collect();
    assert_eq!(since, events[1..]);
    let mut at_the_end = commands.watch(Some(first.position.next().next())).await.unwrap().unwrap();
    assert!(at_the_end.snapshot.is_none() && at_the_end.since.is_empty());
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    assert_eq!(next(&mut at_the_end), next(&mut first));

    let other = WatchPosition { life: first.position.life ^ 1, ..first.position };
    let anew = commands.watch(Some(other)).await.unwrap().unwrap();
    assert!(anew.snapshot.is_some() && anew.position.number == first.position.number + 3);
}
