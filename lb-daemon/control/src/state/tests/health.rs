use Accepts::{All, Nothing, OpenOnly};

use tokio::time::timeout;

use super::*;
use lb_model::{AdminState, MemberState};

const DISABLED: (&str, &str) = (
    "address = \"10.0.0.1\"\n    region = \"eu\"",
    "address = \"10.0.0.1\"\n    region = \"eu\"\n    admin_state = \"disabled\"",
);

#[tokio::test]
async fn a_new_backend_is_pending_until_its_checks_pass() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "not checked yet");

    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    let status = daemon.backend("web", "10.0.0.1").await;
    assert_eq!((status.state, &*status.reason.text), (MemberState::Up, "all checks pass"));
    assert_eq!(daemon.state("web", "10.0.0.2"), Nothing);

    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    let down = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(
        (down.state, &*down.reason.text),
        (MemberState::Unreachable, "check tcp: timed out")
    );
    assert!(down.since >= status.since);

    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: no route to host").await;
    let still = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(still.reason.text, "check tcp: no route to host");
    assert_eq!(still.since, down.since, "another reason is no other state");
}

#[tokio::test]
async fn a_backend_that_fails_is_unhealthy_and_one_that_never_passed_is_pending() {
    let mut daemon = Daemon::new();
    let refused = "check tcp: connection refused";
    daemon.apply(&web("slots = 31", "slots = 31\n    hold_down = \"0s\"")).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Failing, refused).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    let reason = daemon.backend("web", "10.0.0.1").await.reason.text;
    assert_eq!(reason, "check tcp: connection refused (gets no connections until it passes)");

    let steps = [
        (Passing, "all checks pass", MemberState::Up, All),
        (Failing, refused, MemberState::Unhealthy, OpenOnly),
        (Silent, "check tcp: timed out", MemberState::Unreachable, Nothing),
        (Failing, refused, MemberState::Unhealthy, OpenOnly),
        (Passing, "all checks pass", MemberState::Up, All),
        (Silent, "check tcp: timed out", MemberState::Unreachable, Nothing),
        (Passing, "all checks pass", MemberState::Up, All),
        (Failing, refused, MemberState::Unhealthy, OpenOnly),
    ];
    for (health, reason, state, accepts) in steps {
        daemon.report_health("web", "10.0.0.1", health, reason).await;
        assert_eq!(daemon.state("web", "10.0.0.1"), accepts);
        let status = daemon.backend("web", "10.0.0.1").await;
        assert_eq!((status.state, &*status.reason.text), (state, reason));
    }

    // The state in the packet path stays, and shows that there may be connections.
    daemon.restart().await;
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    daemon.report_health("web", "10.0.0.1", Failing, refused).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    daemon.restart().await;
    daemon.report_health("web", "10.0.0.1", Failing, refused).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing, "its connections have moved");
}

#[tokio::test]
async fn an_incomplete_row_of_failures_changes_only_the_reason() {
    let mut daemon = Daemon::new();
    let refused = "check tcp: connection refused";
    daemon.apply(WEB).await.unwrap();
    // A backend that never passed takes nothing anyway, so the reason is shown immediately.
    daemon.report_first_failure("web", "10.0.0.1", 1, refused).await;
    let status = daemon.backend("web", "10.0.0.1").await;
    let reason = format!("{refused} (gets no connections until it passes)");
    assert_eq!((status.state, status.reason.text), (MemberState::Pending, reason));

    for (health, state) in [(Passing, MemberState::Up), (Failing, MemberState::Unhealthy)] {
        daemon.report_health("web", "10.0.0.1", health, "a reason").await;
        // After an edit of the check, and for the first check after a start.
        for _ in 0..2 {
            for failed in [1, 2] {
                daemon.report_first_failure("web", "10.0.0.1", failed, refused).await;
                let status = daemon.backend("web", "10.0.0.1").await;
                let reason = format!("{refused} (failure {failed} of 3)");
                assert_eq!((status.state, status.reason.text), (state, reason));
                assert_eq!(daemon.state("web", "10.0.0.1"), state.accepts());
            }
            daemon.restart().await;
        }
    }
}

/// Backends that take nothing wait for their first check; the others can wait for their turn. Of those that are up no check
/// fails.
#[tokio::test]
async fn only_backends_without_connections_are_checked_first() {
    let mut daemon = Daemon::new();
    let those = |daemon: &Daemon, are: fn(&Target) -> bool| {
        let targets = daemon.running.targets.borrow().clone();
        targets.iter().filter(|it| are(it)).map(|it| it.address).collect::<Vec<_>>()
    };
    let urgent = |daemon: &Daemon| those(daemon, |it| it.urgent);
    let up = |daemon: &Daemon| those(daemon, |it| it.is_up);
    daemon.apply(WEB).await.unwrap();
    assert_eq!(urgent(&daemon), [ip("10.0.0.1"), ip("10.0.0.2")]);
    assert_eq!(up(&daemon), [] as [IpAddr; 0]);
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(&WEB.replace("port = 80", "port = 81")).await.unwrap();
    assert_eq!(urgent(&daemon), [ip("10.0.0.2")]);
    daemon.restart().await;
    assert_eq!(up(&daemon), [ip("10.0.0.1")]);
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    daemon.restart().await;
    assert_eq!((urgent(&daemon), up(&daemon)), (vec![ip("10.0.0.2")], vec![]));
}

