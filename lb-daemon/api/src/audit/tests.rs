use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::PathBuf, time::Instant};

use super::*;

#[test]
fn a_file_is_named_whatever_its_name_is() {
    let file = Actor::File(OsStr::from_bytes(b"/etc/\xff.toml").into());
    assert_eq!(who(&file), json!({"file": "/etc/\u{fffd}.toml"}));
}

/// The lines of an audit file.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn a_configuration() -> Apply {
    Apply { actor: Actor::user(7), request: "a configuration".into(), ..Apply::default() }
}

#[tokio::test]
async fn a_change_that_is_dropped_is_noted_as_not_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit");
    let audit = Audit::open(Some(&path), Conditions::default()).unwrap();
    let change = audit.log_intent(&a_configuration()).await;
    let intent = lines(&path);
    assert_eq!((intent.len(), &intent[0]["what"]), (1, &"intent".into()), "it is written by then");
    drop(change);
    audit.flush().await;
    let lines = lines(&path);
    assert_eq!(lines[1]["outcome"], "not_carried_out");
    assert_eq!(lines[0]["id"], lines[1]["id"]);
}

#[tokio::test]
async fn a_file_that_stays_away_is_a_condition_until_it_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let (path, conditions): (PathBuf, _) =
        (directory.path().join("in/audit"), Conditions::default());
    fs::create_dir(path.parent().unwrap()).unwrap();
    let audit = Audit::open(Some(&path), conditions.clone()).unwrap();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    audit.reopen();
    audit.probe_began(&Actor::user(7), 1, 100);
    audit.flush().await;
    assert!(
        conditions.now()[0].cause.starts_with("audit: not written: "),
        "{:?}",
        conditions.now()
    );
    fs::create_dir(path.parent().unwrap()).unwrap();
    audit.reopen();
    audit.probe_began(&Actor::user(7), 2, 100);
    audit.flush().await;
    assert_eq!(conditions.now(), []);
    assert_eq!(lines(&path)[0]["targets"], 2);
}

#[tokio::test]
async fn a_reload_stands_in_the_file_that_a_rotation_left_room_for() {
    let directory = tempfile::tempdir().unwrap();
    let (path, rotated) = (directory.path().join("audit"), directory.path().join("audit.1"));
    let audit = Audit::open(Some(&path), Conditions::default()).unwrap();
    fs::rename(&path, &rotated).unwrap();
    audit.reload_requested(&Actor::user(7), true);
    audit.flush().await;
    let lines_of = (lines(&rotated).len(), lines(&path));
    assert_eq!((lines_of.0, &lines_of.1[0]["what"]), (0, &"reload".into()));
    assert_eq!(lines_of.1[0]["force"], true);
}

/// Every write to `/dev/full` fails as on a disk without room (full(4)).
#[tokio::test]
async fn a_full_disk_refuses_no_change_and_is_a_condition() {
    let conditions = Conditions::default();
    let audit = Audit::open(Some(Path::new("/dev/full")), conditions.clone()).unwrap();
    drop(audit.log_intent(&a_configuration()).await);
    audit.flush().await;
    let cause = &conditions.now()[0].cause;
    assert!(cause.starts_with("audit: not written: "), "{cause}");
    assert!(cause.contains("No space left on device"), "{cause}");
}

/// As on a file system that answers nothing any more.
#[tokio::test]
async fn a_thread_that_hangs_delays_one_change_for_a_second_and_none_after() {
    let conditions = Conditions::default();
    let (writer, orders) = Writer::new(Path::new("/hangs"), conditions.clone());
    let audit = Audit { writer: Some(writer), ..Audit::default() };
    let begun = Instant::now();
    for _ in 0..3_000 {
        drop(audit.log_intent(&a_configuration()).await);
    }
    let took = begun.elapsed();
    // If each waited, it would be thirty times as long.
    assert!(took >= WRITE_TIMEOUT && took < 100 * WRITE_TIMEOUT, "{took:?}");
    let cause = &conditions.now()[0].cause;
    assert!(cause.starts_with("audit: not written: the file a"), "{cause}");
    // It holds no more than it has room for.
    assert!(orders.try_iter().count() <= 4096);
}

/// The runtime of this test has one thread: what blocked it would keep the clock from ticking. The outcome of a change
/// is logged on the thread of the state loop.
#[tokio::test]
async fn while_one_change_waits_for_a_thread_that_hangs_nothing_else_does() {
    let (writer, _orders) = Writer::new(Path::new("/hangs"), Conditions::default());
    let audit = Audit { writer: Some(writer), ..Audit::default() };
    let waiting = audit.clone();
    let waiting = tokio::spawn(async move { waiting.log_intent(&a_configuration()).await });
    let mut ticks = 0;
    while !waiting.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
        audit.probe_began(&Actor::user(7), 1, 100);
        ticks += 1;
    }
    // While the clock stands still there is none.
    assert!(ticks > 10, "{ticks} ticks");
    let (mut change, mut soonest) = (waiting.await.unwrap(), Duration::MAX);
    for _ in 0..5 {
        let begun = Instant::now();
        Box::new(change).changed(6, &Applied::default(), None);
        soonest = soonest.min(begun.elapsed());
        change = audit.log_intent(&a_configuration()).await;
    }
    assert!(soonest < WRITE_TIMEOUT / 2, "{soonest:?}");
}
