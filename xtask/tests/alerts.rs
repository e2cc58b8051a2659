//! Each alert rule has a test of its own in tests/alerts.yaml, and a line in docs/observability.md. promtool runs the tests
//! (`cargo xtask test alerts`), but does not miss any.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeSet, fs, path::Path};

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).unwrap()
}

/// What follows a key at the beginning of a line.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix(key)).collect()
}

/// The names of the rules.
fn alerts(rules: &str) -> BTreeSet<String> {
    let names = values(rules, "- alert: ");
    let set: BTreeSet<_> = names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(set.len(), names.len(), "two rules have one name");
    set
}

#[test]
fn each_alert_has_a_test_in_which_one_instance_fires_and_another_does_not() {
    let (rules, tests) = (read("packaging/observability/alerts.yaml"), read("tests/alerts.yaml"));
    let mut untested = alerts(&rules);
    assert!(untested.len() > 20, "{}", untested.len());
    for test in tests.split("\n  - name: ").skip(1) {
        let (name, body) = test.split_once('\n').unwrap();
        if !untested.remove(name) {
            assert_eq!(name, "texts", "there is no such alert, or it has two tests");
            continue;
        }
        for instance in ["bad", "good"] {
            let series = format!("instance=\"{instance}\"");
            assert!(body.contains(&series), "{name}: no series of {instance}");
        }
        let fires = format!("alertname=\"{name}\"");
        assert!(body.contains(&fires), "{name}: nothing says that it fires");
    }
    assert_eq!(untested, BTreeSet::new(), "alerts without a test in tests/alerts.yaml");
}

/// The table names several alerts of one prefix as `SpillwayLoopStalled`, `…Busy`.
#[test]
fn each_alert_is_in_the_table_of_the_document() {
    let document = read("docs/observability.md");
    let rows = document.lines().filter(|line| line.starts_with("| `Spillway"));
    let mut documented = BTreeSet::new();
    for row in rows {
        let names = row.trim_start_matches("| ").split(" | ").next().unwrap().split(", ");
        documented.extend(names.map(|name| name.trim_matches('`').to_owned()));
    }
    let missing =
        alerts(&read("packaging/observability/alerts.yaml")).into_iter().filter(|alert| {
            let is_alert = |name: &String| match name.strip_prefix('…') {
                Some(end) => alert.ends_with(end),
                None => name == alert,
            };
            !documented.iter().any(is_alert)
        });
    assert_eq!(
        missing.collect::<Vec<_>>(),
        [""; 0],
        "alerts that docs/observability.md leaves out"
    );
}
