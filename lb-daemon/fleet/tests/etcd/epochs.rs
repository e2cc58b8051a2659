//! Epochs, from opening to removal, and what each of their transactions compares.

use std::{collections::BTreeSet, sync::Arc};

use etcd_client::{Txn, TxnOp};
use lb_fleet::{
    Document, Fleet,
    documents::{FleetMember, Liveness},
    epochs::EpochError,
    reader::{Snapshot, View},
    transaction::MAX_VALUE,
};
use lb_model::Name;
use lb_sharing::{
    GroupKey, Parts,
    epoch::{Contribution, EpochStep, Forgotten, Statement, compute_result},
};

use crate::{Following, cluster::Cluster, commit, look, name};

fn names(texts: &[&str]) -> BTreeSet<Name> {
    texts.iter().map(|text| name(text)).collect()
}

fn gone(texts: &[&str]) -> Forgotten {
    Forgotten { gone: names(texts), ..Forgotten::default() }
}

fn open(number: u64, texts: &[&str]) -> EpochStep {
    EpochStep::Open { number, forgotten: gone(texts) }
}

fn owning(parts: u64) -> Contribution {
    let group = GroupKey { pool: name("web"), region: name("eu"), birth: 1 };
    Contribution { owned: [(group, Parts(parts))].into(), ..Contribution::default() }
}

const QUARTER: u64 = Parts::WHOLE.0 / 4;

/// Three members with one generation.
struct Three {
    cluster: Cluster,
    a: Fleet,
    b: Fleet,
    c: Fleet,
}

impl Three {
    async fn new() -> Self {
        let cluster = Cluster::start(1).await;
        let [a, b, c] =
            [cluster.fleet("a").await, cluster.fleet("b").await, cluster.fleet("c").await];
        for fleet in [&a, &b, &c] {
            write_member(fleet, 0).await;
        }
        commit(&a, None, b"one").await;
        Self { cluster, a, b, c }
    }

    async fn look(&self) -> Arc<Snapshot> {
        look(&self.a).await
    }

    fn put(&self, key: &str, value: &str) {
        self.cluster.etcdctl(&[0], &["put", &format!("/spillway/edge/{key}"), value]).unwrap();
    }

    fn delete(&self, key: &str) {
        self.cluster.etcdctl(&[0], &["del", &format!("/spillway/edge/{key}")]).unwrap();
    }

    fn keys(&self) -> Vec<String> {
        let all = ["get", "--prefix", "--keys-only", "/spillway/edge/shares/"];
        let all = self.cluster.etcdctl(&[0], &all).unwrap();
        all.lines()
            .filter_map(|line| line.strip_prefix("/spillway/edge/"))
            .map(Into::into)
            .collect()
    }

    async fn written(&self, by: &Fleet, step: &EpochStep) {
        assert_eq!(by.write_epoch_step(step, &*self.look().await).await, Ok(true), "{step:?}");
    }

    async fn refused(&self, by: &Fleet, step: &EpochStep, seen: &Snapshot) {
        let before = self.keys();
        let epoch = self.look().await.epoch.clone();
        assert_eq!(by.write_epoch_step(step, seen).await, Ok(false), "{step:?}");
        assert_eq!((self.keys(), self.look().await.epoch.clone()), (before, epoch));
    }
}

async fn write_member(fleet: &Fleet, epoch: u64) {
    let address = "192.0.2.1:7000".parse().unwrap();
    let member = FleetMember {
        address,
        region: None,
        incarnation: 1,
        epoch,
        version: "0.1.0".into(),
        schema: 1,
    };
    let seen = look(fleet).await;
    let expected = seen.members.get(fleet.name()).map_or(0, |it| it.mod_revision);
    fleet.write_member(&member.into(), expected).await.unwrap();
}

