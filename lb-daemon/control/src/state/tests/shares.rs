use std::time::Duration;

use super::*;

const HOSTS: [&str; 3] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];

/// A pool of three with a slow start of a minute.
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
        self.judge("web", host, Passing, "all checks pass").await;
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_millis(seconds * 1000 + 10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_comes_to_others_gets_its_share_bit_by_bit() {
    let daemon = Daemon::new();
    daemon.apply(&slow(CHECKED)).await.unwrap();
    daemon.pass(HOSTS[0]).await;
    daemon.pass(HOSTS[1]).await;
    assert_eq!(daemon.ramps(), [Some(255), Some(255), None], "who begins together shares alike");
    seconds(120).await;
    daemon.pass(HOSTS[2]).await;
    // A twentieth of 255, before its state said that it is up.
    assert_eq!(daemon.ramps(), [Some(255), Some(255), Some(13)]);
    seconds(30).await;
    assert!(daemon.ramps()[2].is_some_and(|ramp| (125..=132).contains(&ramp)));
    seconds(31).await;
    assert_eq!(daemon.ramps(), [Some(255); 3]);

    // It fails and comes back: from the beginning.
    daemon.judge("web", HOSTS[2], Failing, "check up: timed out").await;
    seconds(5).await;
    daemon.pass(HOSTS[2]).await;
    assert_eq!(daemon.ramps()[2], Some(13));
    // Without the setting nothing is slow.
    daemon.apply(&slow(CHECKED).replace("slow_start = \"60s\"", "")).await.unwrap();
    assert_eq!(daemon.ramps()[2], Some(255));
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_daemon_is_no_start_of_backends() {
    let mut daemon = Daemon::new();
    daemon.apply(&slow(CHECKED)).await.unwrap();
    for host in HOSTS {
        daemon.pass(host).await;
    }
    seconds(120).await;
    daemon.judge("web", HOSTS[2], Silent, "check up: timed out").await;
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
async fn one_without_checks_that_is_added_starts_slowly_too() {
    let daemon = Daemon::new();
    let all = slow("");
    let two = all.split("[[pool.backend]]\naddress = \"10.0.0.3\"").next().unwrap();
    daemon.apply(two).await.unwrap();
    seconds(120).await;
    daemon.apply(&all).await.unwrap();
    assert_eq!(daemon.ramps(), [Some(255), Some(255), Some(13)]);
}
