//! When changes come, exactly.

use super::*;

/// Answers connection after connection, `.` with 200 and `x` with 503, and writes down after which
/// ones a change came, as `+` and `-`, or `?` where a row has only begun.
pub(super) async fn play(server: &mut Server, probing: &mut Probing, answers: &str) -> String {
    let mut changes = String::new();
    let mut held = server.next().await;
    for answer in answers.chars() {
        held.answer(if answer == '.' { 200 } else { 503 }).await;
        // The next connection comes only when the check before it is over and change.
        held = server.next().await;
        changes.push(match probing.changes.try_recv() {
            Some(change) if change.health == Passing => '+',
            Some(change) if change.undecided.is_some() => '?',
            Some(_) => '-',
            None => ' ',
        });
        assert!(probing.is_silent());
    }
    drop(held);
    changes
}

#[tokio::test]
async fn changes_come_with_exactly_the_deciding_check() {
    for (answers, changes) in [
        (".xx.xxx.x..xxx", "+     -   +  -"),
        ("xxxx.xxx", "??- +  -"),
        ("xx.xxx", "??+  -"),
        ("..........x.x.xx.xx.xxx", "+                     -"),
    ] {
        let mut server = Server::start("127.0.0.1:0").await;
        let check = http(server.address);
        let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
        assert_eq!(play(&mut server, &mut probing, answers).await, changes, "{answers}");
    }
}

#[tokio::test]
async fn the_first_result_is_told_at_once_and_later_ones_are_not_first() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = http(server.address);
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let down = "check up: status 503, expected 200 to 299";
    server.next().await.answer(503).await;
    assert_eq!(probing.next().await, web(Failing, true, down));
    server.next().await.answer(200).await;
    assert_eq!(probing.next().await, web(Passing, false, PASSES));
    for _ in 0..3 {
        server.next().await.answer(503).await;
    }
    assert_eq!(probing.next().await, web(Failing, false, down));
}

#[tokio::test]
async fn while_it_fails_another_reason_is_told_and_the_same_is_not() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = http(server.address);
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    for status in [500, 500, 503, 503, 500, 200] {
        server.next().await.answer(status).await;
    }
    let failed = |status| format!("check up: status {status}, expected 200 to 299");
    assert_eq!(probing.next().await, web(Failing, true, &failed(500)));
    assert_eq!(probing.next().await, web(Failing, false, &failed(500)), "2 of 3");
    assert_eq!(probing.next().await, web(Failing, false, &failed(503)));
    assert_eq!(probing.next().await, web(Failing, false, &failed(500)));
    assert_eq!(probing.next().await, web(Passing, false, PASSES));
    // Failures that change nothing are told with none of their reasons.
    for status in [500, 503, 200] {
        server.next().await.answer(status).await;
    }
    server.next().await;
    assert!(probing.is_silent());
}

#[tokio::test]
async fn the_deciding_answer_is_told_before_the_next_check() {
    let mut server = Server::start("127.0.0.1:0").await;
    let interval = Duration::from_millis(100);
    let often = HealthCheck { interval, fast_interval: interval, ..http(server.address) };
    let check = HealthCheck { rise: 1, fall: 1, ..often };
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let (mut status, mut late) = (503, 0);
    for _ in 0..21 {
        status = if status == 200 { 503 } else { 200 };
        server.next().await.answer(status).await;
        let (_, health, ..) = probing.next().await;
        assert_eq!(health, if status == 200 { Passing } else { Failing });
        late += usize::from(server.waiting() > 0);
    }
    // A busy machine may hold up a few.
    assert!(late <= 10, "{late} of 21 were told after the next check had begun");
}

#[tokio::test]
async fn no_more_checks_than_there_is_room_for_are_under_way() {
    let mut server = Server::start("0.0.0.0:0").await;
    let mut check = http(server.address);
    check.interval = Duration::from_secs(3600);
    let backend = |last: u8| SocketAddr::new([127, 9, 9, last].into(), server.address.port());
    let targets = (1..=9).map(|last| target("web", backend(last), &[("up", &check)])).collect();
    let mut probing = Probing::with_limits(targets, 3, 1024);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(server.next().await);
    }
    for _ in 0..6 {
        assert_eq!(server.waiting(), 0);
        held.remove(0).answer(200).await;
        probing.next().await;
        held.push(server.next().await);
    }
}

#[tokio::test]
async fn rounds_are_complete_only_while_changes_are_heard() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { rise: 1, fall: 1, ..http(server.address) };
    let mut probing =
        Probing::with_limits(vec![target("web", server.address, &[("up", &check)])], 1024, 1);
    wait_for_beats(&probing.heartbeat, 3).await;
    // One change fills the channel, the next one waits for room in it.
    server.next().await.answer(200).await;
    server.next().await.answer(503).await;
    let waiting = server.next().await;
    let beats = settled_beats(&probing.heartbeat).await;
    assert_eq!(probing.next().await.1, Passing);
    assert_eq!(probing.next().await.1, Failing);
    wait_for_beats(&probing.heartbeat, beats + 3).await;
    drop(waiting);
}

#[tokio::test]
async fn a_prober_without_targets_completes_empty_rounds() {
    let probing = Probing::start(Vec::new());
    wait_for_beats(&probing.heartbeat, 5).await;
}

async fn wait_for_beats(heartbeat: &Heartbeat, beats: u64) {
    let come = async {
        while heartbeat.rounds() < beats {
            tokio::time::sleep(heartbeat.interval()).await;
        }
    };
    timeout(PATIENCE, come).await.expect("no more rounds");
}

/// Waits until no beat has come for twenty intervals; gives their number.
async fn settled_beats(heartbeat: &Heartbeat) -> u64 {
    let settled = async {
        loop {
            let beats = heartbeat.rounds();
            tokio::time::sleep(20 * heartbeat.interval()).await;
            if heartbeat.rounds() == beats {
                return beats;
            }
        }
    };
    timeout(PATIENCE, settled).await.expect("rounds go on")
}
