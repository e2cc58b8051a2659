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

/// A row that has begun before an edit is judged by it, whatever was edited but the question.
#[tokio::test]
async fn an_edit_that_asks_the_same_keeps_the_row_that_has_begun() {
    let often = Duration::from_millis(2);
    let edits: [fn(&mut HealthCheck); 6] = [
        |check| check.interval *= 2,
        |check| check.fast_interval *= 2,
        |check| check.timeout *= 2,
        |check| check.rise = 9,
        |check| check.jitter_percent = 50,
        |check| check.fall = 2,
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut server = Server::start("127.0.0.1:0").await;
        let mut check = HealthCheck { interval: often, ..http(server.address) };
        let address = server.address;
        let with = |check: &HealthCheck| vec![target("web", address, &[("up", check)])];
        let mut probing = Probing::start(with(&check));
        server.next().await.answer(200).await;
        assert_eq!(probing.next().await, web(Passing, true, PASSES));
        server.next().await.answer(503).await;
        // The next one comes when the one before is counted; the edit breaks it off.
        let broken_off = server.next().await;
        edit(&mut check);
        probing.configure(with(&check));
        assert_eq!(probing.next().await, web(Passing, false, PASSES), "told again");
        drop(broken_off);
        for failed in 1..check.fall {
            let held = server.next().await;
            assert!(probing.is_silent(), "edit {number}: {failed} failures suffice");
            held.answer(503).await;
        }
        let down = "check up: status 503, expected 200 to 299";
        assert_eq!(probing.next().await, web(Failing, false, down));
    }
}

/// An edit that does not change how often puts off no check, and a shorter interval is kept at once.
#[tokio::test]
async fn an_edit_does_not_ask_at_once_and_puts_no_check_off() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { interval: LONG, fast_interval: LONG, ..http(server.address) };
    let address = server.address;
    let with = |check: &HealthCheck| vec![target("web", address, &[("up", check)])];
    let mut probing = Probing::start(with(&check));
    server.next().await.answer(200).await;
    assert_eq!(probing.next().await, web(Passing, true, PASSES));
    for fall in 4..20 {
        probing.configure(with(&HealthCheck { fall, ..check.clone() }));
        assert_eq!(probing.next().await, web(Passing, false, PASSES));
    }
    assert_eq!(server.waiting(), 0);
    let short = Duration::from_millis(5);
    probing.configure(with(&HealthCheck { interval: short, ..check.clone() }));
    server.next().await.answer(200).await;
}

/// One that the packet path has up waits for its place in the interval, one that takes nothing does not.
#[tokio::test]
async fn at_a_start_only_those_that_take_nothing_are_asked_at_once() {
    let mut server = Server::start("0.0.0.0:0").await;
    let check = HealthCheck { interval: LONG, ..http(server.address) };
    let backend = |last: u8, urgent| {
        let address = SocketAddr::new([127, 9, 9, last].into(), server.address.port());
        Target { urgent, ..target("web", address, &[("up", &check)]) }
    };
    let targets = (1..=100).map(|last| backend(last, last == 7)).collect();
    let mut probing = Probing::start(targets);
    server.next().await.answer(200).await;
    let change = timeout(PATIENCE, probing.changes.recv()).await.unwrap().unwrap();
    assert_eq!(change.address.to_string(), "127.9.9.7");
    assert_eq!(server.waiting(), 0);
    assert!(probing.is_silent());
    // A promise that is an hour away is no loop that stands still.
    let beats = probing.heartbeat.rounds();
    while probing.heartbeat.rounds() < beats + 3 {
        tokio::time::sleep(probing.heartbeat.interval()).await;
    }
}

#[tokio::test]
async fn another_question_begins_anew_and_what_was_told_stands_until_its_result() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { interval: LONG, ..http(server.address) };
    let with = |check: &HealthCheck| vec![target("web", server.address, &[("up", check)])];
    let mut other = check.clone();
    let CheckKind::Http(http) = &mut other.kind else { unreachable!() };
    http.path = "/other".to_owned();
    let (before, after) = (with(&check), with(&other));
    let mut probing = Probing::start(before);
    server.next().await.answer(200).await;
    assert_eq!(probing.next().await, web(Passing, true, PASSES));
    probing.configure(after);
    let held = server.next().await;
    assert!(probing.is_silent());
    held.answer(404).await;
    let down = "check up: status 404, expected 200 to 299";
    let change = timeout(PATIENCE, probing.changes.recv()).await.unwrap().unwrap();
    assert_eq!((change.health, change.first, &*change.reason.text), (Failing, false, down));
    assert_eq!(change.undecided.map(|row| (row.failed, row.fall)), Some((1, 3)));
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