#[tokio::test]
async fn an_epoch_is_opened_contributed_to_closed_and_removed() {
    let three = Three::new().await;
    let (a, b) = (&three.a, &three.b);
    let mut following = Following::new(&three.c);
    following.until_generation(1).await;
    let revision = three.look().await.revision;
    assert_eq!(three.look().await.epoch, None);
    three.written(a, &open(1, &["c"])).await;
    let seen = three.look().await;
    let epoch = seen.epoch.as_ref().unwrap();
    assert_eq!((epoch.number, epoch.generation, epoch.closed), (1, 1, false));
    assert_eq!(epoch.forgotten, names(&["c"]));
    // Both with what they saw before the other one contributed.
    let [one, other] = [QUARTER, 2 * QUARTER].map(|parts| EpochStep::Contribute(owning(parts)));
    assert_eq!(a.write_epoch_step(&one, &seen).await, Ok(true));
    three.refused(a, &EpochStep::Close, &*three.look().await).await;
    assert_eq!(b.write_epoch_step(&other, &seen).await, Ok(true));
    three.written(b, &EpochStep::Close).await;
    let seen = three.look().await;
    let closed = seen.epoch.as_ref().unwrap();
    assert!(closed.closed);
    let contributions = [(name("a"), owning(QUARTER)), (name("b"), owning(2 * QUARTER))];
    assert_eq!(closed.contributions, contributions.into());
    let owned: Parts = compute_result(closed).into_values().flat_map(|it| it.into_values()).sum();
    assert_eq!(owned, Parts::WHOLE);
    let same = |view: &View| view.snapshot.as_ref().is_some_and(|it| it.epoch == seen.epoch);
    let view = following.until("the epoch, as it is read", same).await;
    assert_eq!(view.snapshot.unwrap().epoch_base, seen.epoch_base);
    assert_eq!(seen.revision, revision, "an epoch sets no revision");
    // The last one stays until the next but one is opened.
    let still = |number, epoch: &EpochStep| match epoch.clone() {
        EpochStep::Open { forgotten, .. } => EpochStep::Open { number, forgotten },
        other => other,
    };
    for number in [2, 10] {
        let number_before = three.look().await.epoch.as_ref().unwrap().number;
        three.written(a, &still(number, &open(0, &["c"]))).await;
        let first: BTreeSet<_> = three.keys().into_iter().collect();
        let expected = [number_before, number].into_iter().flat_map(|it| {
            let contributions = ["a", "b"].map(|name| format!("shares/{it}/{name}"));
            let contributions = contributions.into_iter().filter(move |_| it == number_before);
            contributions.chain([format!("shares/{it}")])
        });
        assert_eq!(first, expected.collect(), "after {number_before}");
        for by in [a, b] {
            three.written(by, &one).await;
        }
        three.written(a, &EpochStep::Close).await;
    }
    let same = |view: &View| {
        let epoch = view.snapshot.as_ref().and_then(|it| it.epoch.clone());
        epoch.is_some_and(|it| it.number == 10 && it.closed)
    };
    let watched = following.until("the last epoch", same).await.snapshot.unwrap();
    let read = three.look().await;
    assert_eq!((&watched.epoch, &watched.epoch_base), (&read.epoch, &read.epoch_base));
    assert_eq!(watched.shares_revision, read.shares_revision);
}

#[tokio::test]
async fn an_epoch_is_opened_only_on_what_was_seen() {
    let three = Three::new().await;
    let (a, b) = (&three.a, &three.b);
    // Whose lease is there again.
    three.put("alive/c", "{}");
    three.refused(a, &open(1, &["c"]), &*three.look().await).await;
    // That of an old copy may be there.
    let old_copies = EpochStep::Open {
        number: 1,
        forgotten: Forgotten { old_copies: names(&["c"]), ..gone(&[]) },
    };
    let seen = three.look().await;
    let current = a.current().await.unwrap();
    let second = commit(a, current.as_ref(), b"two").await;
    three.refused(a, &old_copies, &seen).await;
    // By another one, with the same number, a higher one, or a lower one.
    let seen = three.look().await;
    three.written(b, &old_copies).await;
    for number in [1, 2, 9] {
        three.refused(a, &open(number, &[]), &seen).await;
    }
    three.refused(a, &open(2, &[]), &*three.look().await).await;
    assert_eq!(three.look().await.epoch.as_ref().unwrap().generation, second.document.body.number);
    let open_still = three.look().await;
    for by in [a, b] {
        three.written(by, &EpochStep::Contribute(owning(1))).await;
    }
    three.written(a, &EpochStep::Close).await;
    three.refused(a, &open(1, &[]), &*three.look().await).await;
    three.refused(a, &open(2, &[]), &open_still).await;
    three.delete("alive/c");
    // One that gave up what it owned meanwhile takes part again.
    let still_forgotten = Forgotten { still_forgotten: names(&["c"]), ..gone(&[]) };
    let step = EpochStep::Open { number: 2, forgotten: still_forgotten };
    let seen = three.look().await;
    write_member(&three.c, 1).await;
    three.refused(a, &step, &seen).await;
    // A stranger, which is no member any more.
    let stranger = three.cluster.fleet("d").await;
    three.refused(&stranger, &step, &*three.look().await).await;
    three.written(a, &step).await;
    assert_eq!(three.look().await.epoch.as_ref().unwrap().forgotten, names(&["c"]));
}

