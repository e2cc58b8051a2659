//! Commits, lost replies, and the collection of what is not needed any more.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use lb_fleet::{
    EtcdError, Fleet,
    collect::{Collected, Collector, GRACE, HISTORY},
    commit::{Attempt, CommitError, Committed, Draft, MAX_CONFIGURATION, MAX_GENERATION, Resolved},
    documents::{Homes, WallTime},
    history::GenerationReader,
    homes::HomesChange,
    lineage::Link,
};
use lb_model::{Name, plan::MarkedOut};
use lb_pieces::{Digest, MAX_PIECE};
use lb_sharing::GroupKey;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    Following, attempt,
    cluster::{Cluster, until},
    commit, draft, look, name, noise,
};

const LATER: u64 = 1_000_000;

fn later() -> WallTime {
    (std::time::UNIX_EPOCH + Duration::from_secs(LATER)).into()
}

/// The key of a piece.
fn chunk(content: &[u8]) -> String {
    format!("/spillway/edge/chunks/{}", Digest::new(content))
}

/// The keys of all pieces.
fn pieces(cluster: &Cluster) -> Vec<String> {
    let all = ["get", "--prefix", "--keys-only", "/spillway/edge/chunks/"];
    let all = cluster.etcdctl(&[0], &all).unwrap();
    let is_piece = |line: &&str| !line.is_empty() && !line.ends_with(".removed");
    all.lines().filter(is_piece).map(str::to_owned).collect()
}

