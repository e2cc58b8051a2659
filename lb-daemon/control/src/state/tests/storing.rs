//! The store cannot be written, or does not answer.

use super::*;
use lb_fake::test_disk::Answer::{IsFull, Nothing, Writes};

/// A daemon with two backends that are up, and its disk.
async fn serving() -> (Daemon, TestDisk) {
    let (daemon, disk) = Daemon::with_disk();
    daemon.apply(WEB).await.unwrap();
    for address in ["10.0.0.1", "10.0.0.2"] {
        daemon.report_health("web", address, Passing, "all checks pass").await;
    }
    (daemon, disk)
}

/// [`WEB`] with one more region.
fn other() -> String {
    format!("{WEB}\n[[region]]\nname = \"later\"\n")
}

impl Daemon {
    async fn store_condition(&self) -> Option<String> {
        let conditions = self.status().await.conditions;
        conditions.into_iter().find(|c| c.subject == "store").map(|c| c.cause)
    }

    async fn until_no_condition(&self) {
        while self.store_condition().await.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// An operator who has made room sees it without a change.
#[tokio::test(start_paused = true)]
async fn an_equal_apply_ends_the_condition_of_a_refused_one() {
    let (daemon, disk) = serving().await;
    disk.set(IsFull);
    let refused = daemon.apply(&other()).await.unwrap_err();
    assert!(matches!(refused, Refusal::Store(_)), "{refused:?}");
    let condition = daemon.store_condition().await.unwrap();
    assert!(condition.contains("applies are refused, overrides are not: "), "{condition}");
    assert_eq!(daemon.apply(WEB).await.unwrap().generation, 1);
    assert!(daemon.store_condition().await.is_some());
    disk.set(Writes);
    assert_eq!(daemon.apply(WEB).await.unwrap().generation, 1);
    assert_eq!(daemon.store_condition().await, None);
}

/// Nobody has to apply anything to see that there is room again.
#[tokio::test(start_paused = true)]
async fn the_condition_of_a_refused_apply_ends_when_there_is_room() {
    let (daemon, disk) = serving().await;
    disk.set(IsFull);
    daemon.apply(&other()).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let condition = daemon.store_condition().await.unwrap();
    assert!(condition.contains("free space on the disk"), "{condition}");
    disk.set(Writes);
    let began = tokio::time::Instant::now();
    daemon.until_no_condition().await;
    assert!(began.elapsed() <= Duration::from_secs(12), "{:?}", began.elapsed());
}

/// Real time: tokio's own clock stands still while a thread writes.
#[tokio::test]
async fn an_apply_waits_for_a_disk_that_does_not_answer_and_all_else_goes_on() {
    let (daemon, disk) = serving().await;
    disk.set(Nothing);
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: request(&other()), ..Apply::default() };
    let waiting = tokio::spawn(async move { commands.apply(apply, None).await.unwrap() });
    let waits = "the disk does not answer: applies wait for it; overrides do not";
    while daemon.store_condition().await.as_deref() != Some(waits) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.report_health("web", "10.0.0.1", Failing, "check web-http: refused").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), Accepts::OpenOnly);
    let before = daemon.running.heartbeats.state.rounds();
    while daemon.running.heartbeats.state.rounds() == before {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!waiting.is_finished());
    disk.set(Writes);
    assert_eq!(waiting.await.unwrap().unwrap().generation, 2);
    daemon.until_no_condition().await;
}