#[tokio::test]
async fn one_is_forgotten_on_what_others_say_only_while_they_say_it() {
    let three = Three::new().await;
    let says = |by: &str, silent: &[&str]| {
        let statement = Some(Statement { epoch: 0, silent: names(silent) });
        let liveness = Liveness { statement, ..Liveness::default() };
        let text = Document::from(liveness).write("alive").unwrap();
        three.put(&format!("alive/{by}"), &String::from_utf8(text).unwrap());
    };
    says("b", &["c"]);
    let seen = three.look().await;
    assert_eq!(seen.membership().statements[&name("b")].silent, names(&["c"]));
    let decided_on = |stated_by: &[&str]| EpochStep::Open {
        number: 1,
        forgotten: Forgotten { stated_by: names(stated_by), ..gone(&["c"]) },
    };
    says("b", &[]);
    three.refused(&three.a, &decided_on(&["b"]), &seen).await;
    // The same words again are another statement: it may have heard of it in between.
    says("b", &["c"]);
    three.refused(&three.a, &decided_on(&["b"]), &seen).await;
    // As many as one transaction compares, and one more.
    let others: Vec<_> = (1..=21).map(|n| format!("d{n}")).collect();
    let others: Vec<_> = others.iter().map(String::as_str).collect();
    others.iter().for_each(|by| says(by, &["c"]));
    three.refused(&three.a, &decided_on(&others), &*three.look().await).await;
    let seen = three.look().await;
    // What the others say, whose messages come, may change.
    says("d1", &[]);
    says("b", &[]);
    assert!(three.a.write_epoch_step(&decided_on(&others[1..]), &seen).await.unwrap());
}

#[tokio::test]
async fn more_are_forgotten_only_if_they_are_gone_and_silent() {
    let three = Three::new().await;
    let (a, b, c) = (&three.a, &three.b, &three.c);
    write_member(&three.cluster.fleet("d").await, 0).await;
    let forget = |it: Forgotten| EpochStep::Forget(it);
    three.refused(a, &forget(gone(&["b"])), &*three.look().await).await;
    three.written(a, &open(1, &["d"])).await;
    let seen = three.look().await;
    three.put("alive/b", "{}");
    three.refused(a, &forget(gone(&["b"])), &seen).await;
    three.delete("alive/b");
    three.written(b, &EpochStep::Contribute(owning(1))).await;
    three.refused(a, &forget(gone(&["b"])), &seen).await;
    three.refused(a, &forget(gone(&["c", "b"])), &seen).await;
    let still = Forgotten { still_forgotten: names(&["c"]), ..gone(&[]) };
    let seen = three.look().await;
    write_member(c, 0).await;
    three.refused(a, &forget(still), &seen).await;
    let seen = three.look().await;
    three.written(a, &forget(gone(&["c"]))).await;
    assert_eq!(three.look().await.epoch.as_ref().unwrap().forgotten, names(&["c", "d"]));
    // Neither says one what it owns, nor is more forgotten, nor is it closed, on what was seen before that.
    three.refused(a, &EpochStep::Contribute(owning(1)), &seen).await;
    three.refused(b, &forget(gone(&["a"])), &seen).await;
    // One that comes back says it too, and once.
    let contribute = EpochStep::Contribute(owning(0));
    three.written(c, &contribute).await;
    three.refused(c, &contribute, &*three.look().await).await;
    three.written(a, &contribute).await;
    let seen = three.look().await;
    three.written(a, &EpochStep::Close).await;
    let late = three.cluster.fleet("d").await;
    for step in [EpochStep::Close, EpochStep::Contribute(owning(1)), forget(gone(&["a"]))] {
        three.refused(&late, &step, &seen).await;
        three.refused(&late, &step, &*three.look().await).await;
    }
}