/// The numbers of the generations that are kept.
fn history(cluster: &Cluster) -> Vec<u64> {
    let all = ["get", "--prefix", "--keys-only", "/spillway/edge/config/history/"];
    let all = cluster.etcdctl(&[0], &all).unwrap();
    let mut numbers: Vec<_> =
        all.lines().filter_map(|it| it.rsplit_once('/')?.1.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn the_first_commit_is_read_with_its_bytes_and_its_revision() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    assert_eq!(fleet.current().await, Ok(None));
    let first = commit(&fleet, None, b"one").await;
    assert_eq!(fleet.current().await, Ok(Some(first.clone())));
    let snapshot = Following::new(&fleet).until_generation(1).await;
    let configuration = snapshot.configuration.as_ref().unwrap();
    assert_eq!(configuration.bytes[..], *b"one");
    assert_eq!(configuration.committed, first);
    assert_eq!(snapshot.revision, first.mod_revision);
    assert_eq!(snapshot.links[&1].link, Link { digest: first.digest, parent: None });
    let second = commit(&fleet, Some(&first), b"two").await;
    assert_eq!(second.document.body.parent, Some(first.digest));
    let changed = cluster.etcdctl(&[0], &["get", "/spillway/edge/changed", "-w=fields"]).unwrap();
    assert!(changed.contains(&format!("\"ModRevision\" : {}\n", second.mod_revision)), "{changed}");
}

#[tokio::test]
async fn a_field_of_a_newer_version_stays_in_the_next_generation() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    commit(&fleet, None, b"one").await;
    let get = || {
        let current = ["get", "/spillway/edge/config/current", "--print-value-only"];
        cluster.etcdctl(&[0], &current).unwrap()
    };
    let newer = get().trim().replacen('{', r#"{"rack":{"row":9},"#, 1);
    cluster.etcdctl(&[0], &["put", "/spillway/edge/config/current", &newer]).unwrap();
    let current = fleet.current().await.unwrap();
    commit(&fleet, current.as_ref(), b"two").await;
    assert!(get().contains(r#""rack":{"row":9}"#), "{}", get());
}

#[tokio::test]
async fn of_two_writers_one_wins_and_the_other_learns_who() {
    let cluster = Cluster::start(1).await;
    let (one, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    let mut base = None;
    for round in 0..10u8 {
        let attempts = [attempt(base.as_ref(), &[round, 1]), attempt(base.as_ref(), &[round, 2])];
        let results = tokio::join!(one.commit(&attempts[0]), other.commit(&attempts[1]));
        let (winner, conflict, lost) = match results {
            (Ok(winner), Err(conflict)) => (winner, conflict, &attempts[1]),
            (Err(conflict), Ok(winner)) => (winner, conflict, &attempts[0]),
            both => panic!("{both:?}"),
        };
        let sentence =
            format!("generation {} was applied meanwhile by alice", u64::from(round) + 1);
        assert_eq!(conflict.to_string(), sentence);
        assert_eq!(conflict, CommitError::Conflict(Some(winner.clone().into())));
        let resolved = one.resolve(lost).await;
        assert_eq!(resolved, Ok(Resolved::Lost(Some(winner.clone().into()))));
        base = Some(winner);
    }
}

/// Passes bytes to etcd, and its answers back, until a request has `word` in it: that one arrives, and is not answered.
async fn answers_lost_after(word: &'static str, address: (Ipv4Addr, u16)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let loses = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(address).await else { continue };
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let word_loses = Arc::clone(&loses);
            tokio::spawn(async move {
                let mut buffer = [0; 64 << 10];
                while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
                    let has_word =
                        buffer[..length].windows(word.len()).any(|it| it == word.as_bytes());
                    word_loses.fetch_or(has_word, Ordering::SeqCst);
                    to_server.write_all(&buffer[..length]).await.unwrap();
                }
            });
            let loses = Arc::clone(&loses);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
                    if !loses.load(Ordering::SeqCst)
                        && to_client.write_all(&buffer[..length]).await.is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_lost_reply_is_an_unknown_outcome_that_reading_resolves() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    // Only the transaction names the history.
    let port = answers_lost_after("config/history/2", cluster.address(0)).await;
    let mut settings = cluster.settings("lb-2");
    settings.endpoints = vec![format!("http://127.0.0.1:{port}")];
    let cut = Fleet::new(&settings).await.unwrap();
    let lost = attempt(Some(&first), b"two");
    assert_eq!(fleet.resolve(&lost).await, Ok(Resolved::Open));
    let error = cut.commit(&lost).await.unwrap_err();
    assert_eq!(error, CommitError::Unknown(EtcdError::NoAnswer));
    let Ok(Resolved::Applied(applied)) = fleet.resolve(&lost).await else {
        panic!("{:?}", fleet.resolve(&lost).await)
    };
    assert_eq!(fleet.current().await, Ok(Some((*applied).clone())));
    assert_eq!(fleet.commit(&lost).await, Ok((*applied).clone()), "it is applied once");
    assert_eq!(fleet.current().await, Ok(Some((*applied).clone())));
    commit(&fleet, Some(&applied), b"next").await;
    assert_eq!(fleet.resolve(&lost).await, Ok(Resolved::AppliedAndReplaced));
}

#[tokio::test]
async fn pieces_that_no_generation_has_go_and_a_commit_puts_them_again() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let pieces = || pieces(&cluster).len();
    let mut last = None;
    for number in 0..=HISTORY as u64 {
        last = Some(commit(&fleet, last.as_ref(), &number.to_be_bytes()).await);
    }
    let all = HISTORY + 1;
    assert_eq!(pieces(), all);
    let mut collector = Collector::new(Duration::ZERO);
    let one = Collected { generations: 1, pieces: 1, ..Collected::default() };
    assert_eq!(collector.collect(&fleet, later()).await, Ok(one));
    assert_eq!(pieces(), HISTORY);
    let again = commit(&fleet, last.as_ref(), &0u64.to_be_bytes()).await;
    assert_eq!(pieces(), HISTORY + 1);
    assert_eq!(fleet.current().await, Ok(Some(again)));
}

#[tokio::test]
async fn with_a_change_a_minute_the_history_has_the_longest_settle_time_and_twenty() {
    const MINUTE: Duration = Duration::from_secs(60);
    /// By minute. Those from before the long time, and a change in its last minute, need 45 min more.
    const EXPECTED: [(u32, usize); 6] =
        [(59, HISTORY), (179, 46), (200, 46), (223, 46), (226, HISTORY), (299, HISTORY)];
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut collector = Collector::new(Duration::ZERO);
    let mut last = None;
    for minute in 0..300u32 {
        let now = std::time::UNIX_EPOCH + MINUTE * minute;
        // For two hours a pool settles for 45 min; before and after that none for more than 3.
        let settles = if (60..180).contains(&minute) { MINUTE * 45 } else { MINUTE * 3 };
        let draft = Draft { settles, applied_at: now.into(), ..draft(&minute.to_be_bytes()) };
        let next = fleet.commit(&Attempt::new(last.as_ref(), draft).unwrap()).await.unwrap();
        last = Some(next);
        collector.collect(&fleet, now.into()).await.unwrap();
        if let Some(expected) = EXPECTED.iter().find(|(at, _)| *at == minute) {
            let there = (history(&cluster).len(), pieces(&cluster).len());
            assert_eq!(there, (expected.1, expected.1), "in minute {minute}");
            let kept_for = if expected.1 == HISTORY { MINUTE * 3 } else { MINUTE * 45 };
            assert_eq!(collector.kept_for(), kept_for, "in minute {minute}");
        }
    }
    let numbers = history(&cluster);
    assert_eq!((numbers.first(), numbers.last()), (Some(&281), Some(&300)));
}

#[tokio::test]
async fn what_is_known_of_an_etcd_that_was_restored_is_read_anew() {
    let mut cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut collector = Collector::new(Duration::ZERO);
    let mut last = commit(&fleet, None, b"shared").await;
    let backup = cluster.save_snapshot();
    let first = last.clone();
    last = commit(&fleet, Some(&first), b"before").await;
    commit(&fleet, Some(&last), b"later").await;
    collector.collect(&fleet, later()).await.unwrap();
    cluster.restore(&backup).await;
    let fleet = cluster.fleet("lb-1").await;
    let other = commit(&fleet, Some(&first), b"other").await;
    // Revisions are given again.
    assert_eq!(other.mod_revision, last.mod_revision);
    let third = commit(&fleet, Some(&other), b"third").await;
    let mut knows_less = collector.clone();
    let collected = collector.collect(&fleet, later()).await;
    assert_eq!(collected, Ok(Collected::default()), "all pieces are used");
    commit(&fleet, Some(&third), b"fourth").await;
    let collected = knows_less.collect(&fleet, later()).await;
    assert_eq!(collected, Ok(Collected::default()), "all pieces are used");
}

#[tokio::test]
async fn what_was_marked_out_goes_with_the_last_generation_that_has_the_pool() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let commit_with = async |base: Option<&Committed>, pools: &[&str], content: &[u8]| {
        let groups = pools.iter().map(|pool| (name(pool), name("eu"))).collect();
        let draft = Draft { groups, ..draft(content) };
        fleet.commit(&Attempt::new(base, draft).unwrap()).await.unwrap()
    };
    let mut last = commit_with(None, &["web", "gone"], b"").await;
    for (region, pool) in [("eu", "web"), ("eu", "gone"), ("us", "gone")] {
        let out = MarkedOut { members: ["10.0.0.1".parse().unwrap()].into(), ..Default::default() };
        let homes = Homes { now: out.clone(), before: out, since: later(), generation: 1 };
        let change = HomesChange { pool: name(pool), expected: 0, value: Some(homes.into()) };
        fleet.write_homes(&name(region), &[change]).await.unwrap();
    }
    let homes =
        || cluster.etcdctl(&[0], &["get", "--prefix", "--keys-only", "/spillway/edge/homes/"]);
    let mut collector = Collector::new(Duration::ZERO);
    for number in 1..HISTORY as u64 {
        last = commit_with(Some(&last), &["web"], &number.to_be_bytes()).await;
    }
    let collected = collector.collect(&fleet, later()).await;
    assert_eq!(collected, Ok(Collected::default()), "the first generation is kept");

    commit_with(Some(&last), &["web"], b"last").await;
    let collected = collector.collect(&fleet, later()).await;
    let expected = Collected { generations: 1, homes: 2, ..Collected::default() };
    assert_eq!(collected, Ok(expected));
    let left = homes().unwrap();
    let left: Vec<_> = left.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(left, ["/spillway/edge/homes/eu/web"]);
}

#[tokio::test]
async fn a_generation_under_another_number_stays_and_is_counted() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut last = commit(&fleet, None, b"").await;
    let [own, other] = [1, 900].map(|number| format!("/spillway/edge/config/history/{number}"));
    let value = |key: &str| cluster.etcdctl(&[0], &["get", key, "--print-value-only"]).unwrap();
    let first = value(&own);
    cluster.etcdctl(&[0], &["put", &other, first.trim()]).unwrap();
    for number in 0..HISTORY as u64 {
        last = commit(&fleet, Some(&last), &number.to_be_bytes()).await;
    }
    let collected = Collector::new(Duration::ZERO).collect(&fleet, later()).await;
    let expected = Collected { generations: 1, misnumbered: 1, ..Collected::default() };
    assert_eq!(collected, Ok(expected), "its pieces are used");
    assert_eq!((value(&own), value(&other)), (String::new(), first));
}

