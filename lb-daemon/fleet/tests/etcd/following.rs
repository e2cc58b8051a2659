//! What a reader shows while etcd fails, falls behind, or comes back as another one.

use std::{collections::BTreeSet, time::Duration};

use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use lb_fleet::{
    DocumentError, EtcdError, Fleet,
    collect::{CollectError, Collector},
    commit::{CommitError, Committed},
    documents::SharedOverride,
    lineage::{Conflict, InForce},
    overrides::OverrideChange,
    reader::{Connection, LossCause, View},
};
use lb_model::overrides::Action;
use lb_pieces::Digest;

use crate::{
    Following,
    cluster::{Cluster, until},
    commit,
};

fn is_connected(view: &View) -> bool {
    view.connection == Connection::Connected
}

fn is_lost(view: &View) -> bool {
    matches!(view.connection, Connection::Lost { .. })
}

/// The first generation of a cluster, and a reader that follows it.
async fn first_generation(cluster: &Cluster) -> (Fleet, Committed, Following) {
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let mut following = Following::new(&fleet);
    following.until_generation(1).await;
    (fleet, first, following)
}

#[tokio::test]
async fn a_watch_survives_the_death_of_the_leader() {
    let mut cluster = Cluster::start(3).await;
    let (fleet, first, mut following) = first_generation(&cluster).await;
    let leader = cluster.leader().await;
    cluster.kill(leader);
    assert_ne!(cluster.leader().await, leader);
    // A request may meet the dead server; the same attempt is committed again until it is known to be applied.
    let attempt = crate::attempt(Some(&first), b"two");
    until("commit", async || fleet.commit(&attempt).await.ok()).await;
    following.until_generation(2).await;
    cluster.start_node(leader);
    following.until("connected", is_connected).await;
}

#[tokio::test]
async fn all_servers_go_and_come_back() {
    let mut cluster = Cluster::start(1).await;
    let (fleet, first, mut following) = first_generation(&cluster).await;
    cluster.kill_all();
    let lost = following.until("lost", is_lost).await;
    assert_eq!(crate::generation(&lost), Some(1), "what is known stays");
    cluster.start_all();
    let view = following.until("connected", is_connected).await;
    assert_eq!(crate::generation(&view), Some(1));
    let attempt = crate::attempt(Some(&first), b"two");
    until("commit", async || fleet.commit(&attempt).await.ok()).await;
    following.until_generation(2).await;
}

#[tokio::test]
async fn without_a_quorum_the_reader_says_so_and_keeps_what_it_has() {
    let mut cluster = Cluster::start(3).await;
    let (_fleet, _, mut following) = first_generation(&cluster).await;
    cluster.kill(0);
    cluster.kill(1);
    let without_quorum = |view: &View| {
        matches!(
            view.connection,
            Connection::Lost { cause: LossCause::Etcd(EtcdError::NoQuorum(_)), .. }
        )
    };
    let view = following.until("without a quorum", without_quorum).await;
    assert!(view.connection.sentence().unwrap().starts_with("etcd has no quorum: "));
    assert_eq!(crate::generation(&view), Some(1));
    cluster.start_node(0);
    following.until("connected", is_connected).await;
}

#[tokio::test]
async fn compaction_while_disconnected_loses_nothing() {
    let mut cluster = Cluster::start(1).await;
    let (_fleet, first, mut following) = first_generation(&cluster).await;
    cluster.kill_all();
    following.until("lost", is_lost).await;
    cluster.start_all();
    let writer = cluster.fleet("lb-2").await;
    let attempt = crate::attempt(Some(&first), b"two");
    let mut last = until("commit", async || writer.commit(&attempt).await.ok()).await;
    for number in 0..10u8 {
        last = commit(&writer, Some(&last), &[number]).await;
    }
    let revision = last.mod_revision.to_string();
    cluster.etcdctl(&[0], &["compact", &revision, "--physical"]).unwrap();
    let snapshot = following.until_generation(12).await;
    assert_eq!(snapshot.links.len(), 12);
    assert_eq!(snapshot.revision, last.mod_revision);
}

