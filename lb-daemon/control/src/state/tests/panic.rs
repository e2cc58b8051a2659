use super::*;

/// Four checked backends, two of them in another region; less than half of them is too few.
fn text() -> String {
    let backend = |last: u8, region: &str| {
        format!("[[pool.backend]]\naddress = \"10.0.0.{last}\"\nregion = \"{region}\"\n")
    };
    let more = backend(3, "us") + &backend(4, "us");
    let text = web("slots = 31", "slots = 31\n    panic_threshold_percent = 50");
    let (before, after) = text.split_once("[[service]]").unwrap();
    format!("{before}\n{more}\n[[service]]{after}\n[[region]]\nname = \"us\"\n")
}

/// Last numbers of the addresses that are a last resort.
fn resorts(path: &FakePacketPath) -> Vec<u8> {
    let content = path.content();
    let last = |(_, address): &(Name, IpAddr)| match address {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(_) => panic!("{address}"),
    };
    content.last_resorts.iter().map(last).collect()
}

async fn judge(daemon: &Daemon, last: u8, healthy: bool) {
    let (health, reason) =
        if healthy { (Passing, "all checks pass") } else { (Silent, "check tcp: timed out") };
    daemon.judge("web", &format!("10.0.0.{last}"), health, reason).await;
}

#[tokio::test]
async fn below_the_threshold_those_that_fail_are_the_last_resort() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    assert_eq!(resorts(&daemon.path), [0; 0], "nobody has been checked yet");
    judge(&daemon, 1, true).await;
    judge(&daemon, 2, false).await;
    assert_eq!(resorts(&daemon.path), [2], "a quarter is healthy; two are not checked yet");
    judge(&daemon, 3, true).await;
    judge(&daemon, 4, false).await;
    assert_eq!(resorts(&daemon.path), [0; 0], "half are");
    assert_eq!(daemon.state("web", "10.0.0.4"), Accepts::Nothing, "states keep the truth");

    judge(&daemon, 3, false).await;
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    judge(&daemon, 2, true).await;
    assert_eq!(resorts(&daemon.path), [0; 0]);
}

#[tokio::test]
async fn who_is_drained_or_disabled_is_neither_counted_nor_raised() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        judge(&daemon, last, last == 1).await;
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
    judge(&daemon, 1, false).await;
    assert_eq!(resorts(&daemon.path), [1, 2]);
}

#[tokio::test]
async fn without_a_threshold_there_is_no_last_resort() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        judge(&daemon, last, false).await;
    }
    assert_eq!(resorts(&daemon.path), [1, 2, 3, 4]);
    daemon.apply(&text().replace("panic_threshold_percent = 50", "")).await.unwrap();
    assert_eq!(resorts(&daemon.path), [0; 0]);
}

#[tokio::test]
async fn a_restart_leaves_the_last_resort_until_checks_say_otherwise() {
    let mut daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        judge(&daemon, last, last == 1).await;
    }
    daemon.restart().await;
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    judge(&daemon, 3, true).await;
    assert_eq!(resorts(&daemon.path), [0; 0]);
}

#[tokio::test]
async fn who_is_unfit_by_its_checks_is_raised_too_and_who_is_drained_besides_is_not() {
    let daemon = Daemon::new();
    daemon.apply(&text()).await.unwrap();
    for last in 1..=4 {
        judge(&daemon, last, true).await;
    }
    for last in 2..=4 {
        let address = format!("10.0.0.{last}");
        daemon.judge("web", &address, Failing, "check tcp: connection refused").await;
        assert_eq!(daemon.state("web", &address), Accepts::OpenOnly, "states keep the truth");
    }
    assert_eq!(resorts(&daemon.path), [2, 3, 4]);
    let drained = text()
        .replace("address = \"10.0.0.4\"\n", "address = \"10.0.0.4\"\nadmin_state = \"drain\"\n");
    daemon.apply(&drained).await.unwrap();
    assert_eq!(daemon.state("web", "10.0.0.4"), Accepts::OpenOnly);
    assert_eq!(resorts(&daemon.path), [2, 3]);
}