#[tokio::test]
async fn pieces_of_a_commit_under_way_stay() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    cluster.etcdctl(&[0], &["put", &chunk(b"one"), "one"]).unwrap();
    let mut patient = Collector::new(GRACE);
    let mut eager = Collector::new(Duration::ZERO);
    for _ in 0..2 {
        let collected = patient.collect(&fleet, later()).await;
        assert_eq!(collected, Ok(Collected::default()));
    }
    let one = Collected { pieces: 1, ..Collected::default() };
    assert_eq!(eager.collect(&fleet, later()).await, Ok(one));
}

#[tokio::test]
async fn a_generation_never_lacks_a_piece_while_others_collect() {
    const PIECES: usize = 4;
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    // About the time that a commit takes here.
    let mut collector = Collector::new(Duration::from_millis(10));
    let removed = Arc::new(AtomicUsize::new(0));
    let collecting = tokio::spawn({
        let removed = Arc::clone(&removed);
        async move {
            loop {
                let collected = collector.collect(&other, later()).await.unwrap();
                removed.fetch_add(collected.pieces, Ordering::SeqCst);
            }
        }
    });
    let mut last = None;
    let mut put = 0;
    until("a piece that was removed before its transaction", async || {
        let mut content = Vec::new();
        for piece in put..put + PIECES {
            content.extend(piece.to_be_bytes().repeat(MAX_PIECE / size_of::<usize>()));
        }
        put += PIECES;
        let next = attempt(last.as_ref(), &content);
        let committed = loop {
            match fleet.commit(&next).await {
                Ok(committed) => break committed,
                Err(CommitError::PiecesVanish) => {}
                Err(error) => panic!("{error}"),
            }
        };
        // First what was removed, then what is left: without a race both are at most what was put.
        let removed = removed.load(Ordering::SeqCst);
        let left = pieces(&cluster);
        for piece in &committed.document.body.pieces {
            assert!(left.contains(&format!("/spillway/edge/chunks/{piece}")), "{committed:?}");
        }
        last = Some(committed);
        let has_raced = removed + left.len() > put;
        // Old generations have gone by then too.
        (has_raced && put > PIECES * (HISTORY + 5)).then_some(())
    })
    .await;
    collecting.abort();
}