#[tokio::test]
async fn a_drained_backend_whose_check_fails_keeps_its_connections() {
    let daemon = Daemon::new();
    daemon.apply(&drained()).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    let status = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(
        (status.state, &*status.reason.text),
        (MemberState::Draining, "check tcp: connection refused")
    );
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly, "undrained, its check still fails");
}

#[tokio::test]
async fn an_address_has_a_state_in_each_pool() {
    let daemon = Daemon::new();
    let other = WEB.split("[[pool]]").nth(1).unwrap().split("[[service]]").next().unwrap();
    let text = format!("{WEB}\n[[pool]]{}", other.replace("\"web\"", "\"other\""));
    daemon.apply(&text).await.unwrap();
    daemon.report_health("other", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("other", "10.0.0.1"), All);
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
}

#[tokio::test]
async fn unrelated_changes_keep_states() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let before = daemon.backend("web", "10.0.0.1").await;
    daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap();
    daemon.apply(&web("tcp = {}", "http = {}")).await.unwrap();
    assert_eq!(daemon.backend("web", "10.0.0.1").await, before);
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
}

#[tokio::test]
async fn a_disabled_backend_takes_nothing() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(&web(DISABLED.0, DISABLED.1)).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    let status = daemon.backend("web", "10.0.0.1").await;
    assert_eq!((&*status.reason.text, status.admin_state), ("disabled", AdminState::Disabled));
    assert_eq!(status.state, MemberState::Disabled);
    // The result of a check that was under way.
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "disabled");

    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "not checked yet");
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing, "its connections have moved");
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
}

#[tokio::test]
async fn an_active_backend_without_checks_is_up() {
    let daemon = Daemon::new();
    let unchecked = web("health_checks = [\"tcp\"]", "");
    daemon.apply(&unchecked).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "no checks");

    // A backend that is up stays up until the new checks decide.
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "not checked yet");
    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);

    daemon.apply(&unchecked).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
    daemon.apply(&unchecked.replace(DISABLED.0, DISABLED.1)).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
}

#[tokio::test]
async fn a_backend_that_was_removed_comes_back_as_a_new_one() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(&web("10.0.0.1", "10.0.0.3")).await.unwrap();
    // The result of a check that was under way.
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "not checked yet");
}

/// [`WEB`] with its first backend drained.
fn drained() -> String {
    web(DISABLED.0, &DISABLED.1.replace("disabled", "drain"))
}

#[tokio::test]
async fn a_drained_backend_keeps_its_connections_while_it_is_reachable() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let up = daemon.backend("web", "10.0.0.1").await;
    daemon.apply(&drained()).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    let status = daemon.backend("web", "10.0.0.1").await;
    assert_eq!((status.state, &*status.reason.text), (MemberState::Draining, "drained"));
    assert_eq!((up.admin_state, status.admin_state), (AdminState::Active, AdminState::Drain));
    assert_eq!(up.state, MemberState::Up);
    assert!(status.since >= up.since);
    assert_eq!(daemon.running.targets.borrow().len(), 2, "it is still asked");

    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.backend("web", "10.0.0.1").await, status, "that is no news");
    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    let unreachable = daemon.backend("web", "10.0.0.1").await;
    assert_eq!(
        (unreachable.state, &*unreachable.reason.text),
        (MemberState::Unreachable, "check tcp: timed out"),
        "its connections move, whatever the operator asked for"
    );
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);

    daemon.restart().await;
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "drained");

    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), All, "its checks pass");
    assert_eq!(daemon.backend("web", "10.0.0.1").await.reason.text, "all checks pass");
}

#[tokio::test]
async fn a_drain_that_the_packet_path_missed_is_written_at_the_start() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(&drained()).await.unwrap();
    // The daemon was killed between disk and maps, so the maps still have the backend up.
    let key = (name("web"), ip("10.0.0.1"));
    let missed =
        |path: &FakePacketPath| assert_eq!(path.content().states.insert(key, All), Some(OpenOnly));
    daemon.restart_after(missed).await;
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
}

#[tokio::test]
async fn a_drained_backend_without_checks_returns_immediately() {
    let daemon = Daemon::new();
    let unchecked = |text: &str| text.replace("health_checks = [\"tcp\"]", "");
    daemon.apply(&unchecked(WEB)).await.unwrap();
    daemon.apply(&unchecked(&drained())).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    assert_eq!(daemon.state("web", "10.0.0.2"), All);
    daemon.apply(&unchecked(WEB)).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
}

