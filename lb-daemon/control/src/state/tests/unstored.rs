//! The store cannot be written. What only drains is in force all the same, and stored later.

use std::time::{Duration, Instant};

use Accepts::{All, Nothing, OpenOnly};
use Answer::{IsFull, Writes};

use super::*;
use crate::store::test_disk::{Answer, TestDisk};

const FULL: &str = "cannot be written: I/O error: no storage space";

/// A daemon with two backends that are up, and its disk.
async fn serving() -> (Daemon, TestDisk) {
    let directory = tempfile::tempdir().unwrap();
    let path = FakePacketPath::default();
    let (running, disk) = start(&directory, &path);
    let daemon = Daemon { directory, path, running };
    daemon.apply(WEB).await.unwrap();
    for address in ["10.0.0.1", "10.0.0.2"] {
        daemon.report_health("web", address, Passing, "all checks pass").await;
    }
    (daemon, disk)
}

fn start(directory: &TempDir, path: &FakePacketPath) -> (Running, TestDisk) {
    let store = Store::open(directory.path()).unwrap();
    let disk = store.test_disk();
    (Running::over(store, directory, path, Duration::from_secs(1), false), disk)
}

/// [`WEB`] with its first backend in a state.
fn with_state(state: &str) -> String {
    let address = "address = \"10.0.0.1\"\n";
    web(address, &format!("{address}admin_state = \"{state}\"\n"))
}

fn drained() -> String {
    with_state("drain")
}

/// [`WEB`] with one more region: no drain.
fn other() -> String {
    format!("{WEB}\n[[region]]\nname = \"later\"\n")
}

impl Daemon {
    async fn store_condition(&self) -> Option<String> {
        let conditions = self.status().await.conditions;
        conditions.into_iter().find(|c| c.subject == "store").map(|c| c.cause)
    }

    async fn until_stored(&self) {
        while self.store_condition().await.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What a daemon begins with that is started now.
    fn stored(&self) -> (u64, lb_model::AdminState) {
        let copy = tempfile::tempdir().unwrap();
        let file = crate::store::FILE;
        std::fs::copy(self.directory.path().join(file), copy.path().join(file)).unwrap();
        let store = Store::open(copy.path()).unwrap();
        let generation = store.generation().unwrap();
        let pool = &generation.configuration.pools[&name("web")];
        (generation.number, pool.backends[&ip("10.0.0.1")].admin_state)
    }
}

fn in_memory(generation: u64, stored: u64) -> String {
    format!("generation {generation} is in force, but in memory only: ")
        + &format!("… a restart before that loses it and begins with generation {stored}")
}

/// Compares without the cause in the middle, which must have these words.
fn is_in_memory(text: &str, generation: u64, stored: u64, cause: &str) -> bool {
    let expected = in_memory(generation, stored);
    let (begin, end) = expected.split_once('…').unwrap();
    text.starts_with(begin) && text.contains(end) && text.contains(cause)
}

#[tokio::test(start_paused = true)]
async fn a_drain_on_a_full_disk_is_in_force_and_stored_once_there_is_room() {
    let (mut daemon, disk) = serving().await;
    disk.set(IsFull);
    let refused = daemon.apply(&other()).await.unwrap_err();
    let said = error_chain::message(&refused);
    assert!(said.starts_with("nothing was changed: ") && said.contains(FULL), "{said}");
    let status = daemon.status().await;
    assert_eq!((status.generation, status.is_unstored), (1, false));
    let condition = daemon.store_condition().await.unwrap();
    assert!(condition.contains("free space on the disk"), "{condition}");

    let applied = daemon.apply(&drained()).await.unwrap();
    assert_eq!((applied.generation, applied.changes.len()), (2, 1));
    let [warning] = &*applied.warnings else { panic!("{:?}", applied.warnings) };
    assert!(is_in_memory(warning, 2, 1, FULL), "{warning}");
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    assert_eq!(daemon.state("web", "10.0.0.2"), All);
    let status = daemon.status().await;
    assert_eq!((status.generation, status.is_unstored), (2, true));
    let condition = daemon.store_condition().await.unwrap();
    assert!(is_in_memory(&condition, 2, 1, FULL), "{condition}");
    assert_eq!(daemon.stored(), (1, lb_model::AdminState::Active));

    // Whoever asks again is told again, and all else is refused.
    let again = daemon.apply(&drained()).await.unwrap();
    assert_eq!((again.generation, again.changes.len()), (2, 0));
    assert!(is_in_memory(&again.warnings[0], 2, 1, FULL), "{again:?}");
    let both = format!("{}\n[[region]]\nname = \"later\"\n", drained());
    assert!(matches!(daemon.apply(&both).await, Err(Refusal::Store(_))));
    let disabled = daemon.apply(&with_state("disabled")).await.unwrap();
    assert!(is_in_memory(&disabled.warnings[0], 3, 1, FULL), "{disabled:?}");
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);

    disk.set(Writes);
    daemon.until_stored().await;
    assert_eq!(daemon.stored(), (3, lb_model::AdminState::Disabled));
    let status = daemon.status().await;
    assert_eq!((status.generation, status.is_unstored), (3, false));
    let applied = daemon.apply(&both).await.unwrap();
    assert_eq!((applied.generation, applied.warnings.len()), (4, 0));
    daemon.restart().await;
    assert_eq!(daemon.status().await.generation, 4);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.admin_state, lb_model::AdminState::Drain);
}

