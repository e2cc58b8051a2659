use tokio::sync::broadcast::error::TryRecvError;

use super::*;
use crate::command::Subscription;
use lb_model::{capacity::Capacity, next_hop::NextHop};

fn next(subscription: &mut Subscription) -> Event {
    Event::clone(&*subscription.events.try_recv().unwrap())
}

#[tokio::test]
async fn a_watcher_gets_a_snapshot_and_then_every_change_in_order() {
    let daemon = Daemon::new();
    let mut early = daemon.running.commands.watch().await.unwrap().unwrap();
    assert_eq!(early.snapshot.generation, 0);
    let applied = daemon.apply(WEB).await.unwrap();
    assert_eq!(next(&mut early), Event::Generation(applied));
    for address in ["10.0.0.1", "10.0.0.2"] {
        let expected = daemon.backend("web", address).await;
        assert_eq!(next(&mut early), Event::Backend(expected));
    }
    let mut late = daemon.running.commands.watch().await.unwrap().unwrap();
    let now = daemon.status().await;
    assert!(late.snapshot.backends().eq(now.backends()));

    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let expected = Event::Backend(daemon.backend("web", "10.0.0.1").await);
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
        if let Event::Region(region) = &*event {
            announced.push((
                region.region.to_string(),
                region.reading.capacity(),
                region.backends_up(),
            ));
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
    let mut watcher = daemon.running.commands.watch().await.unwrap().unwrap();
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
        };
        let change = NextHopChange { address: ip(address), hop: Ok(hop) };
        daemon.running.network.send(NetChange::NextHop(change)).await.unwrap();
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
    let mut backends = subscription.snapshot.backends();
    let mut state = backends.find(|it| it.address == address).unwrap().state.name().to_owned();
    let mut take = |event: &Event| match event {
        Event::Backend(backend) if backend.address == address => {
            state = backend.state.name().to_owned();
        }
        _ => {}
    };
    subscription.since.iter().for_each(|event| take(event));
    while let Ok(event) = subscription.events.try_recv() {
        take(&event);
    }
    state
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
    assert!(Arc::ptr_eq(&first.snapshot, &second.snapshot));
    assert_eq!(second.since.len(), 1);
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    for subscription in [&mut first, &mut second, &mut again().await] {
        assert_eq!(known(subscription, "10.0.0.1"), "unhealthy");
    }
    // There are two backends: after two events a new snapshot costs no more.
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let third = again().await;
    assert!(third.since.is_empty() && !Arc::ptr_eq(&first.snapshot, &third.snapshot));
    assert!(Arc::ptr_eq(&third.snapshot, &again().await.snapshot));

    // A new generation is in no event as a whole.
    daemon.apply(&web("31", "37")).await.unwrap();
    let mut fourth = again().await;
    assert_eq!((fourth.snapshot.generation, fourth.since.len()), (2, 0));
    assert_eq!(known(&mut fourth, "10.0.0.1"), "up");
    // Conditions are in no event at all.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!Arc::ptr_eq(&fourth.snapshot, &again().await.snapshot));
}

/// One that does not lag sees what is now.
#[tokio::test]
async fn a_new_watcher_gets_a_snapshot_of_its_own() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let commands = &daemon.running.commands;
    let lagging = commands.watch_again().await.unwrap().unwrap();
    let new = commands.watch().await.unwrap().unwrap();
    assert!(!Arc::ptr_eq(&lagging.snapshot, &new.snapshot) && new.since.is_empty());
}
