//! Leases and overrides.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use etcd_client::CompactionOptions;
use lb_fleet::{
    Document, EtcdError,
    documents::{Liveness, SharedOverride, WallTime},
    overrides::{OverrideChange, OverrideError, deletion, expired},
    presence::{LEASE, LeaseState},
};
use lb_model::overrides::Action;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Following,
    cluster::{Cluster, PATIENCE, until},
    commit, name,
};

pub(crate) fn liveness(revision: i64) -> Arc<Document<Liveness>> {
    Arc::new(Document::from(Liveness { revision, ..Liveness::default() }))
}

async fn held(state_rx: &mut watch::Receiver<LeaseState>, not: Option<i64>) -> i64 {
    let is_held =
        |state: &LeaseState| matches!(state, LeaseState::Held { lease } if Some(*lease) != not);
    match *timeout(PATIENCE, state_rx.wait_for(is_held)).await.unwrap().unwrap() {
        LeaseState::Held { lease } => lease,
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lost_lease_is_replaced_and_the_last_one_is_revoked() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut following = Following::new(&fleet);
    let (liveness_tx, liveness_rx) = watch::channel(liveness(1));
    let (state_tx, mut state_rx) = watch::channel(LeaseState::Waiting);
    let shutdown = CancellationToken::new();
    let staying = tokio::spawn(fleet.clone().stay_alive(liveness_rx, state_tx, shutdown.clone()));
    let first = held(&mut state_rx, None).await;
    let me = name("lb-1");
    let shown = |revision| {
        let me = me.clone();
        move |view: &lb_fleet::reader::View| {
            let alive = view.snapshot.as_ref().and_then(|it| it.alive.get(&me));
            alive.is_some_and(|it| it.document.body.revision == revision)
        }
    };
    let view = following.until("alive", shown(1)).await;
    assert_eq!(view.snapshot.unwrap().revision, 0, "liveness is no shared change");
    cluster.etcdctl(&[0], &["lease", "revoke", &format!("{first:x}")]).unwrap();
    let second = held(&mut state_rx, Some(first)).await;
    assert_ne!(first, second);
    liveness_tx.send_replace(liveness(2));
    following.until("shown anew", shown(2)).await;
    // Deleted, or held by another lease: it is shown again under the lease that is renewed.
    let key = "/spillway/edge/alive/lb-1";
    cluster.etcdctl(&[0], &["del", key]).unwrap();
    let holder = || {
        let fields = cluster.etcdctl(&[0], &["get", key, "-w=fields"])?;
        fields.lines().find_map(|line| line.strip_prefix("\"Lease\" : ")?.parse::<i64>().ok())
    };
    until("the key again", async || holder().filter(|it| *it == second)).await;
    let other = cluster.etcdctl(&[0], &["lease", "grant", "600"]).unwrap();
    let other = other.split_whitespace().nth(1).unwrap();
    cluster.etcdctl(&[0], &["put", key, "{}", &format!("--lease={other}")]).unwrap();
    until("the key again", async || holder().filter(|it| *it == second)).await;
    cluster.etcdctl(&[0], &["lease", "revoke", other]).unwrap();
    shutdown.cancel();
    timeout(PATIENCE, staying).await.unwrap().unwrap();
    let leases = cluster.etcdctl(&[0], &["lease", "list"]).unwrap();
    assert!(leases.starts_with("found 0 leases"), "{leases}");
    let is_gone = |view: &lb_fleet::reader::View| {
        view.snapshot.as_ref().is_some_and(|it| !it.alive.contains_key(&me))
    };
    following.until("gone", is_gone).await;
}

/// etcd grants no lease then, so a balancer that gave its lease up would seem dead.
#[tokio::test]
async fn a_lease_survives_that_etcd_has_no_space() {
    let cluster = Cluster::start_with_quota(4 << 20).await;
    let fleet = cluster.fleet("lb-1").await;
    let (liveness_tx, liveness_rx) = watch::channel(liveness(1));
    let (state_tx, mut state_rx) = watch::channel(LeaseState::Waiting);
    let shutdown = CancellationToken::new();
    let staying = tokio::spawn(fleet.stay_alive(liveness_rx, state_tx, shutdown.clone()));
    let first = held(&mut state_rx, None).await;
    let endpoints = cluster.settings("lb-1").endpoints;
    let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
    let mut writes = 0;
    while client.put("fill", vec![0; 1 << 20], None).await.is_ok() {
        writes += 1;
        assert!(writes < 100, "the quota is not kept");
    }
    liveness_tx.send_replace(liveness(2));
    let unshown = LeaseState::Unshown { lease: first, error: EtcdError::NoSpace };
    timeout(PATIENCE, state_rx.wait_for(|it| *it == unshown)).await.unwrap().unwrap();
    let seen = Instant::now();
    let key = "/spillway/edge/alive/lb-1";
    while seen.elapsed() < Duration::from_secs(LEASE.unsigned_abs() + 5) {
        let value = cluster.etcdctl(&[0], &["get", key, "--print-value-only"]).unwrap();
        assert!(value.contains("\"revision\":1"), "{value}");
        assert_eq!(*state_rx.borrow(), unshown);
        sleep(Duration::from_secs(1)).await;
    }
    let revision = client.delete("fill", None).await.unwrap().header().unwrap().revision();
    client.compact(revision, Some(CompactionOptions::new().with_physical())).await.unwrap();
    client.defragment().await.unwrap();
    cluster.etcdctl(&[0], &["alarm", "disarm"]).unwrap();
    assert_eq!(held(&mut state_rx, None).await, first);
    let value = cluster.etcdctl(&[0], &["get", key, "--print-value-only"]).unwrap();
    assert!(value.contains("\"revision\":2"), "{value}");
    shutdown.cancel();
    timeout(PATIENCE, staying).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_does_not_change_is_not_written() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let (liveness_tx, liveness_rx) = watch::channel(liveness(1));
    let (state_tx, mut state_rx) = watch::channel(LeaseState::Waiting);
    let shutdown = CancellationToken::new();
    let staying = tokio::spawn(fleet.stay_alive(liveness_rx, state_tx, shutdown.clone()));
    held(&mut state_rx, None).await;
    for _ in 0..5 {
        liveness_tx.send_replace(liveness(1));
        tokio::task::yield_now().await;
    }
    liveness_tx.send_replace(liveness(2));
    let fields = ["get", "/spillway/edge/alive/lb-1", "-w=fields"];
    let version = until("the second value", async || {
        let fields = cluster.etcdctl(&[0], &fields)?;
        let line = fields.lines().find(|line| line.starts_with("\"Version\""))?.to_owned();
        fields.contains("\\\"revision\\\":2").then_some(line)
    })
    .await;
    assert_eq!(version, "\"Version\" : 2");
    shutdown.cancel();
    timeout(PATIENCE, staying).await.unwrap().unwrap();
}

#[tokio::test]
async fn overrides_compare_what_they_replace_and_expire_once() {
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    let key = "pools/web/backends/192.0.2.1/drain".parse::<lb_model::overrides::Key>().unwrap();
    let at = |seconds| WallTime::from(UNIX_EPOCH + Duration::from_secs(seconds));
    let value = Document::from(SharedOverride {
        action: Action::Drain,
        author: "alice".into(),
        reason: String::new(),
        set_at: at(1),
        until: Some(at(100)),
    });
    let set = [OverrideChange { key: key.clone(), expected: 0, value: Some(value.clone()) }];
    let revision = fleet.change_overrides(&set).await.unwrap();
    assert_eq!(other.change_overrides(&set).await, Err(OverrideError::Conflict));
    let mut following = Following::new(&fleet);
    let is_at = |revision| {
        move |view: &lb_fleet::reader::View| {
            view.snapshot.as_ref().is_some_and(|it| it.revision == revision)
        }
    };
    let snapshot = following.until("set", is_at(revision)).await.snapshot.unwrap();
    assert_eq!(snapshot.overrides[&key].document, value);
    assert_eq!(expired(&snapshot, at(99)), []);
    let over = expired(&snapshot, at(100));
    assert_eq!(over.len(), 1);
    let deleted = fleet.change_overrides(&over).await.unwrap();
    assert_eq!(other.change_overrides(&over).await, Err(OverrideError::Conflict));
    let snapshot = following.until("deleted", is_at(deleted)).await.snapshot.unwrap();
    assert!(snapshot.overrides.is_empty());
    let region = "regions/eu/disable".parse().unwrap();
    let disable = SharedOverride { action: Action::Disable, ..value.body };
    let change = OverrideChange { key: region, expected: 0, value: Some(disable.into()) };
    assert_eq!(
        fleet.change_overrides(&[change]).await.unwrap_err().to_string(),
        "/spillway/edge/overrides/disable/regions/eu: is malformed: only single backends can be disabled; drain it"
    );
    let many = vec![set[0].clone(); 101];
    assert_eq!(fleet.change_overrides(&many).await, Err(OverrideError::TooMany(101)));
}

#[tokio::test]
async fn an_override_without_its_object_ends_only_in_the_generation_that_was_seen() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let key = "backends/192.0.2.1/drain".parse::<lb_model::overrides::Key>().unwrap();
    let now = WallTime::from(UNIX_EPOCH);
    let (author, reason) = ("alice".into(), String::new());
    let drain = SharedOverride { action: Action::Drain, author, reason, set_at: now, until: None };
    let set = |expected| OverrideChange {
        key: key.clone(),
        expected,
        value: Some(Document::from(drain.clone())),
    };
    let without = commit(&fleet, None, b"without").await;
    fleet.change_overrides(&[set(0)]).await.unwrap();
    let snapshot = Following::new(&fleet).until_generation(1).await;
    assert_eq!(deletion(&snapshot, &"regions/eu/drain".parse().unwrap()), None);
    let gone = [deletion(&snapshot, &key).unwrap()];
    // It was set anew, for a backend that is to come.
    let again = fleet.change_overrides(&[set(gone[0].expected)]).await.unwrap();
    let ended = fleet.change_overrides_in(Some(without.mod_revision), &gone).await;
    assert_eq!(ended, Err(OverrideError::Conflict));
    let gone = [OverrideChange { expected: again, ..gone[0].clone() }];
    // The backend is back, which whoever ends it has not seen.
    let with = commit(&fleet, Some(&without), b"with").await;
    let ended = fleet.change_overrides_in(Some(without.mod_revision), &gone).await;
    assert_eq!(ended, Err(OverrideError::Conflict));
    fleet.change_overrides_in(Some(with.mod_revision), &gone).await.unwrap();
}
