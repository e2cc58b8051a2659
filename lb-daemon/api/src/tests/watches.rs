use std::collections::BTreeMap;

use tonic::Streaming;
use v1::{snapshot_begin::Cause, watch_response::Event};

use super::*;

/// Longest wait for a message.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// What a client knows that applies all messages in order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Mirror {
    generation: u64,
    overrides: BTreeMap<String, v1::Override>,
    backends: BTreeMap<(String, String), v1::BackendStatus>,
    in_snapshot: bool,
    resume_token: String,
}

fn key(address: &str) -> (String, String) {
    ("web".into(), address.into())
}

/// Backends by pool and address. No event tells of a share alone.
fn by_key(
    backends: Vec<v1::BackendStatus>,
) -> impl Iterator<Item = ((String, String), v1::BackendStatus)> {
    let backends = backends.into_iter().map(|it| v1::BackendStatus { share: None, ..it });
    backends.map(|it| ((it.pool.clone(), it.address.clone()), it))
}

impl Mirror {
    fn take(&mut self, message: v1::WatchResponse) {
        match message.event.expect("each message has one") {
            Event::SnapshotBegin(begin) => {
                let status = begin.status.expect("it is always set");
                assert!(status.backends.is_empty() && status.overrides.is_empty(), "they follow");
                let generation = status.generation;
                *self = Self { generation, in_snapshot: true, ..Self::default() };
            }
            Event::SnapshotEnd(_) => self.in_snapshot = false,
            Event::Generation(change) => self.generation = change.generation,
            Event::Backends(change) => {
                for gone in change.removed {
                    assert_eq!(gone.kind(), v1::object_reference::Kind::Backend);
                    self.backends.remove(&(gone.pool, gone.name));
                }
                self.backends.extend(by_key(change.backends));
            }
            Event::Groups(_) => {}
            Event::Overrides(change) => {
                for name in change.ended {
                    self.overrides.remove(&name);
                }
                self.overrides.extend(change.set.into_iter().map(|it| (it.name.clone(), it)));
            }
        }
        assert_eq!(message.resume_token.is_empty(), self.in_snapshot, "{self:?}");
        self.resume_token = message.resume_token;
    }

    async fn take_snapshot(&mut self, watch: &mut Streaming<v1::WatchResponse>, cause: Cause) {
        let first = watch.message().await.unwrap().unwrap();
        let Some(Event::SnapshotBegin(begin)) = &first.event else { panic!("{first:?}") };
        assert_eq!(begin.cause(), cause);
        self.take(first);
        while self.in_snapshot {
            self.take(watch.message().await.unwrap().unwrap());
        }
    }

    /// Reads until it knows what the daemon says now.
    async fn catch_up(
        &mut self,
        watch: &mut Streaming<v1::WatchResponse>,
        client: &mut SpillwayClient,
    ) {
        let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
        let backends: BTreeMap<_, _> = by_key(status.backends).collect();
        let overrides = status.overrides.into_iter().map(|it| (it.name.clone(), it));
        let overrides: BTreeMap<_, _> = overrides.collect();
        let is_there = |mirror: &Self| {
            mirror.generation == status.generation
                && (&mirror.backends, &mirror.overrides) == (&backends, &overrides)
        };
        while !is_there(self) {
            let Ok(message) = tokio::time::timeout(LIMIT, watch.message()).await else {
                panic!("{self:#?}\n is not\n{backends:#?}")
            };
            self.take(message.unwrap().unwrap());
        }
    }
}

async fn watch(daemon: &Daemon, resume_token: &str) -> Streaming<v1::WatchResponse> {
    let request = v1::WatchRequest { resume_token: resume_token.into() };
    daemon.client().await.watch(request).await.unwrap().into_inner()
}