#[tokio::test]
async fn an_epoch_is_closed_only_with_the_members_that_were_seen() {
    let three = Three::new().await;
    let (a, b, c) = (&three.a, &three.b, &three.c);
    three.written(a, &open(1, &["c"])).await;
    for by in [a, b] {
        three.written(by, &EpochStep::Contribute(owning(1))).await;
    }
    let seen = three.look().await;
    let joined = three.cluster.fleet("d").await;
    write_member(&joined, 0).await;
    three.refused(a, &EpochStep::Close, &seen).await;
    three.refused(a, &EpochStep::Close, &*three.look().await).await;
    three.written(&joined, &EpochStep::Contribute(owning(0))).await;
    let seen = three.look().await;
    write_member(c, 1).await;
    three.refused(a, &EpochStep::Close, &seen).await;
    let seen = three.look().await;
    a.remove_member(&name("b"), seen.members[&name("b")].mod_revision).await.unwrap();
    three.refused(a, &EpochStep::Close, &seen).await;
    // As after a restore to before it contributed.
    let seen = three.look().await;
    for contributor in ["a", "d"] {
        three.delete(&format!("shares/1/{contributor}"));
        three.refused(a, &EpochStep::Close, &seen).await;
    }
    three.written(a, &EpochStep::Contribute(owning(0))).await;
    three.written(&joined, &EpochStep::Contribute(owning(0))).await;
    three.written(a, &EpochStep::Close).await;
}

