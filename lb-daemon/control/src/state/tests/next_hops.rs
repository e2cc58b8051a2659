use super::{hold_down::silent, *};
use crate::command::PoolBackends;
use lb_net::{Bonds, Unresolved};

pub(super) fn hop(interface: u32) -> NextHop {
    NextHop {
        gateway: ip("10.0.0.254"),
        mac: [2, 0, 0, 0, 0, 1],
        interface,
        vlan: None,
        interface_mac: [2, 0, 0, 0, 0, 2],
        mtu: 1500,
        source: Some(ip("10.0.0.250")),
    }
}

impl Daemon {
    pub(super) async fn resolve(&self, address: &str, hop: Result<NextHop, Unresolved>) {
        let change = NextHopChange { address: ip(address), hop };
        self.running.network.send(NetChange::NextHops(vec![change])).await.unwrap();
        self.heard().await;
    }
}

/// The loopback interface has index 1 in every network namespace.
#[tokio::test]
async fn next_hops_reach_the_packet_path_and_the_status() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let waiting = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(waiting.next_hop, Err("not looked up yet".into()));

    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    assert_eq!(daemon.path.content().next_hops[&ip("10.0.0.1")], hop(1));
    let status = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(status.next_hop, Ok("02:00:00:00:00:01 on lo".into()));

    daemon.resolve("10.0.0.1", Err(Unresolved::NoRoute)).await;
    assert!(daemon.path.content().next_hops.is_empty());
    assert_eq!(daemon.backend("web", "10.0.0.1").await.next_hop, Err("no route".into()));
}

/// Where a check says when a backend is gone, its open connections wait for as long as that may take.
#[tokio::test(start_paused = true)]
async fn a_lost_next_hop_is_awaited_for_ten_seconds_or_for_as_long_as_checks_take() {
    let slow = web("tcp = {}", "tcp = {}\n    interval = \"10s\"");
    let unchecked = web("health_checks = [\"tcp\"]", "");
    for (text, is_checked) in [(slow, true), (unchecked, false)] {
        let daemon = Daemon::new();
        daemon.apply(&text).await.unwrap();
        let awaited = || daemon.path.content().awaited.iter().copied().collect::<Vec<_>>();
        daemon.resolve("10.0.0.1", Err(Unresolved::NoRoute)).await;
        assert_eq!(awaited(), [""; 0].map(ip), "it had none");
        for address in ["10.0.0.1", "10.0.0.2"] {
            daemon.report_health("web", address, Passing, "all checks pass").await;
            daemon.resolve(address, Ok(hop(1))).await;
            daemon.resolve(address, Err(Unresolved::NoRoute)).await;
        }
        let both = ["10.0.0.1", "10.0.0.2"].map(ip);
        assert_eq!(awaited(), both);
        assert_eq!(daemon.backend("web", "10.0.0.1").await.next_hop, Err("no route".into()));
        tokio::time::sleep(Duration::from_millis(8_900)).await;
        // Another reason makes it no younger.
        daemon.resolve("10.0.0.1", Err(silent("10.0.0.254"))).await;
        assert_eq!(awaited(), both);
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        let left = if is_checked { both.to_vec() } else { vec![] };
        assert_eq!(awaited(), left, "{is_checked}");
        daemon.resolve("10.0.0.1", Err(Unresolved::NoRoute)).await;
        assert_eq!(awaited(), left, "once given up it is not awaited again");
        if is_checked {
            daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
            tokio::time::sleep(Duration::from_millis(1_100)).await;
            assert_eq!(awaited(), [ip("10.0.0.2")], "health says that it is gone");
            // Three failures of 11 s would have said so of this one too.
            tokio::time::sleep(Duration::from_millis(22_000)).await;
            assert_eq!(awaited(), [""; 0].map(ip));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_may_pass_by_itself_is_awaited() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let is_awaited = async |daemon: &Daemon, why| {
        daemon.resolve("10.0.0.1", Ok(hop(1))).await;
        daemon.resolve("10.0.0.1", Err(why)).await;
        !daemon.path.content().awaited.is_empty()
    };
    let name = || "eth0".to_owned();
    for why in [silent("10.0.0.254"), Unresolved::Down(name()), Unresolved::NoCarrier(name())] {
        assert!(is_awaited(&daemon, why).await);
    }
    for why in [Unresolved::NotEthernet(name()), Unresolved::Encapsulated] {
        assert!(!is_awaited(&daemon, why).await);
    }
    // A backend that only the version before a change has is in no pool, so nothing is said of it.
    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    daemon.resolve("10.0.0.1", Err(Unresolved::NoRoute)).await;
    let gone = "[[pool.backend]]\n    address = \"10.0.0.1\"\n    region = \"eu\"\n    ";
    daemon.apply(&web(gone, "")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(11_100)).await;
    assert!(daemon.path.content().awaited.is_empty());
}

#[tokio::test]
async fn ports_of_bonds_reach_the_packet_path() {
    let daemon = Daemon::new();
    for bonds in [vec![(3, 5), (4, 5)], vec![(4, 5)]] {
        let bonds: Bonds = bonds.into_iter().collect();
        let change = NetChange::Bonds(bonds.clone());
        daemon.running.network.send(change).await.unwrap();
        daemon.heard().await;
        assert_eq!(daemon.path.content().bonds, bonds);
    }
}

#[tokio::test]
async fn an_unusable_next_hop_is_none() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    daemon.resolve("10.0.0.1", Ok(hop(70_000))).await;
    assert!(daemon.path.content().next_hops.is_empty());
    let why = "interface 70000: next hops support interface indices up to 65535";
    assert_eq!(daemon.backend("web", "10.0.0.1").await.next_hop, Err(why.into()));
}

#[tokio::test]
async fn direct_return_warns_about_backends_behind_gateways() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let on_link = NextHop { gateway: ip("10.0.0.2"), ..hop(1) };
    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    daemon.resolve("10.0.0.2", Ok(on_link)).await;
    let mut watcher = daemon.running.commands.watch(None).await.unwrap().unwrap();

    let direct = web("slots = 31", "slots = 31\n    encapsulation = \"direct\"");
    let applied = daemon.apply(&direct).await.unwrap();
    let warning = "pool web uses direct return, but 1 of its 2 backends are behind a gateway (10.0.0.1 behind \
                   10.0.0.254) and get no packets";
    assert_eq!(applied.warnings, [warning]);
    assert_eq!(daemon.path.content().next_hops, [(ip("10.0.0.2"), on_link)].into());
    let why = "direct return needs a backend on the link, but the route leads through 10.0.0.254";
    let behind = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(behind.next_hop, Err(why.into()));
    let mut announced = Vec::new();
    while let Ok(event) = watcher.events.try_recv() {
        announced.push(event);
    }
    let is_told = |event: &Arc<Event>| match &**event {
        Event::Backends(change) => change.changed.contains(&behind),
        _ => false,
    };
    assert!(announced.iter().any(is_told), "{announced:?}");
    // The warning is not repeated.
    let again = direct.replace("slots = 31", "slots = 37");
    assert_eq!(daemon.apply(&again).await.unwrap().warnings, [""; 0]);
}