#[tokio::test]
async fn a_watch_tells_what_happens_as_it_happens() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut watch = watch(&daemon, "").await;
    let mut mirror = Mirror::default();
    mirror.take_snapshot(&mut watch, Cause::First).await;
    assert_eq!((mirror.generation, mirror.backends.len()), (0, 0));

    let applied = client.apply(apply(configuration())).await.unwrap().into_inner().result.unwrap();
    let mut next = async || watch.message().await.unwrap().unwrap();
    let generation = next().await;
    let Some(Event::Generation(change)) = &generation.event else { panic!("{generation:?}") };
    assert_eq!((change.generation, &change.changes), (1, &applied.changes));
    // All backends of a change are in one message.
    let told = |message: &v1::WatchResponse| match &message.event {
        Some(Event::Backends(change)) => {
            let told = change.backends.iter().map(|it| {
                let text = it.reason.as_ref().unwrap().text.clone();
                (it.address.clone(), it.state(), text)
            });
            told.collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let expected =
        |address: &str, state, reason: &str| (address.to_owned(), state, reason.to_owned());
    let pending = |address| expected(address, v1::BackendState::Pending, "not checked yet");
    assert_eq!(told(&next().await), [pending("10.0.0.1"), pending("10.0.0.2")]);
    daemon.judge("10.0.0.2", true).await;
    let up = expected("10.0.0.2", v1::BackendState::Up, "all checks pass");
    assert_eq!(told(&next().await), [up]);
    daemon.judge("10.0.0.2", false).await;
    let down = expected("10.0.0.2", v1::BackendState::Unreachable, "check tcp: timed out");
    assert_eq!(told(&next().await), [down]);

    let mut fewer = configuration();
    fewer.pools[0].backends.remove(1);
    client.apply(apply(fewer)).await.unwrap();
    let gone = next().await;
    let Some(Event::Backends(change)) = gone.event else { panic!("{gone:?}") };
    let removed = v1::ObjectReference {
        kind: v1::object_reference::Kind::Backend.into(),
        name: "10.0.0.2".into(),
        pool: "web".into(),
    };
    assert_eq!((change.removed, change.backends.len()), (vec![removed], 0));
}

/// A client that was away misses nothing, wherever it stopped reading.
#[tokio::test]
async fn a_watch_goes_on_from_each_of_its_messages() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let mut all = watch(&daemon, "").await;
    let mut mirror = Mirror::default();
    mirror.take_snapshot(&mut all, Cause::First).await;

    let mut other = configuration();
    other.pools[0].backends[1].address = "10.0.0.9".into();
    other.pools[0].backends[0].mtu = 1_400;
    let mut overrides = v1::overrides_client::OverridesClient::new(daemon.channel().await);
    let drain = v1::SetOverridesRequest {
        targets: vec![v1::OverrideTarget { pool: "web".into(), ..Default::default() }],
        kind: v1::OverrideKind::Drain.into(),
        ..Default::default()
    };
    daemon.judge("10.0.0.1", true).await;
    overrides.set_overrides(drain).await.unwrap();
    daemon.judge("10.0.0.2", true).await;
    client.apply(apply(other)).await.unwrap();
    daemon.judge("10.0.0.1", false).await;
    let names = vec!["pools/web/drain".into()];
    let remove = v1::RemoveOverridesRequest { names, ..Default::default() };
    overrides.remove_overrides(remove).await.unwrap();
    daemon.judge("10.0.0.9", true).await;

    let mut stops = vec![mirror.clone()];
    let reference = {
        let mut last = mirror.clone();
        last.catch_up(&mut watch(&daemon, "").await, &mut client).await;
        last
    };
    let same = |one: &Mirror| {
        (one.generation, &one.backends, &one.overrides)
            == (reference.generation, &reference.backends, &reference.overrides)
    };
    while !same(&mirror) {
        let next = tokio::time::timeout(LIMIT, all.message()).await;
        let Ok(message) = next else { panic!("{mirror:#?}\n is not\n{reference:#?}") };
        mirror.take(message.unwrap().unwrap());
        stops.push(mirror.clone());
    }
    assert!(stops.len() > 7, "{}", stops.len());
    for mut stop in stops {
        let mut resumed = watch(&daemon, &stop.resume_token).await;
        while !same(&stop) {
            let message = resumed.message().await.unwrap().unwrap();
            assert!(!matches!(message.event, Some(Event::SnapshotBegin(_))), "{message:?}");
            stop.take(message);
        }
    }

    // What the daemon cannot go on from begins with a snapshot, and is no error.
    let (life, number) = mirror.resume_token.split_once('-').unwrap();
    // Far, as events that the mirror does not need may follow the last that it has read.
    let future = format!("{life}-{}", number.parse::<u64>().unwrap() + 1_000);
    for token in ["x", "0123456789abcdef-3", &future, &mirror.resume_token.replacen('-', "", 1)] {
        let mut anew = Mirror::default();
        anew.take_snapshot(&mut watch(&daemon, token).await, Cause::Token).await;
        assert!(same(&anew), "{token}");
    }
    // So does what was of the daemon before.
    let directory = daemon.stop().await;
    let store = Store::open(directory.path()).unwrap();
    let daemon = Daemon::over(directory, store, Settings::default(), None, Audit::default());
    let mut anew = Mirror::default();
    anew.take_snapshot(&mut watch(&daemon, &mirror.resume_token).await, Cause::Token).await;
    assert_eq!(anew.generation, mirror.generation);
}

