//! What backends say of themselves.

use std::time::Duration;

use super::*;
use lb_health::Utilisation;

const ONE: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";

fn drain(why: &str) -> AgentReport {
    AgentReport { drain: Some(why.into()), ..AgentReport::default() }
}

fn percent(percent: u8) -> AgentReport {
    AgentReport { percent: Some(percent), ..AgentReport::default() }
}

fn utilised(share: f64) -> AgentReport {
    AgentReport { utilisation: Utilisation::new(share), ..AgentReport::default() }
}

impl Daemon {
    /// One whose two backends are up.
    async fn up() -> Self {
        let daemon = Self::new();
        daemon.apply(WEB).await.unwrap();
        daemon.say("web", ONE, AgentReport::default()).await;
        daemon.say("web", OTHER, AgentReport::default()).await;
        daemon
    }

    fn ramp(&self, address: &str) -> Option<u8> {
        self.path.content().ramps.get(&(name("web"), ip(address))).copied()
    }
}

/// Lets so many looks of the daemon go by.
async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_millis(seconds * 1000 + 10)).await;
}

#[tokio::test]
async fn who_says_so_is_drained_until_it_takes_that_back() {
    let daemon = Daemon::up().await;
    daemon.say("web", ONE, drain("check load: the backend says maint (update)")).await;
    assert_eq!(daemon.state("web", ONE), Accepts::OpenOnly);
    let status = daemon.backend("web", ONE).await;
    assert_eq!(status.reason, "drained: check load: the backend says maint (update)");
    assert_eq!(status.share, 0.0);
    assert_eq!(daemon.backend("web", OTHER).await.share, 1.0);
    daemon.say("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.state("web", ONE), Accepts::All);
    let histories = daemon.running.commands.history("web".into(), Some(ONE.into())).await.unwrap();
    let changes = &histories.unwrap()[0].changes;
    let reasons: Vec<_> = changes.iter().map(|change| &*change.reason).collect();
    assert_eq!(
        reasons,
        [
            "all checks pass",
            "drained: check load: the backend says maint (update)",
            "all checks pass",
            "not checked yet",
        ]
    );
}

#[tokio::test]
async fn the_operators_wish_stays_when_it_takes_back_its_own() {
    let daemon = Daemon::up().await;
    let first = "address = \"10.0.0.1\"";
    let drained = web(first, &format!("{first}\nwanted = \"drain\""));
    daemon.say("web", ONE, drain("check load: the backend says drain")).await;
    daemon.apply(&drained).await.unwrap();
    assert_eq!(daemon.backend("web", ONE).await.reason, "drained");
    daemon.say("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.state("web", ONE), Accepts::OpenOnly);
    daemon.say("web", ONE, drain("check load: the backend says drain")).await;
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", ONE), Accepts::OpenOnly, "and the other way round");
    let disabled = web(first, &format!("{first}\nwanted = \"disabled\""));
    daemon.apply(&disabled).await.unwrap();
    assert_eq!(daemon.state("web", ONE), Accepts::Nothing);
    // What it said before counts no more when it comes back.
    daemon.apply(WEB).await.unwrap();
    daemon.say("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.state("web", ONE), Accepts::All);
}

#[tokio::test]
async fn who_drains_itself_is_no_last_resort() {
    let daemon = Daemon::new();
    let panics = web("slots = 31", "slots = 31\n    panic_threshold_percent = 60");
    daemon.apply(&panics).await.unwrap();
    daemon.say("web", ONE, AgentReport::default()).await;
    daemon.say("web", OTHER, AgentReport::default()).await;
    daemon.judge("web", OTHER, Failing, "check tcp: timed out").await;
    assert!(daemon.path.content().last_resorts.contains(&(name("web"), ip(OTHER))));
    daemon.say("web", ONE, drain("check load: the backend says drain")).await;
    assert!(!daemon.path.content().last_resorts.contains(&(name("web"), ip(ONE))));
}

#[tokio::test(start_paused = true)]
async fn its_own_share_is_told_within_a_second_and_forgotten_when_it_does_not_say_it() {
    let daemon = Daemon::up().await;
    daemon.say("web", ONE, percent(70)).await;
    seconds(1).await;
    assert_eq!((daemon.ramp(ONE), daemon.ramp(OTHER)), (Some(179), Some(255)), "0.7 of 255");
    let status = daemon.backend("web", ONE).await;
    assert_eq!((status.share * 255.0, status.report), (179.0, percent(70)));
    daemon
        .say(
            "web",
            ONE,
            AgentReport { report_error: Some("nothing".into()), ..AgentReport::default() },
        )
        .await;
    seconds(1).await;
    assert_eq!((daemon.ramp(ONE), daemon.ramp(OTHER)), (Some(255), Some(255)));
    // A daemon that starts knows nothing of it until the first word.
    let mut daemon = daemon;
    daemon.say("web", ONE, percent(70)).await;
    seconds(1).await;
    daemon.restart().await;
    seconds(1).await;
    assert_eq!(daemon.ramp(ONE), Some(255));
    daemon.say("web", ONE, percent(70)).await;
    seconds(1).await;
    assert_eq!(daemon.ramp(ONE), Some(179));
}

#[tokio::test(start_paused = true)]
async fn shares_follow_utilisation_second_by_second() {
    let daemon = Daemon::up().await;
    daemon.say("web", ONE, utilised(0.8)).await;
    daemon.say("web", OTHER, utilised(0.2)).await;
    seconds(1).await;
    let first = daemon.ramp(ONE).unwrap();
    seconds(10).await;
    let later = daemon.ramp(ONE).unwrap();
    assert!(later < first && daemon.ramp(OTHER) == Some(255), "{first} {later}");
    // Four to one: exp(-0.1 ln 4) a second, give or take the second that the first look is off.
    assert!((50..80).contains(&later), "{later}");
    // Even: it stays as it is, also over another configuration.
    daemon.say("web", ONE, utilised(0.4)).await;
    daemon.say("web", OTHER, utilised(0.4)).await;
    seconds(1).await;
    let even = daemon.ramp(ONE);
    daemon.apply(&web("tcp = {}", "tcp = {}\n    rise = 5")).await.unwrap();
    seconds(20).await;
    assert_eq!(daemon.ramp(ONE), even);
    // Nobody says anything any more: all alike.
    daemon.say("web", ONE, AgentReport::default()).await;
    daemon.say("web", OTHER, AgentReport::default()).await;
    seconds(1).await;
    assert_eq!((daemon.ramp(ONE), daemon.ramp(OTHER)), (Some(255), Some(255)));
}
