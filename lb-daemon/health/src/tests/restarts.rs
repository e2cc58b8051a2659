//! A prober that continues the streaks of the one before it.

use std::time::Instant;

use super::{rounds::play, *};
use crate::SavedStreak;

fn check(server: SocketAddr, rise: u32) -> HealthCheck {
    HealthCheck { rise, ..http(server) }
}

fn not_urgent(server: &Server, check: &HealthCheck) -> Vec<Target> {
    vec![Target { urgent: false, ..target("web", server.address, &[("up", check)]) }]
}

/// The same prober as if it had been restarted after `before`: what is told of each answer `after`.
async fn restarted(rise: u32, before: &str, after: &str) -> String {
    let mut server = Server::start("127.0.0.1:0").await;
    let targets = not_urgent(&server, &check(server.address, rise));
    let mut probing = Probing::start(targets.clone());
    play(&mut server, &mut probing, before).await;
    let saved = end(probing).await;
    let mut probing = restart(targets, saved, Instant::now());
    // The check that was under way is given up.
    while server.waiting() > 0 {
        drop(server.next().await);
    }
    play(&mut server, &mut probing, after).await
}

/// Ends a prober, and gives what the next one finds in the file.
async fn end(probing: Probing) -> Vec<SavedStreak> {
    let saved = probing.streaks.now(usize::MAX).unwrap();
    drop(probing.targets);
    probing.task.await.unwrap();
    serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap()
}

fn restart(targets: Vec<Target>, saved: Vec<SavedStreak>, saved_at: Instant) -> Probing {
    Probing::with_streaks(targets, 1024, 1024, Streaks::restored(saved, saved_at))
}

#[tokio::test]
async fn streaks_go_on_and_the_first_result_is_told() {
    for (rise, before, after, told) in [
        (3, ".xxx..", ".", "+"),
        (3, ".xxx.", "..", "-+"),
        (3, ".xxx", "xx...", "-   +"),
        (3, ".xx", "xxx...", "-    +"),
        (3, ".xx", "..", "+ "),
        (3, "..", "xxx...", "??-  +"),
        (3, "xx", "x", "-"),
        (3, "xx", ".", "+"),
    ] {
        assert_eq!(restarted(rise, before, after).await, told, "{before} then {after}");
    }
}

#[tokio::test]
async fn a_streak_is_forgotten_after_a_long_gap_or_an_edit() {
    let long = Duration::from_secs(61);
    let interval = |seconds| {
        move |check: HealthCheck| HealthCheck { interval: Duration::from_secs(seconds), ..check }
    };
    let path = |check: HealthCheck| {
        let CheckKind::Http(http) = check.kind else { panic!("{check:?}") };
        let http = HttpCheck { path: "/other".to_owned(), ..http };
        HealthCheck { kind: CheckKind::Http(http), ..check }
    };
    let fall = |check| HealthCheck { fall: 5, ..check };
    type Edit<'a> = &'a dyn Fn(HealthCheck) -> HealthCheck;
    // Two of three successes before; what the next success is.
    let cases: [(Duration, Edit<'_>, u32, &str); 7] = [
        (Duration::ZERO, &|check| check, 2, PASSES),
        (Duration::from_secs(50), &|check| check, 1, "check up: passed 2 of 3"),
        (long, &|check| check, 1, PASSES),
        (long, &interval(21), 1, "check up: passed 2 of 3"),
        (long, &interval(20), 1, PASSES),
        // The same question, judged otherwise; and another question.
        (Duration::ZERO, &fall, 1, "check up: passed 2 of 3"),
        (Duration::ZERO, &path, 0, PASSES),
    ];
    for (gap, edit, passed, reason) in cases {
        let mut server = Server::start("127.0.0.1:0").await;
        let before = check(server.address, 3);
        let address = server.address;
        let targets = |check| vec![target("web", address, &[("up", &check)])];
        let mut probing = Probing::start(targets(before.clone()));
        let history = format!(".xxx{}", ".".repeat(passed as usize));
        play(&mut server, &mut probing, &history).await;
        let saved = end(probing).await;
        let saved_at = Instant::now().checked_sub(gap).unwrap();
        let mut probing = restart(targets(edit(before)), saved, saved_at);
        while server.waiting() > 0 {
            drop(server.next().await);
        }
        server.next().await.answer(200).await;
        let health = if reason == PASSES { Passing } else { Failing };
        assert_eq!(probing.next().await, web(health, true, reason), "after {gap:?}");
    }
}

#[tokio::test]
async fn nothing_is_shown_before_the_first_targets_and_then_what_is_in_doubt() {
    let mut server = Server::start("127.0.0.1:0").await;
    let targets = not_urgent(&server, &check(server.address, 3));
    let mut probing = Probing::start(targets.clone());
    play(&mut server, &mut probing, ".xxx..").await;
    let saved = end(probing).await;
    assert_eq!(saved.len(), 1);
    // Before any result it shows what it found, so a daemon that is killed at once loses nothing.
    let mut probing = restart(Vec::new(), saved.clone(), Instant::now());
    assert_eq!(probing.streaks.now(9), None);
    probing.configure(targets);
    let shown = async {
        while probing.streaks.now(9) != Some(saved.clone()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, shown).await.expect("it is not shown");
    assert_eq!(probing.streaks.now(0), Some(Vec::new()));
    // Now it passes, of which nothing needs to be kept.
    assert_eq!(play(&mut server, &mut probing, ".").await, "+");
    assert_eq!(probing.streaks.now(9), Some(Vec::new()));
}

/// The backend came up in the last moment before a kill: a success does not take it out.
#[tokio::test]
async fn a_target_that_is_up_has_no_failing_check() {
    for (is_up, before, after, told) in [
        (true, ".xxx.", ".", "+"),
        (true, ".xxx.", "xxx...", "??-  +"),
        (true, ".xx", "x", "-"),
        (false, ".xxx.", ".", "-"),
    ] {
        let mut server = Server::start("127.0.0.1:0").await;
        let mut targets = not_urgent(&server, &check(server.address, 3));
        let mut probing = Probing::start(targets.clone());
        play(&mut server, &mut probing, before).await;
        let saved = end(probing).await;
        targets[0].is_up = is_up;
        let mut probing = restart(targets, saved, Instant::now());
        while server.waiting() > 0 {
            drop(server.next().await);
        }
        assert_eq!(play(&mut server, &mut probing, after).await, told, "{before} then {after}");
    }
}

/// A new backend comes up with its first success, and so does one that took no packets.
#[tokio::test]
async fn a_probe_that_is_not_found_has_passed_unless_its_target_waits() {
    for (urgent, told) in [(true, "??-+"), (false, "??-  +")] {
        let mut server = Server::start("127.0.0.1:0").await;
        let targets =
            vec![Target { urgent, ..not_urgent(&server, &check(server.address, 3)).remove(0) }];
        let mut probing = restart(targets, Vec::new(), Instant::now());
        let answers = if urgent { "xxx." } else { "xxx..." };
        assert_eq!(play(&mut server, &mut probing, answers).await, told);
    }
}
