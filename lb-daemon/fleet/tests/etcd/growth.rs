//! How much etcd keeps and gets of a large configuration that changes all the time.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, SystemTime},
};

use lb_fleet::{
    Fleet,
    collect::{Collector, HISTORY},
    commit::{Attempt, Committed, Draft},
};
use lb_model::{AdminState, Backend, Configuration, Name, Pool, Region};

use crate::{Following, cluster::Cluster, draft, look, name};

const MINUTE: Duration = Duration::from_secs(60);

/// 10,000 backends in 200 pools, and in two regions.
fn large() -> Configuration {
    let backend = |region: &str| Backend {
        region: name(region),
        weight: 100,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    let pool = |pool: u8| {
        let backends = (0..50).map(|last| {
            let region = if last % 2 == 0 { "eu" } else { "us" };
            ([10, 0, pool, last].into(), backend(region))
        });
        let pool = format!("customer-{pool}-frontend");
        (name(&pool), Arc::new(Pool { backends: backends.collect(), ..Pool::default() }))
    };
    Configuration {
        regions: ["eu", "us"].map(|it| (name(it), Region::default())).into(),
        pools: (0..200).map(pool).collect(),
        hash_key: Some([1, 2]),
        ..Configuration::EMPTY
    }
}

fn set_weight(configuration: &mut Configuration, pool: u8, weight: u32) {
    let pool = configuration.pool_mut(&name(&format!("customer-{pool}-frontend"))).unwrap();
    pool.backends.values_mut().next().unwrap().weight = weight;
}

fn groups(configuration: &Configuration) -> BTreeSet<(Name, Name)> {
    let regions = || configuration.regions.keys();
    let pools = configuration.pools.keys();
    pools.flat_map(|pool| regions().map(|region| (pool.clone(), region.clone()))).collect()
}

async fn commit(
    fleet: &Fleet,
    base: Option<&Committed>,
    configuration: &Configuration,
    at: SystemTime,
) -> Committed {
    let draft = Draft {
        parts: lb_store::encode_shared(configuration).unwrap().parts.into(),
        groups: groups(configuration),
        settles: MINUTE * 3,
        applied_at: at.into(),
        ..draft(b"")
    };
    fleet.commit(&Attempt::new(base, draft).unwrap()).await.unwrap()
}

/// Sizes of what a fleet has in etcd, by key, of what was written after a revision.
async fn written_after(cluster: &Cluster, revision: i64) -> HashMap<String, usize> {
    let endpoints = cluster.settings("lb-1").endpoints;
    let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
    let all = etcd_client::GetOptions::new().with_prefix();
    let answer = client.get("/spillway/edge/", Some(all)).await.unwrap();
    let rows = answer.kvs().iter().filter(|row| row.mod_revision() > revision);
    let size = |row: &etcd_client::KeyValue| row.key().len() + row.value().len();
    rows.map(|row| (row.key_str().unwrap().to_owned(), size(row))).collect()
}

#[tokio::test]
async fn a_change_of_one_backend_of_ten_thousand_writes_little() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut configuration = large();
    let first = commit(&fleet, None, &configuration, SystemTime::UNIX_EPOCH).await;
    // It is written longer, so that nothing after it stands where it stood.
    set_weight(&mut configuration, 7, 1_000);
    commit(&fleet, Some(&first), &configuration, SystemTime::UNIX_EPOCH).await;
    let written = written_after(&cluster, first.mod_revision).await;
    let pieces = written.iter().filter(|(key, _)| key.contains("/chunks/"));
    let pieces: Vec<usize> = pieces.map(|(_, size)| *size).collect();
    assert!(pieces.len() == 1 && pieces[0] < 12 << 10, "{pieces:?}");
    let all: usize = written.values().sum();
    assert!(all < 64 << 10, "{all}: {written:?}");
    let snapshot = look(&fleet).await;
    let read = lb_store::decode_shared(&snapshot.configuration.as_ref().unwrap().bytes).unwrap();
    assert!(read == configuration);
}