#[tokio::test]
async fn a_piece_that_vanished_before_the_transaction_is_put_again() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let first = commit(&fleet, None, b"one").await;
    let key = chunk(b"one");
    cluster.etcdctl(&[0], &["del", &key]).unwrap();
    let second = commit(&fleet, Some(&first), b"one").await;
    assert_eq!(cluster.etcdctl(&[0], &["get", "--print-value-only", &key]).unwrap(), "one\n");
    assert_eq!(second.document.body.number, 2);
}

#[tokio::test]
async fn five_megabytes_are_shared_and_only_new_pieces_are_written() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let mut configuration = noise(5 << 20);
    let first = commit(&fleet, None, &configuration).await;
    let mut following = Following::new(&fleet);
    let snapshot = following.until_generation(1).await;
    assert!(snapshot.configuration.as_ref().unwrap().bytes[..] == configuration[..]);
    configuration[MAX_PIECE + 7] ^= 1;
    let second = commit(&fleet, Some(&first), &configuration).await;
    // One piece, then the generation.
    assert_eq!(second.mod_revision, first.mod_revision + 2);
    let snapshot = following.until_generation(2).await;
    assert!(snapshot.configuration.as_ref().unwrap().bytes[..] == configuration[..]);
    let large = draft(&vec![0; MAX_CONFIGURATION + 1]);
    let error = Attempt::new(Some(&second), large).unwrap_err();
    let sentence = "the configuration has 62914561 bytes; a fleet shares at most 62914560";
    assert_eq!(error.to_string(), sentence);
}

fn groups(count: usize) -> BTreeSet<(Name, Name)> {
    (0..count).map(|it| (name(&format!("pool-{it}")), name("eu"))).collect()
}

#[tokio::test]
async fn births_go_on_from_generation_to_generation() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let of = |text: &str| BTreeSet::from([name(text)]);
    let draft = |count, live: &str| Draft {
        groups: groups(count),
        members_seen: i64::MAX,
        live: BTreeSet::from([name(live)]),
        ..draft(b"one")
    };
    let first = fleet.commit(&Attempt::new(None, draft(1, "lb-1")).unwrap()).await.unwrap();
    let second = Attempt::new(Some(&first), draft(2, "lb-2")).unwrap();
    let second = fleet.commit(&second).await.unwrap();
    let key = |pool: &str, birth| GroupKey { pool: name(pool), region: name("eu"), birth };
    let births = look(&fleet).await.births();
    assert_eq!(births, [(key("pool-0", 1), of("lb-1")), (key("pool-1", 2), of("lb-2"))].into());
    let none = Attempt::new(Some(&second), draft(0, "lb-3")).unwrap();
    let none = fleet.commit(&none).await.unwrap();
    let again = fleet.commit(&Attempt::new(Some(&none), draft(1, "lb-3")).unwrap()).await.unwrap();
    assert_eq!(look(&fleet).await.births(), [(key("pool-0", 4), of("lb-3"))].into());
    let live = BTreeSet::new();
    let same = Draft { live: live.clone(), ..draft(1, "lb-1") };
    assert!(Attempt::new(Some(&again), same).is_ok(), "none is born");
    let more = Attempt::new(Some(&again), Draft { live, ..draft(2, "lb-1") });
    assert_eq!(more.unwrap_err(), CommitError::NoneAlive);
}

