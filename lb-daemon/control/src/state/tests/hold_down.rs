//! Backends that go down again soon after they came back.

use Accepts::{All, Nothing, OpenOnly};

use super::{next_hops::hop, *};
use lb_model::MemberState::{self, HeldDown, Unhealthy, Unreachable, Up};
use lb_net::Unresolved;

const ONE: &str = "10.0.0.1";
const REFUSED: &str = "check tcp: connection refused";

/// [`WEB`] with holds of 10, 20, 40 and then 60 seconds.
fn held(more: &str) -> String {
    web("slots = 31", &format!("slots = 31\n    max_hold_down = \"60s\"\n    {more}"))
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_millis(seconds * 1000 + 10)).await;
}

impl Daemon {
    /// The first backend has been up, fails, and is back.
    async fn returned(text: &str) -> Self {
        let daemon = Self::new();
        daemon.apply(text).await.unwrap();
        daemon.report_health("web", ONE, Passing, "all checks pass").await;
        daemon.flap().await;
        assert_eq!(daemon.backend("web", ONE).await.state, Up, "the first return is not held");
        daemon
    }

    async fn flap(&self) {
        self.report_health("web", ONE, Failing, REFUSED).await;
        assert_eq!(self.backend("web", ONE).await.state, Unhealthy);
        self.report_health("web", ONE, Passing, "all checks pass").await;
    }

    /// State, what it accepts, and how long it is still held, in seconds.
    async fn first(&self) -> (MemberState, Accepts, Option<u64>) {
        let status = self.backend("web", ONE).await;
        let left = status.hold_left.map(|left| left.as_millis().div_ceil(1000) as u64);
        (status.state, self.state("web", ONE), left)
    }
}

#[tokio::test(start_paused = true)]
async fn a_flapping_backend_is_held_down_longer_each_time() {
    let daemon = Daemon::returned(&held("")).await;
    for (nth, hold) in [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60)] {
        daemon.flap().await;
        assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(hold)));
        let row = if nth == 1 { String::new() } else { format!(", {nth} times in a row") };
        let reason =
            |left| format!("held down for {left} s more: went down within 60 s of its return{row}");
        assert_eq!(daemon.backend("web", ONE).await.reason.text, reason(hold));
        assert_eq!(daemon.running.counters.hold_downs.get(), nth);
        seconds(hold - 2).await;
        assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(2)));
        assert_eq!(daemon.backend("web", ONE).await.reason.text, reason(2));
        // The loop looks once a second.
        seconds(3).await;
        assert_eq!(daemon.first().await, (Up, All, None));
        assert_eq!(daemon.backend("web", ONE).await.reason.text, "all checks pass");
    }
    // After a minute without a failure it starts afresh.
    seconds(61).await;
    daemon.flap().await;
    assert_eq!(daemon.first().await, (Up, All, None));
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_in_the_history_and_begins_a_slow_start_at_its_end() {
    let daemon = Daemon::returned(&held("slow_start = \"60s\"")).await;
    daemon.report_health("web", "10.0.0.2", Passing, "all checks pass").await;
    seconds(50).await;
    daemon.flap().await;
    seconds(11).await;
    let ramp = daemon.path.content().ramps.get(&(name("web"), ip(ONE))).copied();
    assert!(ramp.is_some_and(|ramp| ramp < 30), "a twentieth of 255 and one second: {ramp:?}");
    let histories = daemon.running.commands.history("web".into(), Some(ONE.into())).await.unwrap();
    let changes = &histories.unwrap()[0].changes;
    let newest: Vec<_> = changes.iter().take(3).map(|it| (it.state, &*it.reason.text)).collect();
    let held = "held down for 10 s: went down within 60 s of its return";
    assert_eq!(newest, [(Up, "all checks pass"), (HeldDown, held), (Unhealthy, REFUSED)]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_a_hold_and_counts() {
    let daemon = Daemon::returned(&held("")).await;
    daemon.flap().await;
    seconds(5).await;
    daemon.report_health("web", ONE, Silent, "check tcp: timed out").await;
    assert_eq!(daemon.first().await, (Unreachable, Nothing, None));
    seconds(30).await;
    assert_eq!(daemon.first().await, (Unreachable, Nothing, None), "no hold brings it up");
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(20)));
    // A result that is no news does not prolong it.
    seconds(10).await;
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(10)));
}

#[tokio::test(start_paused = true)]
async fn a_held_backend_is_not_healthy_but_a_last_resort() {
    let daemon = Daemon::returned(&held("panic_threshold_percent = 60")).await;
    daemon.report_health("web", "10.0.0.2", Passing, "all checks pass").await;
    let is_last_resort = || daemon.path.content().last_resorts.contains(&(name("web"), ip(ONE)));
    assert!(!is_last_resort());
    daemon.flap().await;
    assert!(is_last_resort(), "one of two is healthy");
    seconds(11).await;
    assert!(!is_last_resort());
}

