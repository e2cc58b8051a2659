use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::Arc,
};

use lb_base::heartbeat::Heartbeat;
use lb_common::abi::member::Accepts;
use lb_health::Target;
use lb_model::{
    Name, Pool,
    hold_down::{HoldDown, HoldDownTimes},
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{keeper::Writer, *};
use crate::members::clock;

const BOOT: &str = "8b0dc04e-3a2a-4d6b-9c1f-0e4f5a6b7c8d";
const SECOND: Duration = Duration::from_secs(1);
const TIMES: HoldDownTimes =
    HoldDownTimes { first: Duration::from_secs(10), longest: Duration::from_secs(60) };

fn boot_clock(time: u64) -> BootClock {
    BootClock { boot_id: BOOT.into(), time, instant: clock() }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn streak(question: u64, health: Option<&str>, passed: u64, failed: u64) -> SavedStreak {
    let streak = json!({
        "address": "2001:db8::1", "question": question, "definition": u64::MAX,
        "health": health, "has_passed": true, "passed": passed, "failed": failed, "silent": 0,
    });
    serde_json::from_value(streak).unwrap()
}

/// Of a backend that is held since now.
fn held(pool: &str, now: Instant) -> SavedHoldDown<Instant> {
    let mut hold_down = HoldDown::default();
    for _ in 0..2 {
        hold_down.fail(now, TIMES);
        hold_down.pass(now, TIMES);
    }
    assert!(hold_down.is_held());
    SavedHoldDown { pool: name(pool), address: [10, 0, 0, 1].into(), times: TIMES, hold_down }
}

fn snapshot(now: Instant) -> Snapshot {
    Snapshot {
        streaks: vec![streak(u64::MAX - 1, Some("failing"), 2, 0), streak(7, None, 0, 1)],
        hold_downs: vec![held("web", now), held("api", now - 5 * SECOND)],
    }
}

#[test]
fn a_file_reads_back_as_written_by_the_clock_of_the_reader() {
    let written = boot_clock(1_000_000_000_000);
    let text = file::text(&snapshot(written.instant), &written).unwrap();
    assert_eq!(file::parse(&text, &written).unwrap(), (snapshot(written.instant), written.instant));
    // Three seconds later, in a process whose own clock is elsewhere.
    let later = boot_clock(1_003_000_000_000);
    let later = BootClock { instant: later.instant + 100 * SECOND, ..later };
    let saved_at = later.instant - 3 * SECOND;
    assert_eq!(file::parse(&text, &later).unwrap(), (snapshot(saved_at), saved_at));
}

/// Why this text is not used.
fn refused(text: &[u8], clock: &BootClock) -> String {
    error_chain::message(&file::parse(text, clock).unwrap_err())
}

#[test]
fn files_of_other_boots_versions_and_times_are_not_used() {
    let clock = boot_clock(1_000_000_000_000);
    let text = file::text(&snapshot(clock.instant), &clock).unwrap();
    let other = BootClock { boot_id: BOOT.replace('8', "9"), ..clock.clone() };
    assert_eq!(refused(&text, &other), "is from before the host was started");
    let earlier = BootClock { time: 998_000_000_000, ..clock.clone() };
    assert_eq!(refused(&text, &earlier), "was written in the future");
    // A newer version may be anything else.
    let newer = br#"{"version":2,"probes":{}}"#;
    assert_eq!(refused(newer, &clock), "has version 2, and this spillwayd knows version 1");
    assert_eq!(
        refused(br#"{"version":0}"#, &clock),
        "has version 0, and this spillwayd knows version 1"
    );
    let mut content: Value = serde_json::from_slice(&text).unwrap();
    content["more"] = json!({ "of": "a later daemon" });
    content["streaks"][0]["more"] = json!(1);
    let more = serde_json::to_vec(&content).unwrap();
    assert_eq!(file::parse(&more, &clock).unwrap().0, snapshot(clock.instant));
}

#[test]
fn whatever_is_in_a_file_it_is_used_or_refused() {
    let clock = boot_clock(1_000_000_000_000);
    let text = file::text(&snapshot(clock.instant), &clock).unwrap();
    for end in 0..text.len() {
        let reason = refused(&text[..end], &clock);
        assert!(reason.starts_with("is not a health state file: "), "{end}: {reason}");
    }
    let content: Value = serde_json::from_slice(&text).unwrap();
    let mut paths: Vec<Vec<String>> = Vec::new();
    collect_paths(&content, &mut Vec::new(), &mut paths);
    assert!(paths.len() > 30, "{paths:?}");
    for path in paths {
        for value in
            [json!(null), json!(-1), json!(u64::MAX), json!(1e300), json!("x"), json!([[]])]
        {
            let mut content = content.clone();
            *content.pointer_mut(&format!("/{}", path.join("/"))).unwrap() = value;
            // Of what is used, no time is out of the clock's range.
            if let Ok((snapshot, saved_at)) =
                file::parse(&serde_json::to_vec(&content).unwrap(), &clock)
            {
                let keys: Vec<_> =
                    snapshot.hold_downs.iter().map(|it| (it.pool.clone(), it.address)).collect();
                let restored = HoldDowns::restored(snapshot.hold_downs, saved_at);
                let mut restored = restored.take_restored();
                for (name, address) in keys {
                    let key = (&name, address);
                    let hold_down = restored.take(key, Accepts::OpenOnly, &pool(), clock.instant);
                    let length = hold_down.and_then(|it| it.length());
                    assert!(length.is_none_or(|length| length <= TIMES.longest));
                }
            }
        }
    }
}

fn pool() -> Pool {
    Pool { hold_down: TIMES.first, max_hold_down: TIMES.longest, ..Pool::default() }
}

fn collect_paths(value: &Value, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let children: Vec<_> = match value {
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, it)| (index.to_string(), it)).collect()
        }
        _ => Vec::new(),
    };
    for (name, child) in children {
        path.push(name);
        paths.push(path.clone());
        collect_paths(child, path, paths);
        path.pop();
    }
}