#[tokio::test]
async fn an_older_backup_is_a_conflict() {
    let mut cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let backup = cluster.save_snapshot();
    let second = commit(&fleet, Some(&first), b"two").await;
    let mut following = Following::new(&fleet);
    let snapshot = following.until_generation(2).await;
    let in_force = InForce {
        cluster: snapshot.cluster,
        revision: snapshot.revision,
        generation: Some((2, second.digest)),
    };
    assert_eq!(snapshot.lineage().check(&in_force), Ok(()));
    cluster.restore(&backup).await;
    let restored = following.until_generation(1).await;
    let older = Conflict::Older { in_force: second.mod_revision, offered: first.mod_revision };
    assert_eq!(restored.lineage().check(&in_force), Err(older));
    // Later the revision is as high again, and the generation too, but with another past.
    let mut last = first;
    for content in ["other two", "other three"] {
        last = commit(&fleet, Some(&last), content.as_bytes()).await;
    }
    let snapshot = following.until_generation(3).await;
    let conflict = Conflict::NotDescended { in_force: 2, offered: 3 };
    assert_eq!(snapshot.lineage().check(&in_force), Err(conflict));
    let other = Cluster::start(1).await;
    let elsewhere = other.fleet("lb-1").await;
    commit(&elsewhere, None, b"one").await;
    let snapshot = Following::new(&elsewhere).until_generation(1).await;
    let conflict = snapshot.lineage().check(&in_force).unwrap_err();
    assert!(matches!(conflict, Conflict::OtherCluster { .. }), "{conflict}");
}

