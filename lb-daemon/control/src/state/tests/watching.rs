use tokio::sync::broadcast::error::TryRecvError;

use std::time::Duration;

use super::*;
use crate::command::Subscription;
use lb_model::{capacity::Capacity, next_hop::NextHop};

fn next(subscription: &mut Subscription) -> Event {
    subscription.events.try_recv().unwrap()
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
        if let Event::Region(region) = event {
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