proptest! {
    #[test]
    fn random_bytes_are_refused(bytes in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let clock = boot_clock(1_000_000_000_000);
        prop_assert!(file::parse(&bytes, &clock).is_err());
        // And in the middle of a file they do not make it fail otherwise.
        let mut text = file::text(&snapshot(clock.instant), &clock).unwrap();
        let at = at.index(text.len());
        text.splice(at..(at + 3).min(text.len()), bytes);
        let _ = file::parse(&text, &clock);
    }
}

#[test]
fn only_a_regular_file_is_read_and_whatever_is_there_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spillwayd.sock.health-state");
    let clock = BootClock::read().unwrap();
    let snapshot = snapshot(clock.instant);
    let read = || error_chain::message(&file::read(&path, &clock).unwrap_err());
    assert!(read().starts_with("No such file or directory"));
    let elsewhere = directory.path().join("elsewhere");
    file::write(&elsewhere, &snapshot, &clock).unwrap();
    let replace = || {
        file::write(&path, &snapshot, &clock).unwrap();
        assert_eq!(file::read(&path, &clock).unwrap().0, snapshot);
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).unwrap();
    };
    symlink(&elsewhere, &path).unwrap();
    assert!(read().starts_with("Too many levels of symbolic links"), "{}", read());
    replace();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(read(), "is not a regular file of this user");
    replace();
    let huge = fs::File::create(&path).unwrap();
    huge.set_len((64 << 20) + 1).unwrap();
    assert_eq!(read(), "has more than 67108864 bytes");
    replace();
    // What a killed daemon left is no obstacle.
    fs::write(directory.path().join("spillwayd.sock.health-state.next"), "half").unwrap();
    replace();
    fs::create_dir(&path).unwrap();
    assert_eq!(read(), "is not a regular file of this user");
    file::write(&path, &snapshot, &clock).unwrap_err();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing else is left");
}

/// A prober and members as the writer sees them.
struct Shown {
    directory: tempfile::TempDir,
    streaks: Streaks,
    hold_downs: HoldDowns,
    conditions: Conditions,
    targets: watch::Sender<Arc<Vec<Target>>>,
}

impl Shown {
    /// With a prober without targets.
    fn new() -> Self {
        let (streaks, hold_downs) = (Streaks::default(), HoldDowns::default());
        let (targets, wanted) = watch::channel(Arc::default());
        let counters = lb_base::queue::QueueCounters::default();
        let (changes, received) = lb_base::queue::bounded(16, &counters);
        let tunnels = lb_health::Tunnels::new(Default::default(), |_| Err("not here".into()));
        lb_health::Prober::spawn(
            wanted,
            changes,
            Heartbeat::unwatched(SECOND),
            lb_health::Counters::default(),
            tunnels,
            streaks.clone(),
        );
        // The prober ends with whoever receives.
        tokio::spawn(async move {
            let mut received = received;
            while received.recv().await.is_some() {}
        });
        let (directory, conditions) = (tempfile::tempdir().unwrap(), Conditions::default());
        Self { directory, streaks, hold_downs, conditions, targets }
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("spillwayd.sock")
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("spillwayd.sock.health-state")
    }

    /// The prober has a target, which refuses connections.
    async fn probe(&self) {
        let check = "[[health_check]]\nname = \"web\"\nport = 1\ninterval = \"1h\"\ntcp = {}\n";
        let document = lb_config::document::Document::parse(check).unwrap();
        let configuration = lb_config::validate_first(&document.into()).unwrap();
        let target = Target {
            pool: name("web"),
            address: [127, 0, 0, 1].into(),
            checks: configuration.health_checks.into_iter().collect(),
            vips: Default::default(),
            encapsulation: lb_model::Encapsulation::IpInIp,
            urgent: true,
            is_up: false,
        };
        self.targets.send_replace(Arc::new(vec![target]));
        until(|| self.streaks.now(9).is_some_and(|streaks| !streaks.is_empty())).await;
    }