#[tokio::test(start_paused = true)]
async fn the_operator_can_end_a_hold() {
    let first = "address = \"10.0.0.1\"";
    let text = held("");
    for admin_state in ["drain", "disabled"] {
        let daemon = Daemon::returned(&text).await;
        daemon.flap().await;
        let other = text.replace(first, &format!("{first}\nadmin_state = \"{admin_state}\""));
        daemon.apply(&other).await.unwrap();
        assert_eq!(daemon.first().await.2, None, "{admin_state}");
        daemon.apply(&text).await.unwrap();
        if admin_state == "disabled" {
            // It comes back as a new one.
            daemon.report_health("web", ONE, Passing, "all checks pass").await;
        }
        assert_eq!(daemon.first().await, (Up, All, None), "{admin_state}");
        daemon.flap().await;
        assert_eq!(daemon.first().await, (Up, All, None), "its failures are forgotten");
    }
    for (from, to) in [
        ("max_hold_down = \"60s\"", "max_hold_down = \"50s\""),
        ("slots", "hold_down = \"0s\"\nslots"),
    ] {
        let daemon = Daemon::returned(&text).await;
        daemon.flap().await;
        daemon.apply(&text.replace("slots = 31", "slots = 37")).await.unwrap();
        assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(10)), "an unrelated change");
        daemon.apply(&text.replacen(from, to, 1)).await.unwrap();
        assert_eq!(daemon.first().await, (Up, All, None), "{to}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_by_its_agent_does_not_end_a_hold() {
    let daemon = Daemon::returned(&held("")).await;
    daemon.flap().await;
    let drain = AgentReport { drain: Some("check load: maint".into()), ..AgentReport::default() };
    daemon.report_agent("web", ONE, drain).await;
    assert_eq!(daemon.first().await, (MemberState::Draining, OpenOnly, None));
    daemon.report_agent("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(10)));
}

#[tokio::test(start_paused = true)]
async fn without_hold_down_each_return_is_immediate() {
    let daemon = Daemon::returned(&web("slots = 31", "slots = 31\n hold_down = \"0s\"")).await;
    for _ in 0..5 {
        daemon.flap().await;
        assert_eq!(daemon.first().await, (Up, All, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_continues_a_hold_and_its_row() {
    let mut daemon = Daemon::returned(&held("")).await;
    daemon.flap().await;
    daemon.flap().await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(20)));
    daemon.restart_keeping_hold_downs(Duration::from_secs(5)).await;
    // It is held from the start on, before any check, and said to be so.
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(14)));
    let reason = "held down for 14 s more: went down within 60 s of its return, 2 times in a row";
    assert_eq!(daemon.backend("web", ONE).await.reason.text, reason);
    let histories = daemon.running.commands.history("web".into(), Some(ONE.into())).await.unwrap();
    let changes = &histories.unwrap()[0].changes;
    assert_eq!(changes.iter().map(|it| it.state).collect::<Vec<_>>(), [HeldDown]);
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(14)));
    seconds(13).await;
    assert_eq!(daemon.first().await.0, HeldDown);
    seconds(2).await;
    assert_eq!(daemon.first().await, (Up, All, None));
    // The next daemon knows that it has come back a moment ago, and how often before.
    daemon.restart_keeping_hold_downs(Duration::from_secs(1)).await;
    assert_eq!(daemon.first().await, (Up, All, None));
    daemon.flap().await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(40)));
    // While it is down, and while its host is gone.
    for (health, hold) in [(Failing, 60), (Silent, 60)] {
        daemon.report_health("web", ONE, health, REFUSED).await;
        daemon.restart_keeping_hold_downs(Duration::from_secs(1)).await;
        assert_eq!(daemon.backend("web", ONE).await.hold_left, None);
        daemon.report_health("web", ONE, health, REFUSED).await;
        daemon.report_health("web", ONE, Passing, "all checks pass").await;
        assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(hold)), "{health:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_from_before_a_restart_does_not_end_before_a_check_has_passed() {
    let mut daemon = Daemon::returned(&held("")).await;
    daemon.flap().await;
    daemon.restart_keeping_hold_downs(Duration::ZERO).await;
    seconds(20).await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(0)));
    daemon.report_first_failure("web", ONE, 1, REFUSED).await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(0)));
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (Up, All, None));
    // One that was over when the daemon started is no hold: its first success brings it up.
    daemon.flap().await;
    assert_eq!(daemon.first().await.2, Some(20));
    daemon.restart_keeping_hold_downs(Duration::from_secs(25)).await;
    assert_eq!(daemon.first().await, (Unhealthy, OpenOnly, None));
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (Up, All, None));
    daemon.flap().await;
    assert_eq!(daemon.first().await.2, Some(40), "the row goes on");
}

