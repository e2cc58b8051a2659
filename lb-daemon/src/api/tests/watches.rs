use v1::watch_response::Event;

use super::*;

#[tokio::test]
async fn a_watch_tells_what_happens_as_it_happens() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut watch = client.watch(v1::WatchRequest {}).await.unwrap().into_inner();
    let mut next = async || watch.message().await.unwrap().unwrap().event.unwrap();

    let Event::Snapshot(snapshot) = next().await else { panic!("a snapshot comes first") };
    assert_eq!((snapshot.generation, snapshot.backends.len()), (0, 0));

    let applied = client.apply(apply(configuration())).await.unwrap().into_inner().result.unwrap();
    let Event::Generation(change) = next().await else { panic!("a generation") };
    assert_eq!((change.generation, change.changes), (1, applied.changes));
    let mut backend = async || match next().await {
        Event::Backend(backend) => {
            let state = backend.state();
            (backend.address, state, backend.reason.unwrap().text)
        }
        other => panic!("{other:?}"),
    };
    let expected =
        |address: &str, state, reason: &str| (address.to_owned(), state, reason.to_owned());
    assert_eq!(backend().await, expected("10.0.0.1", v1::BackendState::Pending, "not checked yet"));
    assert_eq!(backend().await, expected("10.0.0.2", v1::BackendState::Pending, "not checked yet"));
    daemon.judge("10.0.0.2", true).await;
    assert_eq!(backend().await, expected("10.0.0.2", v1::BackendState::Up, "all checks pass"));
    daemon.judge("10.0.0.2", false).await;
    assert_eq!(
        backend().await,
        expected("10.0.0.2", v1::BackendState::Unreachable, "check tcp: timed out")
    );
}

/// More changes than are kept for anybody, to a watcher who reads none of them meanwhile.
#[tokio::test]
async fn a_watcher_that_lags_gets_a_snapshot_again() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    // They get one that they share. Each has a connection of its own, or those that are not read would hold up the others.
    let mut watches = Vec::new();
    for _ in 0..3 {
        let mut watch =
            daemon.client().await.watch(v1::WatchRequest {}).await.unwrap().into_inner();
        let first = watch.message().await.unwrap().unwrap();
        assert!(matches!(first.event, Some(Event::Snapshot(_))));
        watches.push(watch);
    }
    for round in 0..100_000 {
        daemon.report("10.0.0.1", round % 2 == 0).await;
    }
    daemon.judge("10.0.0.1", false).await;
    client.export(v1::ExportRequest {}).await.unwrap();
    for mut watch in watches {
        loop {
            let message = watch.message().await.unwrap().unwrap();
            if let Some(Event::Snapshot(snapshot)) = message.event {
                let last = v1::BackendState::Unreachable;
                assert_eq!(snapshot.backends[0].state(), last, "the last round's");
                break;
            }
        }
    }
}

/// Whoever never reads costs what there is room for; whoever reads a little and falls behind again at
/// once is told so.
#[tokio::test]
async fn a_watcher_that_stays_too_slow_is_ended_in_words() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    // A client with little room of its own, so that the daemon is left with what it does not read.
    let path = daemon.path.clone();
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let slow = Endpoint::from_static("http://spillwayd").initial_stream_window_size(65_535);
    let mut slow = SpillwayClient::new(slow.connect_with_connector(connector).await.unwrap());
    let mut watch = slow.watch(v1::WatchRequest {}).await.unwrap().into_inner();
    let ended = loop {
        for round in 0..6_000 {
            daemon.report("10.0.0.1", round % 2 == 0).await;
        }
        client.export(v1::ExportRequest {}).await.unwrap();
        // It reads on up to the snapshot that it gets for what it missed.
        let end = loop {
            match watch.message().await {
                Ok(Some(message)) if matches!(message.event, Some(Event::Snapshot(_))) => {
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