#[tokio::test]
async fn the_history_is_not_read_again_and_again() {
    const LONG: usize = 100 << 10;
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut last = None;
    for number in 0..40u8 {
        let draft = Draft { reason: "x".repeat(LONG), ..draft(&[number]) };
        let next = fleet.commit(&Attempt::new(last.as_ref(), draft).unwrap()).await.unwrap();
        last = Some(next);
    }
    let mut following = Following::tracing_from(&fleet, Duration::from_millis(20), || Some(39));
    let snapshot = following.until_generation(40).await;
    assert!(snapshot.links.keys().eq([&39, &40]), "{:?}", snapshot.links);
    // Each time it reads all, it is the current generation and little else.
    let before = cluster.bytes_sent().await;
    for _ in 0..30 {
        following.view_rx.changed().await.unwrap();
    }
    let sent = cluster.bytes_sent().await - before;
    assert!((29 * LONG..45 * LONG).contains(&sent), "{sent}");
    // The collector reads each generation once.
    let mut collector = Collector::new(Duration::ZERO);
    drop(following);
    let mut sent = Vec::new();
    for _ in 0..3 {
        let before = cluster.bytes_sent().await;
        collector.collect(&fleet, SystemTime::UNIX_EPOCH.into()).await.unwrap();
        sent.push(cluster.bytes_sent().await - before);
    }
    assert!(sent[0] > 40 * LONG && sent[1] < 2 * LONG && sent[2] < 2 * LONG, "{sent:?}");
}

#[tokio::test]
async fn the_links_of_an_etcd_that_was_restored_are_read_anew() {
    let mut cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = crate::commit(&fleet, None, b"one").await;
    let backup = cluster.save_snapshot();
    let second = crate::commit(&fleet, Some(&first), b"two").await;
    let mut following = Following::new(&fleet);
    assert_eq!(following.until_generation(2).await.links[&2].link.digest, second.digest);
    cluster.restore(&backup).await;
    let fleet = cluster.fleet("lb-1").await;
    let other = crate::commit(&fleet, Some(&first), b"elsewhere").await;
    assert_eq!(other.mod_revision, second.mod_revision, "revisions are given again");
    let third = crate::commit(&fleet, Some(&other), b"three").await;
    let snapshot = following.until_generation(3).await;
    let digests: Vec<_> = snapshot.links.values().map(|it| it.link.digest).collect();
    assert_eq!(digests, [first.digest, other.digest, third.digest]);
}

/// `SPILLWAY_GROWTH_MINUTES` says for how many minutes: 43,200 are a month.
#[tokio::test]
async fn a_change_a_minute_does_not_let_etcd_grow() {
    let minutes = std::env::var("SPILLWAY_GROWTH_MINUTES").map_or(150, |it| it.parse().unwrap());
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut configuration = large();
    let mut collector = Collector::new(Duration::ZERO);
    let mut last = None;
    let mut sizes = Vec::new();
    for minute in 0..minutes {
        let now = SystemTime::UNIX_EPOCH + MINUTE * minute;
        set_weight(&mut configuration, (minute % 200) as u8, 101 + minute % 800);
        last = Some(commit(&fleet, last.as_ref(), &configuration, now).await);
        if minute % 10 == 9 {
            collector.collect(&fleet, now.into()).await.unwrap();
            let all = written_after(&cluster, 0).await;
            let history = all.keys().filter(|key| key.contains("/history/")).count();
            assert_eq!(history, HISTORY.min(minute as usize + 1));
            sizes.push(all.values().sum::<usize>());
        }
        // As etcd does by itself, with the settings that the documents give.
        if minute % 60 == 59 {
            let revision = last.as_ref().unwrap().mod_revision.to_string();
            cluster.etcdctl(&[0], &["compact", &revision, "--physical"]).unwrap();
        }
    }
    let status = {
        let endpoints = cluster.settings("lb-1").endpoints;
        let mut client = etcd_client::Client::connect(endpoints, None).await.unwrap();
        client.status().await.unwrap()
    };
    let (early, late) = (sizes[2], *sizes.last().unwrap());
    assert!(late < early + early / 20 && late < 2 << 20, "{sizes:?}");
    assert!(status.db_size() < 32 << 20, "{}", status.db_size());
}
