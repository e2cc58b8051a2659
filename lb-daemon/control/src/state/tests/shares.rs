use std::time::Duration;

use super::*;
use lb_health::Utilisation;

const HOSTS: [&str; 3] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];

/// A pool of three backends with a slow start of a minute.
fn slow(check: &str) -> String {
    let host = |host| format!("[[pool.backend]]\naddress = \"{host}\"\nregion = \"eu\"\n");
    let backends: Vec<_> = HOSTS.iter().map(host).collect();
    format!(
        "[[region]]\nname = \"eu\"\n[[health_check]]\nname = \"up\"\nport = 80\ntcp = {{}}\n\
         [[pool]]\nname = \"web\"\nslow_start = \"60s\"\n{check}\n{}",
        backends.concat()
    )
}

const CHECKED: &str = "health_checks = [\"up\"]";

impl Daemon {
    fn ramps(&self) -> [Option<u8>; 3] {
        let content = self.path.content();
        HOSTS.map(|host| content.ramps.get(&(name("web"), ip(host))).copied())
    }

    async fn pass(&self, host: &str) {
        self.report_health("web", host, Passing, "all checks pass").await;
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_millis(seconds * 1000 + 10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_backend_starts_slowly() {
    let daemon = Daemon::new();
    daemon.apply(&slow(CHECKED)).await.unwrap();
    daemon.pass(HOSTS[0]).await;
    daemon.pass(HOSTS[1]).await;
    assert_eq!(daemon.ramps(), [Some(255), Some(255), None], "who begins together shares alike");
    seconds(120).await;
    daemon.pass(HOSTS[2]).await;
    // A twentieth of 255, written before the member was up.
    assert_eq!(daemon.ramps(), [Some(255), Some(255), Some(13)]);
    seconds(30).await;
    assert!(daemon.ramps()[2].is_some_and(|ramp| (125..=132).contains(&ramp)));
    seconds(31).await;
    assert_eq!(daemon.ramps(), [Some(255); 3]);

    // It fails and returns: slow start begins again.
    daemon.report_health("web", HOSTS[2], Failing, "check up: timed out").await;
    seconds(5).await;
    daemon.pass(HOSTS[2]).await;
    assert_eq!(daemon.ramps()[2], Some(13));
    // Without the setting there is no slow start.
    daemon.apply(&slow(CHECKED).replace("slow_start = \"60s\"", "")).await.unwrap();
    assert_eq!(daemon.ramps()[2], Some(255));
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_daemon_is_no_slow_start() {
    let mut daemon = Daemon::new();
    daemon.apply(&slow(CHECKED)).await.unwrap();
    for host in HOSTS {
        daemon.pass(host).await;
    }
    seconds(120).await;
    daemon.report_health("web", HOSTS[2], Silent, "check up: timed out").await;
    daemon.pass(HOSTS[2]).await;
    assert_eq!(daemon.ramps()[2], Some(13));
    daemon.restart().await;
    seconds(1).await;
    assert_eq!(daemon.ramps(), [Some(255); 3], "nobody knows how long they are up");
    for host in HOSTS {
        daemon.pass(host).await;
    }
    assert_eq!(daemon.ramps(), [Some(255); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_new_backend_without_checks_starts_slowly() {
    let daemon = Daemon::new();
    let all = slow("");
    let two = all.split("[[pool.backend]]\naddress = \"10.0.0.3\"").next().unwrap();
    daemon.apply(two).await.unwrap();
    seconds(120).await;
    daemon.apply(&all).await.unwrap();
    assert_eq!(daemon.ramps(), [Some(255), Some(255), Some(13)]);
}

/// Four checked backends, two of them in another region; the panic threshold is 50 percent.
fn text() -> String {
    let backend = |last: u8, region: &str| {
        format!("[[pool.backend]]\naddress = \"10.0.0.{last}\"\nregion = \"{region}\"\n")
    };
    let more = backend(3, "us") + &backend(4, "us");
    let text = web("slots = 31", "slots = 31\n    panic_threshold_percent = 50");
    let (before, after) = text.split_once("[[service]]").unwrap();
    format!("{before}\n{more}\n[[service]]{after}\n[[region]]\nname = \"us\"\n")
}

/// Last numbers of the backends that are a last resort.
fn resorts(path: &FakePacketPath) -> Vec<u8> {
    let content = path.content();
    let last = |(_, address): &(Name, IpAddr)| match address {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(_) => panic!("{address}"),
    };
    content.last_resorts.iter().map(last).collect()
}

async fn report_health(daemon: &Daemon, last: u8, healthy: bool) {
    let (health, reason) =
        if healthy { (Passing, "all checks pass") } else { (Silent, "check tcp: timed out") };
    daemon.report_health("web", &format!("10.0.0.{last}"), health, reason).await;
}

#[tokio::test]
async fn below_the_threshold_failing_backends_are_the_last_resort() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    assert_eq!(resorts(&daemon.path), [0; 0], "nobody has been checked yet");
    report_health(&daemon, 1, true).await;
    report_health(&daemon, 2, false).await;
    assert_eq!(resorts(&daemon.path), [2], "a quarter is healthy; two are not checked yet");
    report_health(&daemon, 3, true).await;
    report_health(&daemon, 4, false).await;
    assert_eq!(resorts(&daemon.path), [0; 0], "half are");
    assert_eq!(daemon.state("web", "10.0.0.4"), Accepts::Nothing, "states keep the truth");

    report_health(&daemon, 3, false).await;
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    report_health(&daemon, 2, true).await;
    assert_eq!(resorts(&daemon.path), [0; 0]);
}

#[tokio::test]
async fn drained_and_disabled_backends_are_neither_counted_nor_a_last_resort() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        report_health(&daemon, last, last == 1).await;
    }
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    let with_admin_state = |text: &str, last: u8, admin_state: &str| {
        let address = format!("address = \"10.0.0.{last}\"\n");
        assert!(text.contains(&address));
        text.replace(&address, &format!("{address}admin_state = \"{admin_state}\"\n"))
    };
    let text = with_admin_state(&text(), 4, "drain");
    daemon.apply(&text).await.unwrap();
    assert_eq!(resorts(&daemon.path), [2, 3], "one of three");
    daemon.apply(&with_admin_state(&text, 3, "disabled")).await.unwrap();
    assert_eq!(resorts(&daemon.path), [0; 0], "one of two");
    report_health(&daemon, 1, false).await;
    assert_eq!(resorts(&daemon.path), [1, 2]);
}

#[tokio::test]
async fn without_a_threshold_there_is_no_last_resort() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        report_health(&daemon, last, false).await;
    }
    assert_eq!(resorts(&daemon.path), [1, 2, 3, 4]);
    daemon.apply(&text().replace("panic_threshold_percent = 50", "")).await.unwrap();
    assert_eq!(resorts(&daemon.path), [0; 0]);
}

#[tokio::test]
async fn a_restart_keeps_the_last_resort_until_checks_decide() {
    let mut daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        report_health(&daemon, last, last == 1).await;
    }
    daemon.restart().await;
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    report_health(&daemon, 3, true).await;
    assert_eq!(resorts(&daemon.path), [0; 0]);
}

#[tokio::test]
async fn unhealthy_backends_are_a_last_resort_unless_drained() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        report_health(&daemon, last, true).await;
    }
    for last in 2..=4 {
        let address = format!("10.0.0.{last}");
        daemon.report_health("web", &address, Failing, "check tcp: connection refused").await;
        assert_eq!(daemon.state("web", &address), Accepts::OpenOnly, "states keep the truth");
    }
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    let drained = text()
        .replace("address = \"10.0.0.4\"\n", "address = \"10.0.0.4\"\nadmin_state = \"drain\"\n");
    daemon.apply(&drained).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.4"), Accepts::OpenOnly);
    assert_eq!(resorts(&daemon.path), [2, 3]);
}

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
    /// Both backends are up.
    async fn up() -> Self {
        let daemon = Self::new();
        daemon.apply(WEB).await.unwrap();
        daemon.report_agent("web", ONE, AgentReport::default()).await;
        daemon.report_agent("web", OTHER, AgentReport::default()).await;
        daemon
    }

    pub(super) fn ramp(&self, address: &str) -> Option<u8> {
        self.path.content().ramps.get(&(name("web"), ip(address))).copied()
    }
}

