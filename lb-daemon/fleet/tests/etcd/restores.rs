//! An operator decides what is in force after etcd was restored from an old backup.

use std::collections::{BTreeMap, BTreeSet};

use lb_fleet::{
    Fleet,
    collect::{Collector, GRACE, HISTORY},
    commit::{Attempt, CommitError, Committed, Draft},
    documents::{FleetMember, Generation},
    lineage::{Conflict, LineageGuard},
    put_back::PutBackError,
};
use lb_model::Name;
use lb_sharing::epoch::{Contribution, Epoch};

use crate::{cluster::Cluster, commit, draft, look, name};

/// A guard that has what etcd has in force.
async fn guard(fleet: &Fleet) -> LineageGuard {
    let mut guard = LineageGuard::new(None);
    let lineage = look(fleet).await.lineage();
    assert_eq!(guard.offer(&lineage), Ok(()));
    guard.put_in_force(&lineage);
    guard
}

async fn restore(
    fleet: &Fleet,
    base: Option<&Committed>,
    in_force: &Generation,
    floor: u64,
) -> Committed {
    let attempt = Attempt::restore(base, &in_force.groups(), floor, with_groups(&["web", "new"]));
    fleet.commit(&attempt.unwrap()).await.unwrap()
}

fn with_groups(pools: &[&str]) -> Draft {
    let groups = pools.iter().map(|pool| (name(pool), name("eu"))).collect();
    Draft { groups, live: BTreeSet::from([name("lb-1"), name("lb-2")]), ..draft(b"restored") }
}

#[tokio::test]
async fn a_conflict_stays_until_a_restore_generation_comes() {
    let mut cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let early = guard(&fleet).await;
    let backup = cluster.save_snapshot();
    let second = Attempt::new(Some(&first), with_groups(&["web"])).unwrap();
    let second = fleet.commit(&second).await.unwrap();
    let third = commit(&fleet, Some(&second), b"three").await;
    let mut kept = guard(&fleet).await;
    cluster.restore(&backup).await;
    let older = Err(Conflict::Older { in_force: third.mod_revision, offered: first.mod_revision });
    assert_eq!(kept.offer(&look(&fleet).await.lineage()), older);
    // It goes on with another past, then up to where the revision is high enough.
    let mut last = first.clone();
    for content in ["other two", "other three", "other four"] {
        last = commit(&fleet, Some(&last), content.as_bytes()).await;
        assert_eq!(kept.offer(&look(&fleet).await.lineage()), older);
    }
    let stored = kept;
    let second = second.document.body;
    let restored = restore(&fleet, Some(&last), &second, 9).await;
    assert_eq!(restored.document.body.number, 10, "above the highest of any balancer");
    assert_eq!(restored.document.body.parent, Some(last.digest));
    let births = look(&fleet).await.births();
    let births: Vec<_> = births.keys().map(|it| (it.pool.to_string(), it.birth)).collect();
    assert_eq!(births, [("new".to_owned(), 10), ("web".to_owned(), 2)], "what is in force goes on");
    let mut at_restore = stored;
    let lineage = look(&fleet).await.lineage();
    assert_eq!(at_restore.offer(&lineage), Ok(()));
    assert!(at_restore.conflict().is_some(), "until it is in force");
    at_restore.put_in_force(&lineage);
    assert_eq!(at_restore.conflict(), None);
    assert_eq!(at_restore.in_force().unwrap().generation, Some((10, restored.digest)));
    // Later generations descend from it, for all that come later too.
    last = restored;
    for content in ["five", "six"] {
        last = commit(&fleet, Some(&last), content.as_bytes()).await;
        assert_eq!(last.document.body.restored, 10);
    }
    let lineage = look(&fleet).await.lineage();
    for mut guard in [stored, at_restore, early] {
        assert_eq!(guard.offer(&lineage), Ok(()));
    }
    // Restored again, to before the decision.
    let mut after = guard(&fleet).await;
    cluster.restore(&backup).await;
    assert!(after.offer(&look(&fleet).await.lineage()).is_err());
}