#[tokio::test]
async fn what_cannot_be_read_holds_epochs_up_and_is_named() {
    let three = Three::new().await;
    let (a, b) = (&three.a, &three.b);
    let sentence = async |step: &EpochStep| {
        let error = a.write_epoch_step(step, &*three.look().await).await.unwrap_err();
        error.to_string()
    };
    three.put("members/d", r#"{"format":9}"#);
    three.put("alive/d", r#"{"format":9}"#);
    let newer = |key: &str| {
        let newer = "has format 9, and this version reads up to 1: upgrade this balancer";
        format!("epochs stand still: /spillway/edge/{key}: {newer}")
    };
    assert_eq!(sentence(&open(1, &["c"])).await, newer("members/d"));
    let membership = three.look().await.membership();
    assert_eq!(membership.members[&name("d")], u64::MAX);
    assert_eq!(membership.alive, names(&["d"]));
    three.delete("members/d");
    let current = three
        .cluster
        .etcdctl(&[0], &["get", "/spillway/edge/config/current", "--print-value-only"]);
    three.put("config/current", r#"{"format":9}"#);
    assert_eq!(sentence(&open(1, &["c"])).await, newer("config/current"));
    three.put("config/current", current.unwrap().trim());
    three.written(a, &open(1, &["c"])).await;
    let first = three.look().await;
    three.put("members/d", r#"{"format":9}"#);
    three.written(a, &EpochStep::Contribute(owning(1))).await;
    assert_eq!(sentence(&EpochStep::Forget(gone(&["b"]))).await, newer("members/d"));
    three.written(b, &EpochStep::Contribute(owning(1))).await;
    assert_eq!(sentence(&EpochStep::Close).await, newer("members/d"));
    three.delete("members/d");
    // With one contribution missing its result would be another one here than elsewhere.
    let mut following = Following::new(b);
    following.until_generation(1).await;
    three.put("shares/1/b", r#"{"format":9}"#);
    let is_hidden = |view: &View| view.snapshot.as_ref().is_some_and(|it| it.epoch.is_none());
    let view = following.until("left out", is_hidden).await;
    assert!(view.snapshot.unwrap().unreadable.contains_key("/spillway/edge/shares/1/b"));
    let unusable = "epochs stand still: what etcd has of epoch 1 cannot be used";
    assert_eq!(sentence(&open(2, &["c"])).await, unusable);
    assert_eq!(sentence(&EpochStep::Contribute(owning(1))).await, unusable);
    three.delete("shares/1/b");
    let is_back = |view: &View| view.snapshot.as_ref().is_some_and(|it| it.epoch.is_some());
    let view = following.until("back", is_back).await.snapshot.unwrap();
    assert_eq!(view.epoch_base.document, first.epoch_base.document);
    three.put("shares/1", "{");
    assert_eq!(sentence(&open(2, &["c"])).await, unusable);
    // Too much for a value of etcd.
    three.delete("shares/1");
    three.delete("shares/1/a");
    three.written(a, &open(1, &["c"])).await;
    let group = |birth| GroupKey { pool: name("web"), region: name("eu"), birth };
    let owned = (0..20_000).map(|birth| (group(birth), Parts::WHOLE)).collect();
    let large = Contribution { owned, ..Contribution::default() };
    let error = a.write_epoch_step(&EpochStep::Contribute(large), &*three.look().await).await;
    assert!(matches!(error, Err(EpochError::TooLarge { size }) if size > MAX_VALUE), "{error:?}");
    let owned = (0..17_000).map(|birth| (group(birth), Parts::WHOLE)).collect();
    let large = Contribution { owned, ..Contribution::default() };
    three.written(a, &EpochStep::Contribute(large)).await;
}

#[tokio::test]
async fn two_open_at_once_and_one_wins() {
    let three = Three::new().await;
    for round in 1..10 {
        let seen = three.look().await;
        let steps = [open(2 * round, &["c"]), open(2 * round + 1, &["c"])];
        let both = tokio::join!(
            three.a.write_epoch_step(&steps[0], &seen),
            three.b.write_epoch_step(&steps[1], &seen)
        );
        assert!(matches!(both, (Ok(true), Ok(false)) | (Ok(false), Ok(true))), "{both:?}");
        for by in [&three.a, &three.b] {
            three.written(by, &EpochStep::Contribute(owning(1))).await;
        }
        three.written(&three.a, &EpochStep::Close).await;
    }
}

/// More than etcd takes comparisons in one transaction.
#[tokio::test]
async fn a_fleet_of_three_hundred_goes_through_an_epoch() {
    const MEMBERS: usize = 300;
    let three = Three::new().await;
    let a = &three.a;
    let endpoints = three.cluster.settings("a").endpoints;
    let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
    let all: Vec<_> = (0..MEMBERS).map(|it| format!("m{it:03}")).collect();
    let member = r#"{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":1}"#;
    let contribution = r#"{"format":1,"owned":[],"pairs":{}}"#;
    let put_all = |folder: &str, value: &str, all: &[String]| {
        let key = |name: &String| format!("/spillway/edge/{folder}/{name}");
        Txn::new()
            .and_then(all.iter().map(|it| TxnOp::put(key(it), value, None)).collect::<Vec<_>>())
    };
    for some in all.chunks(100) {
        client.txn(put_all("members", member, some)).await.unwrap();
    }
    let (lost, left) = all.split_at(MEMBERS / 2);
    let lost: Vec<_> = lost.iter().map(String::as_str).collect();
    // The first ones are forgotten first, so only their leases count.
    three.put("alive/m049", "{}");
    three.refused(a, &open(1, &lost), &*three.look().await).await;
    three.delete("alive/m049");
    three.written(a, &open(1, &lost)).await;
    assert_eq!(three.look().await.epoch.as_ref().unwrap().forgotten, names(&lost[..50]));
    for upto in [100, 150] {
        three.written(a, &EpochStep::Forget(gone(&lost[upto - 50..]))).await;
        let forgotten = three.look().await.epoch.as_ref().unwrap().forgotten.clone();
        assert_eq!(forgotten, names(&lost[..upto]));
    }
    for some in left.chunks(100) {
        client.txn(put_all("shares/1", contribution, some)).await.unwrap();
    }
    for by in [a, &three.b, &three.c] {
        three.written(by, &EpochStep::Contribute(owning(1))).await;
    }
    let seen = three.look().await;
    three.put("members/m170", member);
    three.refused(a, &EpochStep::Close, &seen).await;
    let seen = three.look().await;
    a.remove_member(&name("m000"), seen.members[&name("m000")].mod_revision).await.unwrap();
    three.refused(a, &EpochStep::Close, &seen).await;
    // As if etcd went back to before the last contribution.
    let seen = three.look().await;
    three.delete("shares/1/c");
    three.refused(a, &EpochStep::Close, &seen).await;
    three.written(&three.c, &EpochStep::Contribute(owning(1))).await;
    three.written(a, &EpochStep::Close).await;
    let epoch = three.look().await.epoch.clone().unwrap();
    assert_eq!((epoch.closed, epoch.contributions.len()), (true, MEMBERS / 2 + 3));
}
