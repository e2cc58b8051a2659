//! Members that join, change, leave and are removed, and what is marked out.

use std::{
    collections::BTreeSet,
    time::{Duration, UNIX_EPOCH},
};

use lb_model::plan::MarkedOut;

use lb_fleet::{
    Document, Fleet,
    documents::{FleetMember, Homes},
    homes::{HomesChange, HomesError},
    members::MemberError,
};
use lb_sharing::epoch::{Contribution, EpochStep, Forgotten};

use crate::{Following, attempt, cluster::Cluster, commit, look, name};

pub(crate) fn member(epoch: u64) -> Document<FleetMember> {
    let address = "192.0.2.1:7000".parse().unwrap();
    FleetMember { address, region: None, incarnation: 1, epoch, version: "0.1.0".into(), schema: 1 }
        .into()
}

/// Opens an epoch that forgets a balancer which is not there.
async fn open_epoch(fleet: &Fleet, number: u64) {
    let gone = BTreeSet::from([name("lb-9")]);
    let forgotten = Forgotten { gone, ..Forgotten::default() };
    let step = EpochStep::Open { number, forgotten };
    assert_eq!(fleet.write_epoch_step(&step, &*look(fleet).await).await, Ok(true));
}

async fn close_epoch(fleet: &Fleet) {
    for step in [EpochStep::Contribute(Contribution::default()), EpochStep::Close] {
        assert_eq!(fleet.write_epoch_step(&step, &*look(fleet).await).await, Ok(true));
    }
}

#[tokio::test]
async fn a_member_is_written_if_it_is_as_it_was_seen() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let joined = fleet.write_member(&member(3), 0).await.unwrap();
    let conflict = Err(MemberError::Conflict(name("lb-1")));
    assert_eq!(fleet.write_member(&member(4), 0).await, conflict);
    let snapshot = look(&fleet).await;
    assert_eq!(snapshot.members[&name("lb-1")].mod_revision, joined);
    assert_eq!(snapshot.membership().members, [(name("lb-1"), 3)].into());
    let changed = fleet.write_member(&member(5), joined).await.unwrap();
    assert_eq!(fleet.write_member(&member(6), joined).await, conflict);
    assert_eq!(look(&fleet).await.members[&name("lb-1")].mod_revision, changed);
    // Of a version that did not know epochs.
    let old = r#"{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":4}"#;
    cluster.etcdctl(&[0], &["put", "/spillway/edge/members/lb-2", old]).unwrap();
    assert_eq!(look(&fleet).await.membership().members[&name("lb-2")], 0);
}

#[tokio::test]
async fn a_balancer_joins_with_the_epochs_as_it_saw_them() {
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    fleet.join(&member(0), &*look(&fleet).await).await.unwrap();
    let seen = look(&other).await;
    open_epoch(&fleet, 1).await;
    assert_eq!(other.join(&member(0), &seen).await, Err(MemberError::EpochChanged));
    let seen = look(&other).await;
    close_epoch(&fleet).await;
    assert_eq!(other.join(&member(0), &seen).await, Err(MemberError::EpochChanged));
    let seen = look(&other).await;
    other.join(&member(1), &seen).await.unwrap();
    let again = other.join(&member(1), &seen).await;
    assert_eq!(again, Err(MemberError::Conflict(name("lb-2"))));
    other.join(&member(1), &*look(&other).await).await.unwrap();
}