#[tokio::test]
async fn services_count_available_backends() {
    let daemon = Daemon::new();
    let weightless = web(
        "address = \"10.0.0.2\"\n    region = \"eu\"",
        "address = \"10.0.0.2\"\n    region = \"eu\"\n    weight = 0",
    );
    daemon.apply(&weightless).await.unwrap();
    let up = async || {
        let service = &daemon.status().await.services[0];
        (service.backends_up, service.backends)
    };
    assert_eq!(up().await, (0, 2));
    for address in ["10.0.0.1", "10.0.0.2"] {
        daemon.report_health("web", address, Passing, "all checks pass").await;
        assert_eq!(up().await, (0, 2), "no next hop");
    }
    for address in ["10.0.0.2", "10.0.0.1"] {
        daemon.resolve(address, Ok(hop(1))).await;
    }
    assert_eq!(up().await, (1, 2), "one of them has no weight");
    daemon.apply(WEB).await.unwrap();
    assert_eq!(up().await, (2, 2));
    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    assert_eq!(up().await, (1, 2));
}

#[tokio::test]
async fn direct_return_gives_up_gateways_and_refuses_new_ones() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let on_link = NextHop { gateway: ip("10.0.0.2"), ..hop(1) };
    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    daemon.resolve("10.0.0.2", Ok(on_link)).await;
    let direct = web("slots = 31", "slots = 31\nencapsulation = \"direct\"");
    daemon.apply(&direct).await.unwrap();
    let kept = || daemon.path.content().next_hops.keys().copied().collect::<Vec<_>>();
    assert_eq!(kept(), [ip("10.0.0.2")]);
    let why = "direct return needs a backend on the link, but the route leads through 10.0.0.254";
    assert_eq!(daemon.backend("web", "10.0.0.1").await.next_hop, Err(why.into()));
    daemon.resolve("10.0.0.2", Ok(hop(1))).await;
    assert!(kept().is_empty());
    assert_eq!(daemon.backend("web", "10.0.0.2").await.next_hop, Err(why.into()));
    // Once it is no direct return any more, sensors report what they know again.
    daemon.apply(WEB).await.unwrap();
    daemon.resolve("10.0.0.2", Ok(hop(1))).await;
    assert_eq!(kept(), [ip("10.0.0.2")]);
}

/// What is shared is what is true now, whatever changed it.
#[tokio::test]
async fn the_backends_of_a_pool_are_shared_until_one_changes() {
    let two = WEB.to_owned()
        + "[[pool]]\nname = \"other\"\n\
           [[pool.backend]]\naddress = \"10.0.0.2\"\nregion = \"eu\"\n";
    let daemon = Daemon::new();
    daemon.apply(&two).await.unwrap();
    let pools = || async {
        let status = daemon.status().await;
        let of = |pool: &str| {
            let pool = status.pools.iter().find(|it| it.pool == name(pool)).unwrap();
            Arc::clone(pool)
        };
        (of("web"), of("other"))
    };
    let mut before = pools().await;
    let mut changed = |after: (Arc<PoolBackends>, Arc<PoolBackends>)| {
        let before = std::mem::replace(&mut before, after.clone());
        let web = (before.0 != after.0, !Arc::ptr_eq(&before.0, &after.0));
        let other = (before.1 != after.1, !Arc::ptr_eq(&before.1, &after.1));
        (web, other)
    };
    let (same, new) = ((false, false), (true, true));
    assert_eq!(changed(pools().await), (same, same));

    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(changed(pools().await), (new, same));
    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    assert_eq!(changed(pools().await), (new, same));
    // Both pools have this one.
    daemon.resolve("10.0.0.2", Ok(hop(1))).await;
    assert_eq!(changed(pools().await), (new, new));
    assert_eq!(changed(pools().await), (same, same));

    let drained = two.replacen("region = \"eu\"", "region = \"eu\"\nadmin_state = \"drain\"", 1);
    assert_ne!(drained, two);
    daemon.apply(&drained).await.unwrap();
    assert_eq!(changed(pools().await), (new, same));
    daemon.apply(WEB).await.unwrap();
    let status = daemon.status().await;
    assert_eq!(status.pools.len(), 1);
}