#[tokio::test]
async fn the_largest_generation_with_most_pieces_is_committed() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let empty = draft(&noise(MAX_CONFIGURATION));
    let size = |error: CommitError| match error {
        CommitError::TooManyGroups { size } => size,
        other => panic!("{other}"),
    };
    let reason = |length| Draft { reason: "x".repeat(length), ..empty.clone() };
    let rest = size(Attempt::new(None, reason(MAX_GENERATION)).unwrap_err()) - MAX_GENERATION;
    let too_large = Attempt::new(None, reason(MAX_GENERATION - rest + 1)).unwrap_err();
    assert_eq!(
        too_large.to_string(),
        "what is said of the configuration's groups, and why it is applied, has 737281 bytes; a fleet shares at most 737280"
    );
    let largest = Attempt::new(None, reason(MAX_GENERATION - rest)).unwrap();
    let committed = fleet.commit(&largest).await.unwrap();
    assert_eq!(fleet.current().await, Ok(Some(committed)));
    // Groups that were born one by one while other balancers were alive.
    let live: BTreeSet<_> = (0..100).map(|it| name(&format!("balancer-{it}"))).collect();
    let all = Draft { groups: groups(2_000), live, ..draft(b"one") };
    assert!(Attempt::new(None, all).is_ok());
    let many = Draft { groups: groups(40_000), ..draft(b"one") };
    assert!(size(Attempt::new(None, many).unwrap_err()) > MAX_GENERATION);
}

#[tokio::test]
async fn an_old_generation_is_read_with_its_bytes() {
    let cluster = Cluster::start(1).await;
    let (fleet, other) = (cluster.fleet("lb-1").await, cluster.fleet("lb-2").await);
    let content = noise(MAX_PIECE + 1);
    let first = commit(&fleet, None, &content).await;
    commit(&fleet, Some(&first), b"two").await;
    let read = GenerationReader::new(&other).read(1).await.unwrap();
    assert!(read.bytes[..] == content[..]);
    assert_eq!(read.committed, first);
    let sentence =
        async |number| GenerationReader::new(&other).read(number).await.unwrap_err().to_string();
    assert_eq!(sentence(3).await, "the fleet does not keep generation 3");
    let put = |key: &str, value: &str| cluster.etcdctl(&[0], &["put", key, value]).unwrap();
    let get = |key: &str| cluster.etcdctl(&[0], &["get", key, "--print-value-only"]).unwrap();
    put("/spillway/edge/config/history/4", get("/spillway/edge/config/history/2").trim());
    assert_eq!(sentence(4).await, "generation 4 cannot be used: its value says generation 2");
    put("/spillway/edge/config/history/5", "{");
    assert!(sentence(5).await.starts_with("/spillway/edge/config/history/5: is malformed: "));
    put(&chunk(b"two"), "tow");
    let damaged = Digest::new(b"two");
    assert_eq!(
        sentence(2).await,
        format!("generation 2 cannot be used: piece {damaged} is damaged")
    );
    cluster.etcdctl(&[0], &["del", &chunk(b"two")]).unwrap();
    assert_eq!(
        sentence(2).await,
        format!("generation 2 cannot be used: piece {damaged} is missing")
    );
}

#[tokio::test]
async fn more_pieces_than_a_transaction_compares_are_committed_and_read() {
    let cluster = Cluster::start(1).await;
    let fleet = cluster.fleet("lb-1").await;
    let parts: Vec<_> = (0..1_000u32).map(|it| it.to_be_bytes().to_vec()).collect();
    let all = parts.concat();
    let draft = Draft { parts: parts.into(), ..draft(b"") };
    let committed = fleet.commit(&Attempt::new(None, draft).unwrap()).await.unwrap();
    assert_eq!(committed.document.body.pieces.len(), 1_000);
    let snapshot = look(&fleet).await;
    assert!(snapshot.configuration.as_ref().unwrap().bytes[..] == all[..]);
}
