//! Balancers of other versions beside this one: what they write is put by etcdctl, as their programs would.

use std::time::UNIX_EPOCH;

use lb_fleet::{
    Document,
    commit::{Attempt, CommitError, Draft},
    documents::{SharedOverride, WallTime},
    overrides::{OverrideChange, OverrideError},
    reader::Understood,
};
use lb_model::overrides::{Action, Key};

use crate::{attempt, cluster::Cluster, commit, draft, look, name};

fn put(cluster: &Cluster, key: &str, value: &str) {
    let key = format!("/spillway/edge/{key}");
    cluster.etcdctl(&[0], &["put", &key, value]).unwrap();
}

fn value(cluster: &Cluster, key: &str) -> String {
    let key = format!("/spillway/edge/{key}");
    cluster.etcdctl(&[0], &["get", "--print-value-only", &key]).unwrap().trim().to_owned()
}

#[tokio::test]
async fn each_member_says_what_it_understands() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let member = |more: &str| {
        format!(
            r#"{{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":4,"epoch":0{more}}}"#
        )
    };
    let alive = |more: &str| {
        format!(r#"{{"format":1,"revision":7,"tables":{{}},"conditions":[],"version":{more}}}"#)
    };
    let last = r#","version":"0.1.0","schema":1"#;
    // A newer one, with a field that is not known here; one from before versions were said; one that was upgraded since
    // its last start was written; one that is not alive; and one that cannot be read.
    put(&cluster, "members/lb-1", &member(r#","version":"0.2.0","schema":2,"rack":9"#));
    put(&cluster, "alive/lb-1", &alive(r#""0.2.0","schema":2,"rack":9"#));
    put(&cluster, "members/lb-2", &member(""));
    put(&cluster, "alive/lb-2", &alive(r#""0.0.9""#));
    put(&cluster, "members/lb-3", &member(last));
    put(&cluster, "alive/lb-3", &alive(r#""0.3.0","schema":3"#));
    put(&cluster, "members/lb-4", &member(last));
    put(&cluster, "members/lb-5", r#"{"format":2}"#);
    put(&cluster, "alive/lb-5", r#"{"format":2}"#);
    let understood = |version: &str, schema, is_alive| Understood {
        schema,
        version: version.to_owned(),
        is_alive,
    };
    let expected = [
        ("lb-1", understood("0.2.0", 2, true)),
        ("lb-2", understood("0.0.9", 1, true)),
        ("lb-3", understood("0.3.0", 3, true)),
        ("lb-4", understood("0.1.0", 1, false)),
    ];
    let expected = expected.map(|(text, it)| (name(text), it));
    assert_eq!(look(&fleet).await.understood(), expected.into());
}

/// What was seen of the members holds while a generation is committed: another version that is started writes its key.
#[tokio::test]
async fn a_commit_fails_if_another_version_was_started_meanwhile() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let member = |version: &str, schema| {
        format!(
            r#"{{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":4,"version":"{version}","schema":{schema}}}"#
        )
    };
    put(&cluster, "members/lb-2", &member("0.2.0", 2));
    let seen = look(&fleet).await;
    put(&cluster, "members/lb-2", &member("0.1.0", 1));
    let draft = Draft { members_seen: seen.members_revision, ..draft(b"needs 2") };
    let attempt = Attempt::new(None, draft).unwrap();
    assert_eq!(fleet.commit(&attempt).await, Err(CommitError::MembersChanged));
    assert!(look(&fleet).await.configuration.is_none());
}

/// A value of a newer format is neither replaced nor deleted, whoever tries it.
#[tokio::test]
async fn what_a_newer_version_wrote_is_not_written_over() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let base = commit(&fleet, None, b"one").await;
    const NEWER: &str = r#"{"format":2,"pieces":"elsewhere"}"#;
    put(&cluster, "config/current", NEWER);
    let refused = fleet.commit(&attempt(Some(&base), b"two")).await.unwrap_err();
    let sentence = "has format 2, and this version reads up to 1: upgrade this balancer";
    assert!(refused.to_string().contains(sentence), "{refused}");
    assert_eq!(value(&cluster, "config/current"), NEWER);

    let key: Key = "pools/web/drain".parse().unwrap();
    let document = Document::from(SharedOverride {
        action: Action::Drain,
        author: "alice".into(),
        reason: String::new(),
        set_at: WallTime::from(UNIX_EPOCH),
        until: None,
    });
    put(&cluster, "overrides/drain/pools/web", NEWER);
    put(&cluster, "homes/eu/web", NEWER);
    put(&cluster, "members/lb-9", NEWER);
    let seen = look(&fleet).await;
    assert!(!seen.overrides.contains_key(&key));
    for value in [Some(document), None] {
        let change = OverrideChange { key: key.clone(), expected: 0, value };
        assert_eq!(fleet.change_overrides(&[change]).await, Err(OverrideError::Conflict));
    }
    assert_eq!(value(&cluster, "overrides/drain/pools/web"), NEWER);
    let newer: Vec<_> = seen.newer_values().map(ToString::to_string).collect();
    let named = |key: &str| format!("/spillway/edge/{key}: {sentence}");
    // A member that cannot be read stops epochs, and is no value that is followed.
    assert_eq!(newer, [named("homes/eu/web"), named("overrides/drain/pools/web")]);
    assert!(seen.members.is_empty());
}
