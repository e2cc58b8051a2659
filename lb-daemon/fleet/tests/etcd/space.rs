//! How much room etcd's database has left.

use lb_fleet::space::{DEFAULT_QUOTA, EtcdSpace};

use crate::{
    cluster::{Cluster, until},
    commit, noise,
};

#[tokio::test]
async fn the_size_of_the_database_is_known_and_what_of_it_is_used() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut last = commit(&fleet, None, b"one").await;
    for length in 1..20 {
        last = commit(&fleet, Some(&last), &noise(400_000 + length)).await;
    }
    let full = until("all is written", async || {
        Some(fleet.space().await.unwrap()).filter(|space| space.in_use > 19 * 400_000)
    })
    .await;
    // The file grows in steps.
    assert!((full.in_use..=cluster.database_size(0)).contains(&full.size), "{full:?}");
    assert_eq!(full.quota, DEFAULT_QUOTA, "this etcd does not say it, or has none set");
    cluster.etcdctl(&[0], &["del", "--prefix", "/spillway/edge/chunks/"]).unwrap();
    cluster
        .etcdctl(&[0], &["compact", &(last.mod_revision + 1).to_string(), "--physical"])
        .unwrap();
    // Pages are free from the next write on.
    let emptied = until("little used", async || {
        cluster.etcdctl(&[0], &["put", "/other", "1"]).unwrap();
        Some(fleet.space().await.unwrap()).filter(|space| space.in_use < 1_000_000)
    })
    .await;
    assert!(emptied.size >= full.size, "{emptied:?}: its file gets no smaller by itself");
    cluster.etcdctl(&[0], &["defrag"]).unwrap();
    let EtcdSpace { size, .. } = fleet.space().await.unwrap();
    assert!(size < 1_000_000, "{size}");
}

#[tokio::test]
async fn the_fullest_of_the_servers_that_answer_counts() {
    let mut cluster = Cluster::start(3).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut last = commit(&fleet, None, b"one").await;
    for length in 1..10 {
        last = commit(&fleet, Some(&last), &noise(400_000 + length)).await;
    }
    cluster.etcdctl(&[0], &["compact", &last.mod_revision.to_string(), "--physical"]).unwrap();
    cluster.etcdctl(&[0], &["del", "--prefix", "/spillway/edge/"]).unwrap();
    let revision = (last.mod_revision + 1).to_string();
    cluster.etcdctl(&[0], &["compact", &revision, "--physical"]).unwrap();
    for node in [0, 1] {
        cluster.etcdctl(&[node], &["defrag"]).unwrap();
    }
    let before = fleet.space().await.unwrap();
    assert!(before.size > 9 * 400_000, "{before:?}: that of the third");
    cluster.kill(2);
    let after = fleet.space().await.unwrap();
    assert!(after.size < 1_000_000, "{after:?}: the others are defragmented");
}
