//! Servers of etcd that stop to answer without the end of a connection, as when their host loses power.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use lb_fleet::{
    Document, Fleet, FleetSettings,
    commit::{CommitError, Resolved},
    documents::{SharedOverride, WallTime},
    overrides::OverrideChange,
    presence::{LEASE, LeaseState},
};
use lb_model::overrides::{Action, Key};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Following, attempt,
    cluster::{Cluster, PATIENCE},
    commit,
    presence::liveness,
};

/// A server as its clients reach it.
#[derive(Clone)]
struct Wire {
    address: SocketAddr,
    /// Its answers are lost from now on.
    is_silent: Arc<AtomicBool>,
    /// Whether the next request makes it silent, at whichever server.
    is_armed: Arc<AtomicBool>,
    /// Whether connections end when a request arrives.
    is_cut: Arc<AtomicBool>,
    /// Bytes that were lost.
    lost: Arc<AtomicUsize>,
}

impl Wire {
    async fn start(to: SocketAddr, is_armed: Arc<AtomicBool>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_silent, is_cut, lost) = (Arc::default(), Arc::default(), Arc::default());
        let wire = Self { address, is_silent, is_armed, is_cut, lost };
        let accepted = wire.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(to).await else { continue };
                let ((from, back), (answers, requests)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(accepted.clone().carry_requests(from, requests));
                tokio::spawn(accepted.clone().carry_answers(answers, back));
            }
        });
        wire
    }

    async fn carry_requests(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            if self.is_cut.load(Ordering::SeqCst) {
                self.lost.fetch_add(count, Ordering::SeqCst);
                break;
            }
            if self.is_armed.swap(false, Ordering::SeqCst) {
                self.silence();
            }
            if to.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    }

    async fn carry_answers(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            if self.is_silent.load(Ordering::SeqCst) {
                self.lost.fetch_add(count, Ordering::SeqCst);
            } else if to.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
        // Its end would be seen.
        if self.is_silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    fn silence(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }
}

/// Three servers, and what balancers reach them by.
struct Wired {
    cluster: Cluster,
    wires: Vec<Wire>,
    is_armed: Arc<AtomicBool>,
}

impl Wired {
    async fn start() -> Self {
        let cluster = Cluster::start(3).await;
        let (is_armed, mut wires) = (Arc::<AtomicBool>::default(), Vec::new());
        for node in 0..3 {
            wires.push(Wire::start(cluster.address(node).into(), Arc::clone(&is_armed)).await);
        }
        Self { cluster, wires, is_armed }
    }

    /// A balancer that has connections to all servers, and nothing under way.
    async fn fleet(&self, name: &str) -> Fleet {
        let endpoints = self.wires.iter().map(|wire| format!("http://{}", wire.address));
        let settings =
            FleetSettings { endpoints: endpoints.collect(), ..self.cluster.settings(name) };
        let fleet = Fleet::new(&settings).await.unwrap();
        for _ in 0..30 {
            fleet.current().await.unwrap();
        }
        fleet
    }

    /// The next request arrives, and its answer is lost, as are all of that server from then on.
    fn lose_next_answer(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }

    /// Whether an answer was lost since the last time; all servers answer again.
    fn has_lost(&self) -> bool {
        self.wires.iter().for_each(|wire| wire.is_silent.store(false, Ordering::SeqCst));
        self.wires.iter().map(|wire| wire.lost.swap(0, Ordering::SeqCst)).sum::<usize>() > 0
    }
}

fn key(number: usize) -> Key {
    format!("backends/10.0.0.{number}/drain").parse().unwrap()
}

fn drain(number: usize) -> OverrideChange {
    let body = SharedOverride {
        action: Action::Drain,
        author: "alice at lb-1".into(),
        reason: format!("ticket {number}"),
        set_at: WallTime::from(UNIX_EPOCH + Duration::from_secs(1)),
        until: None,
    };
    OverrideChange { key: key(number), expected: 0, value: Some(Document::from(body)) }
}

/// The mod revision of an override in etcd.
async fn revision(wired: &Wired, number: usize) -> Option<i64> {
    let fleet = wired.cluster.fleet("lb-9").await;
    let snapshot = crate::look(&fleet).await;
    snapshot.overrides.get(&key(number)).map(|it| it.mod_revision)
}

/// An override whose reply is lost was made, and is said to be.
#[tokio::test(flavor = "multi_thread")]
async fn an_override_whose_reply_is_lost_is_known_to_be_made() {
    let wired = Wired::start().await;
    commit(&wired.fleet("lb-1").await, None, b"one").await;
    let mut lost = 0;
    for number in 1..=4 {
        let fleet = wired.fleet("lb-1").await;
        wired.lose_next_answer();
        let set = fleet.change_overrides(&[drain(number)]).await.unwrap();
        lost += usize::from(wired.has_lost());
        let there = revision(&wired, number).await.expect("it was set");
        assert!(set >= there, "{set} is not after {there}");

        let fleet = wired.fleet("lb-1").await;
        let removal = OverrideChange { expected: there, value: None, ..drain(number) };
        wired.lose_next_answer();
        fleet.change_overrides(&[removal]).await.unwrap();
        lost += usize::from(wired.has_lost());
        assert_eq!(revision(&wired, number).await, None, "it was removed");
    }
    assert!(lost > 0, "no reply was lost");
}