#[tokio::test]
async fn only_one_that_is_not_alive_is_removed() {
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    let seen = other.write_member(&member(0), 0).await.unwrap();
    cluster.etcdctl(&[0], &["put", "/spillway/edge/alive/lb-2", "{}"]).unwrap();
    let two = name("lb-2");
    let alive = fleet.remove_member(&two, seen).await.unwrap_err();
    assert_eq!(
        alive.to_string(),
        "balancer lb-2 is still alive: stop it, or let it leave by itself"
    );
    cluster.etcdctl(&[0], &["del", "/spillway/edge/alive/lb-2"]).unwrap();
    let changed = other.write_member(&member(1), seen).await.unwrap();
    assert_eq!(fleet.remove_member(&two, seen).await, Err(MemberError::Conflict(two.clone())));
    let mut following = Following::new(&fleet);
    following.until("read", |view| view.snapshot.is_some()).await;
    fleet.remove_member(&two, changed).await.unwrap();
    let has_none = |view: &lb_fleet::reader::View| {
        view.snapshot.as_ref().is_some_and(|it| it.members.is_empty())
    };
    following.until("removed", has_none).await;
    for expected in [changed, 0] {
        let missing = fleet.remove_member(&two, expected).await.unwrap_err();
        assert_eq!(missing.to_string(), "lb-2 is not a member of the fleet");
    }
}

#[tokio::test]
async fn a_balancer_leaves_if_it_can_own_nothing() {
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    let first = commit(&fleet, None, b"one").await;
    let missing = Err(MemberError::NotAMember(name("lb-1")));
    assert_eq!(fleet.leave(&*look(&fleet).await).await, missing);
    let at = fleet.write_member(&member(0), 0).await.unwrap();
    cluster.etcdctl(&[0], &["put", "/spillway/edge/alive/lb-1", "{}"]).unwrap();
    let seen = look(&fleet).await;
    commit(&other, Some(&first), b"two").await;
    assert_eq!(fleet.leave(&seen).await, Err(MemberError::ConfigurationChanged));
    let seen = look(&fleet).await;
    fleet.write_member(&member(0), at).await.unwrap();
    assert_eq!(fleet.leave(&seen).await, Err(MemberError::Conflict(name("lb-1"))));
    let seen = look(&fleet).await;
    other.write_member(&member(0), 0).await.unwrap();
    open_epoch(&other, 1).await;
    assert_eq!(fleet.leave(&seen).await, Err(MemberError::EpochChanged));
    assert_eq!(fleet.leave(&*look(&fleet).await).await, Err(MemberError::EpochOpen(1)));
    let contribute = EpochStep::Contribute(Contribution::default());
    assert_eq!(fleet.write_epoch_step(&contribute, &*look(&fleet).await).await, Ok(true));
    close_epoch(&other).await;
    fleet.leave(&*look(&fleet).await).await.unwrap();
    let left = look(&fleet).await;
    assert!(left.members.keys().eq([&name("lb-2")]) && left.alive.is_empty());
}

#[tokio::test]
async fn what_is_marked_out_is_written_together_or_not_at_all() {
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    let out = MarkedOut { regions: BTreeSet::from([name("us")]), ..MarkedOut::default() };
    let since = (UNIX_EPOCH + Duration::from_secs(7)).into();
    let homes = Homes { now: out, before: MarkedOut::default(), since, generation: 1 };
    let change = |pool: &str, expected| HomesChange {
        pool: name(pool),
        expected,
        value: Some(homes.clone().into()),
    };
    let eu = name("eu");
    let both = [change("web", 0), change("api", 0)];
    let revision = fleet.write_homes(&eu, &both).await.unwrap();
    let snapshot = look(&fleet).await;
    assert_eq!(snapshot.revision, revision);
    assert_eq!(snapshot.homes.len(), 2);
    assert_eq!(snapshot.homes[&(eu.clone(), name("web"))].document.body, homes);
    let changed = cluster.etcdctl(&[0], &["get", "/spillway/edge/changed", "-w=fields"]).unwrap();
    assert!(changed.contains(&format!("\"ModRevision\" : {revision}\n")), "{changed}");
    // One of two was changed by another balancer.
    other.write_homes(&eu, &[change("web", revision)]).await.unwrap();
    let before = look(&fleet).await;
    let stale = [change("api", revision), change("web", revision)];
    assert_eq!(fleet.write_homes(&eu, &stale).await, Err(HomesError::Conflict));
    assert_eq!(look(&fleet).await.homes, before.homes, "neither was written");
    other.write_homes(&name("us"), &[change("web", 0)]).await.unwrap();
    let delete = HomesChange { value: None, ..change("api", revision) };
    let delete = [delete];
    fleet.write_homes(&eu, &delete).await.unwrap();
    let left = look(&fleet).await;
    let left: Vec<_> = left.homes.keys().map(|(region, pool)| format!("{region}/{pool}")).collect();
    assert_eq!(left, ["eu/web", "us/web"]);
    assert_eq!(fleet.write_homes(&eu, &delete).await, Err(HomesError::Conflict));
    let many: Vec<_> = (0..101).map(|it| change(&format!("p{it}"), 0)).collect();
    assert_eq!(
        fleet.write_homes(&eu, &many).await.unwrap_err().to_string(),
        "what is marked out changes in 101 pools; at most 100 can be changed at once"
    );
    fleet.write_homes(&eu, &many[1..]).await.unwrap();
}