#[tokio::test(start_paused = true)]
async fn a_restart_before_it_is_stored_begins_with_what_was() {
    let (mut daemon, disk) = serving().await;
    disk.set(IsFull);
    daemon.apply(&drained()).await.unwrap();
    daemon.restart().await;
    let status = daemon.status().await;
    assert_eq!((status.generation, status.is_unstored), (1, false));
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    assert_eq!(daemon.state("web", "10.0.0.1"), All);
}

/// A daemon that is stopped in an orderly way tries once more.
#[tokio::test(start_paused = true)]
async fn a_stop_stores_it_if_the_disk_can() {
    let (mut daemon, disk) = serving().await;
    disk.set(IsFull);
    daemon.apply(&drained()).await.unwrap();
    disk.set(Writes);
    daemon.restart().await;
    assert_eq!(daemon.status().await.generation, 2);
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_is_stored_takes_an_unstored_drain_along() {
    let (daemon, disk) = serving().await;
    disk.set(IsFull);
    daemon.apply(&drained()).await.unwrap();
    disk.set(Writes);
    let both = format!("{}\n[[region]]\nname = \"later\"\n", drained());
    assert_eq!(daemon.apply(&both).await.unwrap().generation, 3);
    let status = daemon.status().await;
    assert_eq!((status.is_unstored, daemon.store_condition().await), (false, None));
    assert_eq!(daemon.stored(), (3, lb_model::AdminState::Drain));
}

/// An operator who has made room sees it without a change.
#[tokio::test(start_paused = true)]
async fn an_equal_apply_ends_the_condition_of_a_refused_one() {
    let (daemon, disk) = serving().await;
    disk.set(IsFull);
    daemon.apply(&other()).await.unwrap_err();
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
    daemon.until_stored().await;
    assert!(began.elapsed() <= Duration::from_secs(12), "{:?}", began.elapsed());
    assert_eq!(daemon.stored(), (1, lb_model::AdminState::Active));
}

/// Real time: tokio's own clock stands still while a thread writes.
#[tokio::test]
async fn drains_on_a_disk_that_does_not_answer_wait_for_a_second_and_not_again() {
    let (daemon, disk) = serving().await;
    disk.set(Answer::Nothing);
    let began = Instant::now();
    let applied = daemon.apply(&drained()).await.unwrap();
    let took = began.elapsed();
    assert!(is_in_memory(&applied.warnings[0], 2, 1, "the disk does not answer"), "{applied:?}");
    assert!((1..10).contains(&took.as_secs()), "{took:?}");
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    for (number, state) in (3..40).zip(["disabled", "drain"].into_iter().cycle()) {
        let applied = daemon.apply(&with_state(state)).await.unwrap();
        assert!(is_in_memory(&applied.warnings[0], number, 1, ""), "{applied:?}");
    }
    assert!(began.elapsed() < 2 * took + Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(daemon.state("web", "10.0.0.1"), Nothing);
    disk.set(Writes);
    daemon.until_stored().await;
    assert_eq!(daemon.stored(), (39, lb_model::AdminState::Disabled));
}

/// A drain that is asked for behind an apply that waits for the disk. The apply is refused, and what it wrote is replaced.
#[tokio::test]
async fn a_drain_overtakes_an_apply_that_waits_for_the_disk() {
    let (daemon, disk) = serving().await;
    disk.set(Answer::Nothing);
    let send = |text: &str, expected_generation| {
        let commands = daemon.running.commands.clone();
        let apply = Apply { configuration: request(text), expected_generation, ..Apply::default() };
        tokio::spawn(async move { commands.apply(apply, None).await.unwrap() })
    };
    let first = send(&other(), None);
    let waits = "the disk does not answer: applies wait for it, except those that only drain";
    while daemon.store_condition().await.as_deref() != Some(waits) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!first.is_finished());
    // Neither another apply nor a drain of another generation overtakes.
    let second = send(&web("slots = 31", "slots = 37"), Some(1));
    let stale = send(&drained(), Some(7));
    while daemon.running.commands.export().await.unwrap().generation != 1 {}
    assert!(!first.is_finished());
    let drain = tokio::time::timeout(Duration::from_secs(60), send(&drained(), Some(1))).await;
    let drain = drain.expect("it waits for the disk").unwrap().unwrap();
    assert_eq!(drain.generation, 2);
    assert!(is_in_memory(&drain.warnings[0], 2, 1, "the disk does not answer"), "{drain:?}");
    assert!(matches!(first.await.unwrap(), Err(Refusal::Overtaken)));
    assert_eq!(daemon.state("web", "10.0.0.1"), OpenOnly);
    let conflict = second.await.unwrap();
    assert!(matches!(conflict, Err(Refusal::Conflict { expected: 1, current: 2 })), "{conflict:?}");
    assert!(matches!(stale.await.unwrap(), Err(Refusal::Conflict { expected: 7, current: 2 })));

    disk.set(Writes);
    daemon.until_stored().await;
    assert_eq!(daemon.stored(), (2, lb_model::AdminState::Drain));
    let regions = daemon.running.commands.export().await.unwrap().configuration.regions;
    assert!(!regions.contains_key(&name("later")), "the refused apply is in force");
}

/// The loop turns, and answers.
#[tokio::test]
async fn a_retry_on_a_disk_that_does_not_answer_holds_up_nothing() {
    let (daemon, disk) = serving().await;
    disk.set(Answer::Nothing);
    daemon.apply(&drained()).await.unwrap();
    let before = daemon.running.heartbeats.state.rounds();
    for _ in 0..20 {
        let began = Instant::now();
        let apply = Apply { configuration: request(&other()), dry_run: true, ..Apply::default() };
        daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(daemon.running.heartbeats.state.rounds() > before);
    disk.set(Writes);
    daemon.until_stored().await;
}
