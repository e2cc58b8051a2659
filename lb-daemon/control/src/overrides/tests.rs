use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use lb_model::overrides::{Action, Key, Moment, Override, Overrides, Percent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::file::{self, ReadError};

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn percent(percent: u8) -> Percent {
    Percent::try_from(percent).unwrap()
}

/// A time that a file can hold.
fn now() -> Moment {
    let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_323_045_678);
    Moment { wall, instant: Instant::now() }
}

fn asked(action: Action, now: Moment) -> Override {
    Override {
        action,
        who: "uid 0".into(),
        reason: "ticket 7".into(),
        set_at: now.wall,
        until: None,
        absent_since: None,
    }
}

fn some(now: Moment) -> Overrides {
    let until = now.after(Duration::from_secs(7200));
    let mut overrides = Overrides::default();
    overrides.set([
        (key("backends/10.0.0.1/drain"), Override { until, ..asked(Action::Drain, now) }),
        (
            key("pools/web/backends/2001:db8::1/weight"),
            Override { reason: String::new(), ..asked(Action::Weight(percent(30)), now) },
        ),
        (key("pools/web/drain"), asked(Action::Drain, now)),
        (
            key("pools/web/regions/eu/scale"),
            Override { absent_since: Some(now), ..asked(Action::Scale(percent(50)), now) },
        ),
        (key("regions/us/drain"), asked(Action::Drain, now)),
        (key("backends/10.0.0.1/disable"), asked(Action::Disable, now)),
    ]);
    overrides
}

#[test]
fn what_is_written_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(file::FILE);
    assert!(file::read(&path, now()).unwrap_err().is_missing());
    let now = now();
    let overrides = some(now);
    file::write(&path, &overrides).unwrap();
    assert_eq!(file::read(&path, now).unwrap(), overrides);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_time_that_is_left_counts_from_the_restart() {
    let set = now();
    let text = file::text(&some(set)).unwrap();
    let until = |now: Moment| {
        let overrides = file::parse(&text, now).unwrap();
        let it = overrides.get(&key("backends/10.0.0.1/drain")).unwrap();
        it.until.unwrap().instant.saturating_duration_since(now.instant)
    };
    let later = |seconds: i64| {
        let time = Duration::from_secs(seconds.unsigned_abs());
        let wall = if seconds < 0 { set.wall - time } else { set.wall + time };
        Moment { wall, instant: Instant::now() }
    };
    assert_eq!(until(later(3600)), Duration::from_secs(3600));
    assert_eq!(until(later(7200)), Duration::ZERO);
    assert_eq!(until(later(100_000)), Duration::ZERO);
    // The clock was set back by a year: it does not last for a year.
    assert_eq!(until(later(-31_536_000)), Duration::from_secs(7200));
    let overrides = file::parse(&text, later(1800)).unwrap();
    let gone = overrides.get(&key("pools/web/regions/eu/scale")).unwrap().absent_since.unwrap();
    assert!(gone.instant <= Instant::now() - Duration::from_secs(1799));
}

/// The example as JSON with one override changed.
fn with(change: impl FnOnce(&mut Value)) -> Result<Overrides, ReadError> {
    let mut content: Value = serde_json::from_slice(&file::text(&some(now())).unwrap()).unwrap();
    change(&mut content);
    file::parse(&serde_json::to_vec(&content).unwrap(), now())
}

/// A file of an earlier version has only overrides of its own.
#[test]
fn whether_a_fleet_is_followed_is_in_the_file() {
    let now = now();
    for is_followed in [true, false] {
        for overrides in [some(now), Overrides::restored(7, BTreeMap::new())] {
            let overrides = overrides.followed(is_followed);
            let text = file::text(&overrides).unwrap();
            assert_eq!(file::parse(&text, now).unwrap(), overrides);
            let content: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(content.get("followed"), is_followed.then_some(&json!(true)));
        }
    }
}

#[test]
fn local_overrides_are_in_the_file_of_a_member() {
    let now = now();
    let mut overrides = some(now);
    let until = now.after(Duration::from_secs(7200));
    overrides.set([
        (key("local/backends/10.0.0.1/drain"), asked(Action::Drain, now)),
        (key("local/backends/10.0.0.1/disable"), Override { until, ..asked(Action::Disable, now) }),
        (key("local/regions/eu/drain"), asked(Action::Drain, now)),
    ]);
    let text = file::text(&overrides.clone().followed(true)).unwrap();
    let read = file::parse(&text, now).unwrap();
    assert_eq!(read, overrides.clone().followed(true));
    // A balancer that is no member any more has them as its own, the longer of two.
    let text = file::text(&overrides).unwrap();
    let own = file::parse(&text, now).unwrap();
    assert_eq!((own.len(), own.local().count()), (some(now).len() + 1, 0));
    assert_eq!(own.get(&key("backends/10.0.0.1/drain")).unwrap().until, None);
    assert_eq!(own.get(&key("backends/10.0.0.1/disable")).unwrap().until, None);
    assert!(own.get(&key("regions/eu/drain")).is_some());
}

#[test]
fn what_no_daemon_wrote_is_refused() {
    let first = |field: &'static str, value: Value| {
        move |content: &mut Value| content["overrides"][0][field] = value
    };
    assert!(with(|_| ()).is_ok());
    assert!(with(first("unknown", json!(1))).is_ok(), "a later version may write more");
    assert!(matches!(with(|it| it["version"] = json!(2)), Err(ReadError::Version(2))));
    assert!(matches!(with(first("reason", json!("a\nb"))), Err(ReadError::Reason(..))));
    assert!(matches!(with(first("who", json!("a\u{1b}[2J"))), Err(ReadError::Who(_))));
    let scale = first("action", json!({"scale": 50}));
    assert!(matches!(with(scale), Err(ReadError::Action(..))), "backends have none");
    let weight = |content: &mut Value| {
        let overrides = content["overrides"].as_array_mut().unwrap();
        let it = overrides.iter_mut().find(|it| it["action"]["weight"].is_number()).unwrap();
        it["local"] = json!(true);
    };
    assert!(matches!(with(weight), Err(ReadError::Action(..))), "no weight is local");
    for (field, value) in [
        ("action", json!({"weight": 101})),
        ("action", json!("stop")),
        ("target", json!({"pool": "No Name"})),
        ("target", json!({"backend": {"address": "10.0.0"}})),
        ("set_at", json!(-1)),
        ("until", json!("soon")),
    ] {
        assert!(
            matches!(with(first(field, value.clone())), Err(ReadError::Content(_))),
            "{field} {value}"
        );
    }
    let many = |content: &mut Value| {
        let one = content["overrides"][0].clone();
        content["overrides"] = Value::Array(vec![one; 10_001]);
    };
    assert!(matches!(with(many), Err(ReadError::TooMany(10_001))));
    // Times beyond a clock are no reason to fail.
    for field in ["set_at", "until", "absent_since"] {
        assert!(with(first(field, json!(u64::MAX))).is_ok(), "{field}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index, by: u8) {
        let _ = file::parse(&bytes, now());
        let mut text = file::text(&some(now())).unwrap();
        let at = at.index(text.len());
        text[at] = by;
        let _ = file::parse(&text, now());
    }
}
