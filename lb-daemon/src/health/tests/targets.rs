//! Sharing, and configurations that change.

use super::*;

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn pools_share_one_connection() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { interval: LONG, ..http(server.address) };
    let pools: Vec<_> = (0..100).map(|n| format!("pool-{n}")).collect();
    let targets = pools.iter().map(|pool| target(pool, server.address, &[("up", &check)]));
    let mut probing = Probing::start(targets.collect());
    server.next().await.answer(200).await;
    for pool in &pools {
        assert_eq!(probing.next().await, (pool.clone(), Passing, true, PASSES.to_owned()));
    }
    assert_eq!(server.waiting(), 0);
}

#[tokio::test]
async fn definitions_that_differ_are_probed_apart() {
    let mut server = Server::start("127.0.0.1:0").await;
    let one = HealthCheck { interval: LONG, ..http(server.address) };
    let two = HealthCheck { fall: 9, ..one.clone() };
    let targets = [("a", &one), ("b", &two)];
    let mut probing = Probing::start(
        targets.map(|(pool, check)| target(pool, server.address, &[("up", check)])).into(),
    );
    let (first, second) = (server.next().await, server.next().await);
    first.answer(200).await;
    let (pool, ..) = probing.next().await;
    second.answer(200).await;
    let (other, ..) = probing.next().await;
    assert_ne!(pool, other);
}

#[tokio::test]
async fn a_probe_that_stays_keeps_its_streak_and_speaks_for_newcomers() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = http(server.address);
    let with = |pool: &str| target(pool, server.address, &[("up", &check)]);
    let (old, new) = (with("old"), with("new"));
    let mut probing = Probing::start(vec![old.clone()]);
    server.next().await.answer(200).await;
    probing.next().await;
    server.next().await.answer(503).await;
    server.next().await.answer(503).await;
    let third = server.next().await;

    probing.configure(vec![new.clone(), old]);
    assert_eq!(probing.next().await, ("new".to_owned(), Passing, true, PASSES.to_owned()));
    assert_eq!(probing.next().await, ("old".to_owned(), Passing, false, PASSES.to_owned()));
    assert_eq!(server.waiting(), 0, "no second probe");
    third.answer(503).await;
    let down = "check up: status 503, expected 200 to 299".to_owned();
    assert_eq!(probing.next().await, ("new".to_owned(), Failing, false, down.clone()));
    assert_eq!(probing.next().await, ("old".to_owned(), Failing, false, down.clone()));

    probing.configure(vec![new]);
    assert_eq!(probing.next().await, ("new".to_owned(), Failing, false, down));
    server.next().await.answer(200).await;
    server.next().await.answer(200).await;
    assert_eq!(probing.next().await, ("new".to_owned(), Passing, false, PASSES.to_owned()));
    server.next().await;
    assert!(probing.is_silent());
}

#[tokio::test]
async fn a_probe_that_nobody_wants_ends_with_its_connection() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = http(server.address);
    let probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let mut held = server.next().await;
    held.request().await;
    probing.configure(Vec::new());
    held.closed().await.unwrap_err();
    assert!(probing.is_silent());
}

#[tokio::test]
async fn another_definition_starts_at_once_and_what_was_told_stands_until_its_result() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { interval: LONG, ..http(server.address) };
    let with = |check: &HealthCheck| vec![target("web", server.address, &[("up", check)])];
    let (before, after) = (with(&check), with(&HealthCheck { fall: 9, ..check.clone() }));
    let mut probing = Probing::start(before);
    server.next().await.answer(200).await;
    assert_eq!(probing.next().await, web(Passing, true, PASSES));
    probing.configure(after);
    let held = server.next().await;
    assert!(probing.is_silent());
    held.answer(404).await;
    let down = "check up: status 404, expected 200 to 299";
    assert_eq!(probing.next().await, web(Failing, false, down));
}

#[tokio::test]
async fn all_checks_of_a_target_must_pass() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { interval: LONG, ..http(server.address) };
    let other = Server::start("127.0.0.1:0").await;
    let both = [("page", &check), ("port", &tcp(other.address))];
    let mut probing = Probing::start(vec![target("web", server.address, &both)]);
    let held = server.next().await;
    assert!(probing.is_silent());
    held.answer(200).await;
    assert_eq!(probing.next().await, web(Passing, true, PASSES));
    let address = other.address;
    drop(other);
    let (_, health, first, reason) = probing.next().await;
    assert_eq!((health, first, &*reason), (Failing, false, "check port: connection refused"));
    let _back = Server::start(&address.to_string()).await;
    assert_eq!(probing.next().await, web(Passing, false, PASSES));
}

#[tokio::test]
async fn a_prober_ends_with_its_configuration_or_its_listener() {
    let (mut one, mut two) = (Probing::start(Vec::new()), Probing::start(Vec::new()));
    drop(one.targets);
    timeout(PATIENCE, &mut one.task).await.expect("goes on").unwrap();
    drop(two.changes);
    timeout(PATIENCE, &mut two.task).await.expect("goes on").unwrap();
}