/// Many watchers of a change of many backends: each ends with what is in force, and none is sent a message that clients
/// do not take by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_watchers_see_the_end_of_a_large_change() {
    const BACKENDS: u32 = 5_000;
    const WATCHERS: usize = 12;
    let of = |weight| {
        let mut configuration = configuration();
        let pool = &mut configuration.pools[0];
        (pool.slots, pool.health_checks) = (Some(65_537), Vec::new());
        pool.backends = (0..BACKENDS)
            .map(|number| v1::Backend {
                address: std::net::Ipv4Addr::from(0x0a01_0000 + number).to_string(),
                region: "eu".into(),
                weight: Some(weight),
                admin_state: match weight {
                    1 => v1::AdminState::Active,
                    _ => v1::AdminState::Drain,
                }
                .into(),
                ..Default::default()
            })
            .collect();
        apply(configuration)
    };
    let daemon = Arc::new(Daemon::start());
    let mut client = daemon.client().await;
    client.apply(of(1)).await.unwrap();
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watch = watch(&daemon, "").await;
        let mut mirror = Mirror::default();
        mirror.take_snapshot(&mut watch, Cause::First).await;
        assert_eq!(mirror.backends.len(), BACKENDS as usize);
        watchers.push((watch, mirror));
    }
    client.apply(of(2)).await.unwrap();
    for (mut watch, mut mirror) in watchers {
        while mirror.backends.values().any(|it| it.state() != v1::BackendState::Draining) {
            mirror.take(watch.message().await.unwrap().unwrap());
        }
        assert_eq!((mirror.generation, mirror.backends.len()), (2, BACKENDS as usize));
    }
}

/// A watch of a client with little room of its own, so that the daemon is left with what it does not read.
async fn narrow_watch(daemon: &Daemon) -> Streaming<v1::WatchResponse> {
    let narrow = Endpoint::from_static("http://spillwayd").initial_stream_window_size(65_535);
    let mut client = SpillwayClient::new(connect(narrow, daemon.path.clone()).await);
    client.watch(v1::WatchRequest::default()).await.unwrap().into_inner()
}

/// Backends of the pool that [`change_many`] changes.
const MANY: u16 = 500;

/// The usual configuration, with a pool of many backends.
fn with_many() -> v1::ApplyRequest {
    let mut configuration = configuration();
    let backend = |number: u16| v1::Backend {
        address: std::net::Ipv4Addr::from(0x0a01_0000 + u32::from(number)).to_string(),
        region: "eu".into(),
        ..Default::default()
    };
    configuration.pools.push(v1::Pool {
        name: "many".into(),
        slots: Some(65_537),
        backends: (0..MANY).map(backend).collect(),
        ..Default::default()
    });
    apply(configuration)
}

/// Changes the state of many backends, again and again: more objects than may wait for a watcher.
async fn change_many(daemon: &Daemon) {
    let mut overrides = v1::overrides_client::OverridesClient::new(daemon.channel().await);
    for _ in 0..20 {
        let target = v1::OverrideTarget { pool: "many".into(), ..Default::default() };
        let kind = v1::OverrideKind::Drain.into();
        let drain = v1::SetOverridesRequest { targets: vec![target], kind, ..Default::default() };
        overrides.set_overrides(drain).await.unwrap();
        let names = vec!["pools/many/drain".into()];
        let undrain = v1::RemoveOverridesRequest { names, ..Default::default() };
        overrides.remove_overrides(undrain).await.unwrap();
    }
}

/// More changes than are kept for anybody, to a watcher who reads none of them meanwhile.
#[tokio::test]
async fn a_watcher_that_lags_gets_a_snapshot_again() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(with_many()).await.unwrap();
    // They get one that they share. Each has a connection of its own, or those that are not read would hold up the others.
    let mut watches = Vec::new();
    for _ in 0..3 {
        let mut watch = narrow_watch(&daemon).await;
        let mut mirror = Mirror::default();
        mirror.take_snapshot(&mut watch, Cause::First).await;
        watches.push((watch, mirror));
    }
    change_many(&daemon).await;
    daemon.judge("10.0.0.1", false).await;
    for (mut watch, mut mirror) in watches {
        let mut begun = None;
        while begun.is_none() || mirror.in_snapshot {
            let message = watch.message().await.unwrap().unwrap();
            if let Some(Event::SnapshotBegin(begin)) = &message.event {
                begun = Some(begin.cause());
            }
            mirror.take(message);
        }
        assert_eq!(begun, Some(Cause::Lag));
        let last = v1::BackendState::Unreachable;
        assert_eq!(mirror.backends[&key("10.0.0.1")].state(), last, "the last round's");
    }
}

/// Whoever never reads costs what there is room for; whoever reads a little and falls behind again at
/// once is told so.
#[tokio::test]
async fn a_watcher_that_stays_too_slow_is_ended_in_words() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(with_many()).await.unwrap();
    let mut watch = narrow_watch(&daemon).await;
    let ended = loop {
        change_many(&daemon).await;
        // It reads on up to the snapshot that it gets for what it missed.
        let end = loop {
            match watch.message().await {
                Ok(Some(message)) if matches!(message.event, Some(Event::SnapshotBegin(_))) => {
                    break None;
                }
                Ok(message) => assert!(message.is_some(), "it ends in words"),
                Err(status) => break Some(status),
            }
        };
        if let Some(status) = end {
            break status;
        }
    };
    assert_eq!(ended.code(), tonic::Code::ResourceExhausted, "{ended}");
    assert!(ended.message().contains("watch again"), "{ended}");
}