#[tokio::test]
async fn an_agent_report_drains_a_backend() {
    let daemon = Daemon::up().await;
    daemon.report_agent("web", ONE, drain("check load: the backend says maint (update)")).await;
    assert_eq!(daemon.state("web", ONE), Accepts::OpenOnly);
    let status = daemon.backend("web", ONE).await;
    assert_eq!(status.reason.text, "drained: check load: the backend says maint (update)");
    assert_eq!(status.share, 0.0);
    assert_eq!(daemon.backend("web", OTHER).await.share, 1.0);
    daemon.report_agent("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.state("web", ONE), Accepts::All);
    let histories = daemon.running.commands.history("web".into(), Some(ONE.into())).await.unwrap();
    let changes = &histories.unwrap()[0].changes;
    let reasons: Vec<_> = changes.iter().map(|change| &*change.reason.text).collect();
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
async fn the_operators_drain_outlasts_that_of_the_agent() {
    let daemon = Daemon::up().await;
    let first = "address = \"10.0.0.1\"";
    let drained = web(first, &format!("{first}\nadmin_state = \"drain\""));
    daemon.report_agent("web", ONE, drain("check load: the backend says drain")).await;
    daemon.apply(&drained).await.unwrap();
    assert_eq!(daemon.backend("web", ONE).await.reason.text, "drained");
    daemon.report_agent("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.state("web", ONE), Accepts::OpenOnly);
    daemon.report_agent("web", ONE, drain("check load: the backend says drain")).await;
    daemon.apply(WEB).await.unwrap();
    assert_eq!(daemon.state("web", ONE), Accepts::OpenOnly, "and the other way round");
    let disabled = web(first, &format!("{first}\nadmin_state = \"disabled\""));
    daemon.apply(&disabled).await.unwrap();
    assert_eq!(daemon.state("web", ONE), Accepts::Nothing);
    // An agent report from before does not count when the backend returns.
    daemon.apply(WEB).await.unwrap();
    daemon.report_agent("web", ONE, AgentReport::default()).await;
    assert_eq!(daemon.state("web", ONE), Accepts::All);
}

#[tokio::test]
async fn a_backend_drained_by_its_agent_is_no_last_resort() {
    let daemon = Daemon::new();
    let panics = web("slots = 31", "slots = 31\n    panic_threshold_percent = 60");
    daemon.apply(&panics).await.unwrap();
    daemon.report_agent("web", ONE, AgentReport::default()).await;
    daemon.report_agent("web", OTHER, AgentReport::default()).await;
    daemon.report_health("web", OTHER, Failing, "check tcp: timed out").await;
    assert!(daemon.path.content().last_resorts.contains(&(name("web"), ip(OTHER))));
    daemon.report_agent("web", ONE, drain("check load: the backend says drain")).await;
    assert!(!daemon.path.content().last_resorts.contains(&(name("web"), ip(ONE))));
}

#[tokio::test(start_paused = true)]
async fn a_reported_share_counts_within_a_second_until_it_is_missing() {
    let daemon = Daemon::up().await;
    daemon.report_agent("web", ONE, percent(70)).await;
    seconds(1).await;
    assert_eq!((daemon.ramp(ONE), daemon.ramp(OTHER)), (Some(179), Some(255)), "0.7 of 255");
    let status = daemon.backend("web", ONE).await;
    assert_eq!((status.share * 255.0, status.agent_report), (179.0, percent(70)));
    daemon
        .report_agent(
            "web",
            ONE,
            AgentReport { report_error: Some("nothing".into()), ..AgentReport::default() },
        )
        .await;
    seconds(1).await;
    assert_eq!((daemon.ramp(ONE), daemon.ramp(OTHER)), (Some(255), Some(255)));
    // A daemon that starts knows no agent report until the first result.
    let mut daemon = daemon;
    daemon.report_agent("web", ONE, percent(70)).await;
    seconds(1).await;
    daemon.restart().await;
    seconds(1).await;
    assert_eq!(daemon.ramp(ONE), Some(255));
    daemon.report_agent("web", ONE, percent(70)).await;
    seconds(1).await;
    assert_eq!(daemon.ramp(ONE), Some(179));
}

#[tokio::test(start_paused = true)]
async fn shares_follow_utilisation() {
    let daemon = Daemon::up().await;
    daemon.report_agent("web", ONE, utilised(0.8)).await;
    daemon.report_agent("web", OTHER, utilised(0.2)).await;
    seconds(1).await;
    let first = daemon.ramp(ONE).unwrap();
    seconds(10).await;
    let later = daemon.ramp(ONE).unwrap();
    assert!(later < first && daemon.ramp(OTHER) == Some(255), "{first} {later}");
    // Four to one: exp(-0.1 ln 4) per second, give or take the second of the first balancing.
    assert!((50..80).contains(&later), "{later}");
    // Equal utilisation: the ramp stays, also with a new configuration.
    daemon.report_agent("web", ONE, utilised(0.4)).await;
    daemon.report_agent("web", OTHER, utilised(0.4)).await;
    seconds(1).await;
    let even = daemon.ramp(ONE);
    daemon.apply(&web("tcp = {}", "tcp = {}\n    rise = 5")).await.unwrap();
    seconds(20).await;
    assert_eq!(daemon.ramp(ONE), even);
    // Without reports all shares are equal.
    daemon.report_agent("web", ONE, AgentReport::default()).await;
    daemon.report_agent("web", OTHER, AgentReport::default()).await;
    seconds(1).await;
    assert_eq!((daemon.ramp(ONE), daemon.ramp(OTHER)), (Some(255), Some(255)));
}