#[tokio::test]
async fn another_cluster_is_followed_if_the_operator_decides() {
    let (cluster, other) = (Cluster::start(1).await, Cluster::start(1).await);
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let mut kept = guard(&fleet).await;
    let elsewhere = other.fleet("lb-1").await;
    let empty = kept.offer(&look(&elsewhere).await.lineage());
    assert!(matches!(empty, Err(Conflict::OtherCluster { .. })), "{empty:?}");
    // Back at the first cluster it is still to be decided.
    assert_eq!(kept.offer(&look(&fleet).await.lineage()), empty);
    let mut decided = kept;
    decided.decide_for_etcd(&look(&fleet).await.lineage());
    assert_eq!(decided.offer(&look(&fleet).await.lineage()), Ok(()));
    let mut early = kept;
    let mut last = restore(&elsewhere, None, &first.document.body, 1).await;
    assert_eq!(early.offer(&look(&elsewhere).await.lineage()), Ok(()));
    // Also when etcd no longer has that generation.
    for number in 0..=HISTORY as u64 {
        last = commit(&elsewhere, Some(&last), &number.to_be_bytes()).await;
    }
    let now = std::time::UNIX_EPOCH.into();
    let collected = Collector::new(GRACE).collect(&elsewhere, now).await;
    assert_eq!(collected.map(|it| it.generations), Ok(2));
    assert_eq!(kept.offer(&look(&elsewhere).await.lineage()), Ok(()));
}

fn members(count: u16) -> BTreeMap<Name, FleetMember> {
    let member = |number: u16| FleetMember {
        address: ([192, 0, 2, 1], 7000 + number).into(),
        region: Some(name("eu")),
        incarnation: number.into(),
        epoch: 5,
        version: "0.1.0".into(),
        schema: 1,
    };
    (1..=count).map(|number| (name(&format!("lb-{number}")), member(number))).collect()
}

#[tokio::test]
async fn members_that_etcd_lost_are_put_back() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    // More than one transaction takes. One of them is there, as another one.
    let members = members(250);
    let there = FleetMember { incarnation: 99, ..members[&name("lb-7")].clone() };
    let newer = r#"{"format":9,"later":true}"#;
    cluster.etcdctl(&[0], &["put", "/spillway/edge/members/lb-8", newer]).unwrap();
    let other = cluster.fleet("lb-7").await;
    other.write_member(&there.clone().into(), 0).await.unwrap();
    let seen = look(&fleet).await;
    let last = fleet.put_back_members(&members, &seen).await.unwrap();
    let now = look(&fleet).await;
    assert_eq!(now.members_revision, last);
    let found = now.members.iter().map(|(name, it)| (name.clone(), it.document.body.clone()));
    let mut expected = members.clone();
    expected.insert(name("lb-7"), there);
    expected.remove(&name("lb-8"));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    assert!(now.unreadable.contains_key("/spillway/edge/members/lb-8"), "it was not overwritten");
    // Nothing is left to do.
    assert_eq!(fleet.put_back_members(&members, &now).await, Ok(last));
    // A member changed since it was looked.
    assert_eq!(fleet.put_back_members(&members, &seen).await, Err(PutBackError::Conflict));
    // The commit that follows compares the same.
    let draft = Draft { members_seen: seen.members_revision, ..with_groups(&["web"]) };
    let late = fleet.commit(&Attempt::new(None, draft).unwrap()).await;
    assert_eq!(late, Err(CommitError::MembersChanged));
    let draft = Draft { members_seen: last, ..with_groups(&["web"]) };
    fleet.commit(&Attempt::new(None, draft).unwrap()).await.unwrap();
}

#[tokio::test]
async fn the_last_epoch_is_put_back_and_a_later_one_stays() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let contributions: BTreeMap<_, _> =
        ["lb-1", "lb-2"].map(|text| (name(text), Contribution::default())).into();
    let epoch = |number: u64, forgotten: &str| Epoch {
        number,
        generation: 2,
        forgotten: BTreeSet::from([name(forgotten)]),
        contributions: contributions.clone(),
        closed: true,
    };
    let (old, last) = (epoch(9, "lb-8"), epoch(10, "lb-9"));
    fleet.put_back_epoch(&old, &*look(&fleet).await).await.unwrap();
    let seen = look(&fleet).await;
    assert_eq!(seen.epoch.as_deref(), Some(&old));
    // One that nobody can read, and one that was begun.
    cluster.etcdctl(&[0], &["put", "/spillway/edge/shares/1/lb-3", "{}"]).unwrap();
    assert_eq!(fleet.put_back_epoch(&last, &seen).await, Err(PutBackError::Conflict));
    fleet.put_back_epoch(&last, &*look(&fleet).await).await.unwrap();
    let now = look(&fleet).await;
    assert_eq!(now.epoch.as_deref(), Some(&last));
    assert!(now.epoch_base.others.is_empty(), "{:?}", now.epoch_base.others);
    for given in [&last, &old] {
        fleet.put_back_epoch(given, &now).await.unwrap();
        assert_eq!(look(&fleet).await.shares_revision, now.shares_revision, "nothing is written");
    }
}