#[tokio::test]
async fn other_fleets_are_found_by_their_keys() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let others = async || fleet.other_fleets().await;
    assert_eq!(others().await, Ok(vec![]));
    fleet.write_member(&member(3), 0).await.unwrap();
    // Of no fleet, or of none of these: a name with a capital, no name, another program's.
    for key in ["Edge/changed", "/changed", "version", "zoo"] {
        cluster.etcdctl(&[0], &["put", &format!("/spillway/{key}"), "1"]).unwrap();
    }
    cluster.etcdctl(&[0], &["put", "/spillways/west/changed", "1"]).unwrap();
    assert_eq!(others().await, Ok(vec![]));
    for key in ["edge-2/changed", "edg/members/lb-1", "west/alive/lb-1", "west/changed"] {
        cluster.etcdctl(&[0], &["put", &format!("/spillway/{key}"), "1"]).unwrap();
    }
    assert_eq!(others().await, Ok(["edg", "edge-2", "west"].map(name).to_vec()));
    // Whatever else is there, the search ends.
    for number in 0..30 {
        let key = format!("/spillway/fleet-{number:02}/changed");
        cluster.etcdctl(&[0], &["put", &key, "1"]).unwrap();
    }
    let found = others().await.unwrap();
    assert!(found.starts_with(&["edg", "edge-2", "fleet-00"].map(name)), "{found:?}");
    assert!(found.len() < 20, "{found:?}");
}

#[tokio::test]
async fn of_two_that_join_an_empty_fleet_one_is_the_first() {
    let cluster = Cluster::start(1).await;
    let (one, two) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    commit(&one, None, b"one").await;
    let (seen, seen_too) = (look(&one).await, look(&two).await);
    assert!(seen.has_no_members() && seen_too.has_no_members());
    one.join(&member(0), &seen).await.unwrap();
    assert_eq!(two.join(&member(0), &seen_too).await, Err(MemberError::EpochChanged));
    let seen_too = look(&two).await;
    assert!(!seen_too.has_no_members());
    two.join(&member(0), &seen_too).await.unwrap();
    // Once both have left it is empty again.
    for fleet in [&one, &two] {
        fleet.leave(&*look(fleet).await).await.unwrap();
    }
    assert!(look(&one).await.has_no_members());
    // A member that cannot be read is one.
    cluster.etcdctl(&[0], &["put", "/spillway/edge/members/lb-3", "{}"]).unwrap();
    assert!(!look(&one).await.has_no_members());
}

/// As while one of three servers is restarted.
#[tokio::test]
async fn a_server_that_refuses_connections_is_not_noticed() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    cluster.kill((leader + 1) % 3);
    let fleet = cluster.fleet("lb-1").await;
    let mut last = None;
    for number in 1..=40_u64 {
        let committed = fleet.commit(&attempt(last.as_ref(), &number.to_be_bytes())).await.unwrap();
        assert_eq!(committed.document.body.number, number);
        assert_eq!(fleet.current().await.unwrap().map(|it| it.digest), Some(committed.digest));
        last = Some(committed);
        look(&fleet).await;
    }
}
