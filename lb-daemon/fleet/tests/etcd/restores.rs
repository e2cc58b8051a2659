//! An operator decides what is in force after etcd was restored from an old backup.

use std::collections::BTreeSet;

use lb_fleet::{
    Fleet,
    commit::{Attempt, Committed, Draft},
    documents::Generation,
    lineage::{Conflict, LineageGuard},
};

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
    let attempt = Attempt::restore(base, Some(in_force), floor, with_groups(&["web", "new"]));
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
        assert!(!last.document.body.is_restore);
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
    restore(&elsewhere, None, &first.document.body, 1).await;
    assert_eq!(kept.offer(&look(&elsewhere).await.lineage()), Ok(()));
}