#[tokio::test]
async fn the_last_changes_are_kept_with_their_reasons() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let history = async |address: Option<&str>| {
        let histories = daemon.running.commands.history("web".into(), address.map(Into::into));
        let announced = histories.await.unwrap().unwrap();
        let of = |each: &crate::command::BackendHistory| -> Vec<_> {
            each.changes.iter().map(|c| (c.state, c.reason.text.to_string())).collect()
        };
        announced.iter().map(|each| (each.address.to_string(), of(each))).collect::<Vec<_>>()
    };
    let change = |state, reason: &str| (state, reason.to_owned());
    let (one, two) = ("10.0.0.1", "10.0.0.2");
    assert_eq!(
        history(None).await,
        [one, two]
            .map(|each| (each.to_owned(), vec![change(MemberState::Pending, "not checked yet")]))
    );
    // The first result explains why it is pending. Later reasons are no change of state.
    daemon.report_health("web", one, Failing, "check tcp: timed out").await;
    daemon.report_health("web", one, Failing, "check tcp: connection refused").await;
    daemon.report_health("web", one, Passing, "all checks pass").await;
    daemon.report_health("web", one, Failing, "check tcp: connection refused").await;
    daemon.report_health("web", one, Failing, "check tcp: timed out").await;
    let expected = vec![
        change(MemberState::Unhealthy, "check tcp: connection refused"),
        change(MemberState::Up, "all checks pass"),
        change(MemberState::Pending, "check tcp: timed out (gets no connections until it passes)"),
    ];
    assert_eq!(history(Some(one)).await, [(one.to_owned(), expected)]);
    // They survive a configuration that keeps the backend; at most 16 are kept.
    daemon.apply(&drained()).await.unwrap();
    for _ in 0..20 {
        daemon.report_health("web", one, Passing, "all checks pass").await;
        daemon.report_health("web", one, Silent, "check tcp: timed out").await;
    }
    let [(_, changes)] = &history(Some(one)).await[..] else { panic!("it is one") };
    let turns = [
        change(MemberState::Unreachable, "check tcp: timed out"),
        change(MemberState::Draining, "drained"),
    ];
    assert_eq!(*changes, turns.into_iter().cycle().take(16).collect::<Vec<_>>());

    let refused = async |pool: &str, address: &str| {
        let histories = daemon.running.commands.history(pool.into(), Some(address.into()));
        histories.await.unwrap().unwrap_err().to_string()
    };
    assert_eq!(refused("none", one).await, "pool \"none\" does not exist");
    for address in ["10.0.0.9", "x"] {
        let expected = format!("pool \"web\" has no backend {address:?}");
        assert_eq!(refused("web", address).await, expected);
    }
}

/// Whatever holds up an apply holds up neither health nor an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stalled_apply_holds_up_neither_health_nor_answers() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: request(&web("31", "37")), ..Apply::default() };
    let applying = tokio::spawn(async move { commands.apply(apply, None).await });
    let stall = stall.begun().await;

    daemon.report_health("web", "10.0.0.1", Silent, "check tcp: timed out").await;
    // The loops have threads here.
    let written = async {
        while daemon.state("web", "10.0.0.1") != Nothing
            || daemon.backend("web", "10.0.0.1").await.state != MemberState::Unreachable
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(120), written).await.unwrap();
    assert_eq!(daemon.status().await.generation, 1);

    drop(stall);
    assert_eq!(applying.await.unwrap().unwrap().unwrap().generation, 2);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.state, MemberState::Unreachable);
}

#[tokio::test]
async fn of_changes_that_come_together_failures_are_written_first() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    let before = daemon.path.content().state_writes.len();
    let change = |address, health| change("web", address, health, "together");
    let together = [
        change("10.0.0.2", Passing),
        change("10.0.0.1", Silent),
        // Only the last state of several counts.
        change("10.0.0.1", Passing),
        change("10.0.0.1", Failing),
    ];
    for change in together {
        // There is room, so the loops do not run meanwhile.
        daemon.running.health.send(change).await.unwrap();
    }
    daemon.heard().await;
    let written: Vec<_> = daemon.path.content().state_writes[before..]
        .iter()
        .map(|(_, address, state)| (address.to_string(), *state))
        .collect();
    assert_eq!(written, [("10.0.0.1".into(), OpenOnly), ("10.0.0.2".into(), All)]);
}

#[tokio::test]
async fn only_what_packets_see_counts_as_published() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let at = || daemon.running.counters.last_at.get();
    daemon.report_health("web", "10.0.0.1", Failing, "check tcp: connection refused").await;
    assert_eq!(at(), 0.0, "it stays pending, for another reason");
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert!(at() > 0.0);
}