    fn writer(&self) -> Writer {
        let (streaks, hold_downs) = (self.streaks.clone(), self.hold_downs.clone());
        Writer { path: self.path(), streaks, hold_downs, written: None }
    }

    fn keep(&self) -> Keeper {
        let (streaks, hold_downs) = (self.streaks.clone(), self.hold_downs.clone());
        let (path, conditions) = (self.path(), self.conditions.clone());
        HealthState { streaks, hold_downs, path, conditions }.keep()
    }

    async fn read(&self) -> HealthState {
        HealthState::read(&self.socket(), self.conditions.clone()).await
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("it does not come");
}

#[tokio::test]
async fn it_is_written_once_there_is_something_and_again_if_it_changed_or_is_old() {
    let shown = Shown::new();
    let (path, mut writer) = (shown.path(), shown.writer());
    shown.hold_downs.show([held("web", clock())].into_iter());
    writer.write(false).unwrap();
    assert!(!path.exists(), "the prober has had no targets: an older file is the newest");
    shown.probe().await;
    writer.write(false).unwrap();
    let write = |writer: &mut Writer, is_last| {
        let before = fs::metadata(&path).unwrap();
        // Another file has another number, unless the first one's was free again.
        let _kept = fs::File::open(&path).unwrap();
        writer.write(is_last).unwrap();
        std::os::unix::fs::MetadataExt::ino(&before)
            != std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap())
    };
    assert!(!write(&mut writer, false), "nothing changed");
    assert!(write(&mut writer, true), "the last time");
    shown.hold_downs.show([held("api", clock())].into_iter());
    assert!(write(&mut writer, false) && !write(&mut writer, false));
    writer.written.as_mut().unwrap().0 -= 10 * SECOND;
    assert!(write(&mut writer, false), "it is old");

    // The next daemon has it, with the member loop's side taken once.
    let read = shown.read().await;
    let mut restored = read.hold_downs.take_restored();
    let mut take = |pool: &Pool| {
        let key = (&name("api"), [10, 0, 0, 1].into());
        restored.take(key, Accepts::OpenOnly, pool, clock())
    };
    let left = take(&pool()).unwrap().left(clock()).unwrap();
    assert!(left > 5 * SECOND && left <= 10 * SECOND, "{left:?}");
    assert_eq!(take(&pool()), None);
    let other = Pool { hold_down: 2 * TIMES.first, ..pool() };
    let mut restored = shown.read().await.hold_downs.take_restored();
    let key = (&name("api"), [10, 0, 0, 1].into());
    assert_eq!(restored.take(key, Accepts::OpenOnly, &other, clock()), None, "other times");
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_a_condition_until_it_is() {
    let shown = Shown::new();
    shown.probe().await;
    shown.hold_downs.show([].into_iter());
    let moved = shown.directory.path().with_extension("moved");
    fs::rename(shown.directory.path(), &moved).unwrap();
    assert!(shown.read().await.streaks.now(9).is_none(), "a start goes on without");
    let keeper = shown.keep();
    until(|| !shown.conditions.now().is_empty()).await;
    let [condition] = &shown.conditions.now()[..] else { panic!("one condition") };
    assert_eq!(condition.subject, "health state");
    let cause =
        "not written, so a restart forgets streaks of checks and holds: No such file or directory";
    assert!(condition.cause.starts_with(cause), "{}", condition.cause);
    fs::rename(&moved, shown.directory.path()).unwrap();
    until(|| shown.conditions.now().is_empty()).await;
    assert!(shown.path().exists());
    keeper.stop().await;
}

#[tokio::test]
async fn the_last_write_has_what_changed_just_before() {
    let shown = Shown::new();
    shown.probe().await;
    shown.hold_downs.show([].into_iter());
    let keeper = shown.keep();
    until(|| shown.path().exists()).await;
    shown.hold_downs.show([held("web", clock())].into_iter());
    keeper.stop().await;
    let (snapshot, _) = file::read(&shown.path(), &BootClock::read().unwrap()).unwrap();
    assert_eq!((snapshot.streaks.len(), snapshot.hold_downs.len()), (1, 1));
}

#[tokio::test]
async fn a_bad_file_is_no_reason_not_to_start() {
    let shown = Shown::new();
    for text in ["", "{", "\0\0\0\0", r#"{"version":3}"#] {
        fs::write(shown.path(), text).unwrap();
        let state = shown.read().await;
        assert!(state.streaks.now(9).is_none() && state.hold_downs.now(9).is_none());
    }
}