#[tokio::test(start_paused = true)]
async fn a_long_gap_other_times_and_a_disabled_backend_end_a_hold() {
    let text = held("");
    let mut daemon = Daemon::returned(&text).await;
    daemon.flap().await;
    daemon.restart_keeping_hold_downs(Duration::from_secs(61)).await;
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (Up, All, None), "what it did meanwhile is not known");
    daemon.flap().await;
    daemon.flap().await;
    daemon.flap().await;
    assert!(daemon.first().await.2.is_some());
    let first = "address = \"10.0.0.1\"";
    let disabled = text.replace(first, &format!("{first}\nadmin_state = \"disabled\""));
    daemon.apply(&disabled).await.unwrap();
    daemon.restart_keeping_hold_downs(Duration::ZERO).await;
    daemon.apply(&text).await.unwrap();
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (Up, All, None));
}

/// A new backend that fails its checks has no connections before it passes, however often the daemon restarts.
#[tokio::test(start_paused = true)]
async fn a_backend_that_never_passed_stays_without_connections_over_restarts() {
    let mut daemon = Daemon::new();
    daemon.apply(&held("")).await.unwrap();
    for health in [Failing, Silent, Failing] {
        daemon.report_health("web", ONE, health, REFUSED).await;
        daemon.restart_keeping_hold_downs(Duration::ZERO).await;
        assert_eq!(daemon.first().await, (MemberState::Pending, Nothing, None));
        daemon.report_health("web", ONE, health, REFUSED).await;
        assert_eq!(daemon.first().await.1, Nothing);
    }
    daemon.report_health("web", ONE, Passing, "all checks pass").await;
    assert_eq!(daemon.first().await, (Up, All, None));
}

pub(super) fn silent(gateway: &str) -> Unresolved {
    Unresolved::Silent { gateway: ip(gateway), interface: "eth0".into() }
}

impl Daemon {
    /// The first backend's host goes silent.
    async fn lose(&self) {
        self.report_health("web", ONE, Silent, "check tcp: network is unreachable").await;
        assert_eq!(self.backend("web", ONE).await.state, Unreachable);
    }

    async fn recover(&self) {
        self.report_health("web", ONE, Passing, "all checks pass").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_while_this_host_has_no_next_hop_does_not_count() {
    let daemon = Daemon::returned(&held("")).await;
    for lost in [
        Unresolved::NoRoute,
        Unresolved::Gone(7),
        Unresolved::Down("eth0".into()),
        Unresolved::NoCarrier("eth0".into()),
        silent("10.0.0.254"),
    ] {
        daemon.resolve(ONE, Ok(hop(1))).await;
        daemon.resolve(ONE, Err(lost.clone())).await;
        daemon.lose().await;
        // More than a row of failures.
        seconds(20).await;
        daemon.resolve(ONE, Ok(hop(1))).await;
        daemon.recover().await;
        assert_eq!(daemon.first().await, (Up, All, None), "{lost}");
        seconds(1).await;
    }
    assert_eq!(daemon.running.counters.hold_downs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn failures_around_the_loss_of_a_next_hop_do_not_count_and_later_ones_do() {
    let daemon = Daemon::returned(&held("")).await;
    daemon.resolve(ONE, Ok(hop(1))).await;
    // The check is faster than the news of the interface.
    daemon.lose().await;
    daemon.resolve(ONE, Err(Unresolved::NoRoute)).await;
    daemon.resolve(ONE, Ok(hop(1))).await;
    daemon.recover().await;
    assert_eq!(daemon.first().await, (Up, All, None));
    // The row of failures ends after the next hop is back.
    daemon.resolve(ONE, Err(Unresolved::NoRoute)).await;
    daemon.resolve(ONE, Ok(hop(1))).await;
    seconds(2).await;
    daemon.lose().await;
    daemon.recover().await;
    assert_eq!(daemon.first().await, (Up, All, None));
    seconds(30).await;
    daemon.flap().await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(10)), "its own failure");
    // The hold for that goes on, and no longer.
    seconds(4).await;
    daemon.resolve(ONE, Err(Unresolved::NoRoute)).await;
    daemon.lose().await;
    daemon.resolve(ONE, Ok(hop(1))).await;
    daemon.recover().await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(6)));
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_does_not_answer_on_its_own_link_is_held_down() {
    let daemon = Daemon::returned(&held("")).await;
    daemon.resolve(ONE, Ok(NextHop { gateway: ip(ONE), ..hop(1) })).await;
    daemon.resolve(ONE, Err(silent(ONE))).await;
    daemon.lose().await;
    daemon.resolve(ONE, Ok(NextHop { gateway: ip(ONE), ..hop(1) })).await;
    daemon.recover().await;
    assert_eq!(daemon.first().await, (HeldDown, OpenOnly, Some(10)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_drain_forgets_failures_also_without_a_next_hop() {
    let text = held("");
    let daemon = Daemon::returned(&text).await;
    daemon.flap().await;
    daemon.flap().await;
    daemon.resolve(ONE, Err(Unresolved::NoRoute)).await;
    daemon.lose().await;
    let first = "address = \"10.0.0.1\"";
    let drained = text.replace(first, &format!("{first}\nadmin_state = \"drain\""));
    daemon.apply(&drained).await.unwrap();
    daemon.apply(&text).await.unwrap();
    daemon.recover().await;
    assert_eq!(daemon.first().await, (Up, All, None));
}