/// One that another change overtook was not made, and that is known too.
#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_meets_another_one_is_known_not_to_be_made() {
    let wired = Wired::start().await;
    let other = wired.cluster.fleet("lb-2").await;
    let mut lost = 0;
    for number in 1..=4 {
        other.change_overrides(&[drain(number)]).await.unwrap();
        let fleet = wired.fleet("lb-1").await;
        wired.lose_next_answer();
        let mine = OverrideChange { value: weight(), ..drain(number) };
        let refused = fleet.change_overrides(&[mine]).await;
        assert_eq!(refused, Err(lb_fleet::overrides::OverrideError::Conflict));
        lost += usize::from(wired.has_lost());
    }
    assert!(lost > 0, "no reply was lost");
}

/// Another drain of the same backend.
fn weight() -> Option<Document<SharedOverride>> {
    let other = drain(99).value.unwrap().body;
    Some(Document::from(SharedOverride { author: "bob at lb-1".into(), ..other }))
}

/// A commit whose reply is lost is found.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_reply_is_lost_is_found_at_another_server() {
    let wired = Wired::start().await;
    let mut base = commit(&wired.fleet("lb-1").await, None, b"0").await;
    for number in 1..=4 {
        let fleet = wired.fleet("lb-1").await;
        // Its piece is there, so the transaction is the second request, after the list of pieces.
        let attempt = attempt(Some(&base), b"0");
        wired.lose_next_answer();
        let committed = match fleet.commit(&attempt).await {
            Ok(committed) => committed,
            Err(CommitError::Unknown(_)) => match fleet.resolve(&attempt).await.unwrap() {
                Resolved::Applied(committed) => *committed,
                Resolved::Open => fleet.commit(&attempt).await.unwrap(),
                other => panic!("{number}: {other:?}"),
            },
            Err(error) => panic!("{number}: {error}"),
        };
        wired.has_lost();
        base = committed;
    }
}

/// With one server that answers, a lease is kept and changes are followed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_kept_by_the_server_that_answers() {
    let wired = Wired::start().await;
    let fleet = wired.fleet("lb-1").await;
    let base = commit(&fleet, None, b"one").await;
    let mut following = Following::new(&fleet);
    following.until_generation(1).await;
    let (_liveness_tx, liveness_rx) = watch::channel(liveness(1));
    let (state_tx, mut state_rx) = watch::channel(LeaseState::Waiting);
    let shutdown = CancellationToken::new();
    let staying = tokio::spawn(fleet.clone().stay_alive(liveness_rx, state_tx, shutdown.clone()));
    let is_held = |state: &LeaseState| matches!(state, LeaseState::Held { .. });
    let held = timeout(PATIENCE, state_rx.wait_for(is_held)).await.unwrap().unwrap().clone();

    // Others still have a quorum: these two are silent for this balancer alone.
    wired.wires[..2].iter().for_each(Wire::silence);
    let begin = Instant::now();
    commit(&wired.cluster.fleet("lb-2").await, Some(&base), b"two").await;
    following.until_generation(2).await;
    // Longer than a lease that is not renewed lasts.
    let whole = Duration::from_secs(2 * LEASE.unsigned_abs());
    let other = state_rx.wait_for(|state| *state != held);
    let other = timeout(whole.saturating_sub(begin.elapsed()), other).await;
    assert!(other.is_err(), "{:?}, not {held:?}", other.unwrap().unwrap().clone());
    shutdown.cancel();
    timeout(PATIENCE, staying).await.unwrap().unwrap();
}

/// Changes go on while a server is stopped, whichever it is.
#[tokio::test(flavor = "multi_thread")]
async fn changes_go_on_while_a_server_is_stopped() {
    let wired = Wired::start().await;
    for node in 0..3 {
        let fleet = wired.cluster.fleet("lb-1").await;
        wired.cluster.freeze(node);
        for number in 0..6 {
            let number = 10 * (node + 1) + number;
            fleet.change_overrides(&[drain(number)]).await.unwrap();
        }
        wired.cluster.thaw(node);
        wired.cluster.leader().await;
    }
}

/// Without that a change is refused now and then, although two servers answer.
#[tokio::test]
async fn pieces_are_put_at_another_server_if_one_is_silent() {
    let wired = Wired::start().await;
    let mut fleets = Vec::new();
    for number in 0..20 {
        fleets.push((number, wired.fleet(&format!("lb-{number}")).await));
    }
    wired.wires[0].silence();
    // At once: after a while the connections to the silent one end by themselves.
    let commits = fleets.into_iter().map(|(number, fleet)| {
        tokio::spawn(async move {
            let committed = fleet.commit(&attempt(None, format!("{number}").as_bytes())).await;
            // All but the first one come too late.
            let is_refused = matches!(committed, Err(CommitError::Etcd(_)));
            assert!(!is_refused, "{number}: {committed:?}");
        })
    });
    for commit in commits.collect::<Vec<_>>() {
        commit.await.unwrap();
    }
}

/// Without that a request fails that another server would have answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_connection_ends_is_made_at_another_server() {
    let wired = Wired::start().await;
    let mut fleets = Vec::new();
    for number in 0..30 {
        fleets.push(wired.fleet(&format!("lb-{number}")).await);
    }
    wired.wires[0].is_cut.store(true, Ordering::SeqCst);
    for fleet in &fleets {
        fleet.current().await.unwrap();
        let committed = fleet.commit(&attempt(None, b"pieces")).await;
        assert!(!matches!(committed, Err(CommitError::Etcd(_))), "{committed:?}");
    }
    assert!(wired.has_lost(), "no connection was ended");
}