#[tokio::test]
async fn hostile_keys_and_values_are_named_and_change_nothing_else() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let hostile = [
        ("members/lb-9", "{"),
        ("alive/lb-9", "\u{7f}"),
        ("overrides/drain/pools/web", r#"{"format":2}"#),
        (
            "overrides/scale/pools/web",
            r#"{"format":1,"action":"drain","author":"","reason":"","set_at":1,"until":null}"#,
        ),
        ("members/../../x", "1"),
        ("config/history/-1", "1"),
        ("chunks/xyz", "1"),
        ("\u{1b}[31m", "1"),
    ];
    let mut following = Following::new(&fleet);
    following.until_generation(1).await;
    for (key, value) in hostile {
        cluster.etcdctl(&[0], &["put", "--", &format!("/spillway/edge/{key}"), value]).unwrap();
    }
    let second = commit(&fleet, Some(&first), b"two").await;
    // As they come in by the watch, and as they are read at the start.
    let mut read_later = Following::new(&fleet);
    for snapshot in [following.until_generation(2).await, read_later.until_generation(2).await] {
        let unreadable: Vec<_> = snapshot.unreadable.keys().map(String::as_str).collect();
        assert!(unreadable.contains(&"/spillway/edge/members/lb-9"), "{unreadable:?}");
        assert!(unreadable.contains(&"/spillway/edge/overrides/drain/pools/web"));
        let other_kind = &snapshot.unreadable["/spillway/edge/overrides/scale/pools/web"];
        let sentence =
            "/spillway/edge/overrides/scale/pools/web: is malformed: its action is drain";
        assert_eq!(other_kind.to_string(), sentence);
        assert!(snapshot.members.is_empty() && snapshot.overrides.is_empty());
    }
    // A current generation of a newer version: what is in force stays, and the reason is shown.
    let current = "/spillway/edge/config/current";
    cluster.etcdctl(&[0], &["put", current, r#"{"format":7}"#]).unwrap();
    let newer = DocumentError::Newer { key: current.into(), format: 7 };
    let has_error = |view: &View| {
        view.snapshot.as_ref().is_some_and(|it| it.configuration_error == Some(newer.clone()))
    };
    let view = following.until("unreadable", has_error).await;
    assert_eq!(view.connection, Connection::Connected);
    assert_eq!(crate::generation(&view), Some(second.document.body.number));
    assert_eq!(view.snapshot.unwrap().unreadable[current], newer);
    // What it refers to is unknown, so nothing is removed.
    let now = std::time::UNIX_EPOCH.into();
    let refused = Collector::new(Duration::ZERO).collect(&fleet, now).await;
    assert_eq!(refused, Err(CollectError::Unreadable(newer)));
}

/// What changes beside a configuration that cannot be used, because of what `spoil` has etcdctl do, is followed.
async fn follows_beside(
    cluster: &Cluster,
    spoil: &[&str],
    is_expected: impl Fn(&DocumentError) -> bool,
) {
    let (fleet, _, following) = first_generation(cluster).await;
    // One that has the last configuration, one that reads all again every moment, and one that starts now.
    let mut all = [following, Following::reading_again(&fleet, Duration::from_millis(50))];
    all[1].until_generation(1).await;
    cluster.etcdctl(&[0], spoil).unwrap();
    let member = r#"{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":4}"#;
    cluster.etcdctl(&[0], &["put", "/spillway/edge/members/lb-9", member]).unwrap();
    let drain = r#"{"format":1,"action":"drain","author":"","reason":"","set_at":1,"until":null}"#;
    cluster.etcdctl(&[0], &["put", "/spillway/edge/overrides/drain/pools/web", drain]).unwrap();
    let follows = |view: &View| {
        let followed = view.snapshot.as_ref().filter(|it| {
            let error = it.configuration_error.as_ref();
            it.overrides.len() == 1 && it.members.len() == 1 && error.is_some_and(&is_expected)
        });
        followed.is_some() && is_connected(view)
    };
    for following in &mut all {
        let view = following.until("beside it", follows).await;
        assert_eq!(crate::generation(&view), Some(1), "the last one stays");
        let snapshot = view.snapshot.unwrap();
        assert!(snapshot.unreadable.contains_key("/spillway/edge/config/current"));
        assert_eq!(snapshot.configuration.as_ref().unwrap().bytes[..], *b"one");
    }
    let view = Following::new(&fleet).until("beside it", follows).await;
    assert_eq!(crate::generation(&view), None);
    // That is no conflict, since the generation is only unknown.
    let lineage = view.snapshot.unwrap().lineage();
    let (cluster_id, revision) = (lineage.cluster, lineage.revision);
    let digest = Digest::new(b"any");
    let in_force = InForce { cluster: cluster_id, revision, generation: Some((9, digest)) };
    assert_eq!(lineage.check(&in_force), Ok(()));
    let later = InForce { revision: revision + 1, ..in_force };
    assert_eq!(
        lineage.check(&later),
        Err(Conflict::Older { in_force: revision + 1, offered: revision })
    );
    // A configuration that can be used ends it.
    let good = r#"{"format":1,"number":2,"parent":null,"attempt":"","pieces":[],"size":0,"live":[],"births":{},"settles_ms":0,"author":"","reason":"","applied_at":1}"#;
    cluster.etcdctl(&[0], &["put", "/spillway/edge/config/current", good]).unwrap();
    for following in &mut all {
        let snapshot = following.until_generation(2).await;
        assert_eq!(snapshot.configuration_error, None);
        assert!(snapshot.unreadable.is_empty(), "{:?}", snapshot.unreadable);
    }
}

#[tokio::test]
async fn a_newer_configuration_keeps_no_other_change_from_being_followed() {
    let cluster = Cluster::start(1).await;
    let spoil = ["put", "/spillway/edge/config/current", r#"{"format":7}"#];
    follows_beside(&cluster, &spoil, |error| matches!(error, DocumentError::Newer { .. })).await;
}

#[tokio::test]
async fn a_damaged_configuration_keeps_no_other_change_from_being_followed() {
    let cluster = Cluster::start(1).await;
    let lacking = r#"{"format":1,"number":2,"parent":null,"attempt":"","pieces":["0000000000000000000000000000000000000000000000000000000000000000"],"size":1,"live":[],"births":{},"settles_ms":0,"author":"","reason":"","applied_at":1}"#;
    let spoil = ["put", "/spillway/edge/config/current", lacking];
    let zeros = "0".repeat(64);
    let sentence = format!("/spillway/edge/config/current: is damaged: piece {zeros} is missing");
    follows_beside(&cluster, &spoil, |error| error.to_string() == sentence).await;
}

#[tokio::test]
async fn a_revision_is_never_shown_before_what_changed() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut last = commit(&fleet, None, b"").await;
    let mut following = Following::reading_again(&fleet, Duration::from_millis(50));
    following.until_generation(1).await;
    let writer = cluster.fleet("lb-2").await;
    tokio::spawn(async move {
        for number in 1..100u8 {
            last = commit(&writer, Some(&last), &[number]).await;
        }
    });
    let is_last = |view: &View| {
        let snapshot = view.snapshot.as_ref().unwrap();
        let committed = &snapshot.configuration.as_ref().unwrap().committed;
        assert_eq!(snapshot.revision, committed.mod_revision);
        assert_eq!(snapshot.links.len() as u64, committed.document.body.number);
        committed.document.body.number == 100
    };
    following.until("the last generation", is_last).await;
}

#[tokio::test]
async fn many_keys_are_read_in_pages() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let body = SharedOverride {
        action: Action::Drain,
        author: "alice".into(),
        reason: String::new(),
        set_at: std::time::UNIX_EPOCH.into(),
        until: None,
    };
    let changes: Vec<_> = (0..450u16)
        .map(|number| OverrideChange {
            key: format!("backends/2001:db8::{number:x}/drain").parse().unwrap(),
            expected: 0,
            value: Some(body.clone().into()),
        })
        .collect();
    let mut revision = 0;
    for changes in changes.chunks(90) {
        revision = fleet.change_overrides(changes).await.unwrap();
    }
    let mut following = Following::new(&fleet);
    let snapshot = following.until("read", |view| view.snapshot.is_some()).await.snapshot.unwrap();
    assert!(
        snapshot.overrides.keys().eq(changes.iter().map(|it| &it.key).collect::<BTreeSet<_>>())
    );
    assert_eq!(snapshot.revision, revision);
}

/// Keys of a page have more than an answer takes: 120 of 700 KiB each, as large as a generation may be.
#[tokio::test]
async fn large_values_are_read_in_smaller_pages() {
    let cluster = Cluster::start(1).await;
    let endpoints = cluster.settings("lb-1").endpoints;
    let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
    let keys: BTreeSet<_> = (0..120)
        .map(|host| format!("/spillway/edge/overrides/drain/backends/192.0.2.{host}"))
        .collect();
    for key in &keys {
        client.put(key.as_str(), vec![b'x'; 700 << 10], None).await.unwrap();
    }
    let fleet = cluster.fleet("lb-1").await;
    let is_read = |view: &View| view.snapshot.is_some();
    let view = Following::new(&fleet).until("read", is_read).await;
    assert!(view.snapshot.unwrap().unreadable.keys().eq(&keys));
}

#[tokio::test]
async fn a_full_etcd_is_read_and_refuses_changes() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let endpoints = cluster.settings("lb-1").endpoints;
    let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
    let member = cluster.member_id(0);
    let mut options = AlarmOptions::new();
    options.with_member(member);
    client.alarm(AlarmAction::Activate, AlarmType::Nospace, Some(options.clone())).await.unwrap();
    let mut following = Following::reading_again(&fleet, Duration::from_millis(100));
    let view = following.until("read", |view| view.snapshot.is_some()).await;
    assert_eq!(view.connection, Connection::NoSpace);
    assert_eq!(crate::generation(&view), Some(1));
    let refused = fleet.commit(&crate::attempt(Some(&first), b"one")).await;
    assert_eq!(refused, Err(CommitError::Unknown(EtcdError::NoSpace)));
    client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options)).await.unwrap();
    // No watch tells: it is found because all is read again.
    following.until("connected", is_connected).await;
}
