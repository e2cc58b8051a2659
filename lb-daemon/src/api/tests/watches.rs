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

    let applied = client.apply(apply(configuration())).await.unwrap().into_inner();
    let Event::Generation(change) = next().await else { panic!("a generation") };
    assert_eq!((change.generation, change.changes), (1, applied.changes));
    let mut backend = async || match next().await {
        Event::Backend(backend) => (backend.address, backend.state, backend.reason),
        other => panic!("{other:?}"),
    };
    let expected = |address: &str, state: &str, reason: &str| {
        (address.to_owned(), state.to_owned(), reason.to_owned())
    };
    assert_eq!(backend().await, expected("10.0.0.1", "dead", "not checked yet"));
    assert_eq!(backend().await, expected("10.0.0.2", "dead", "not checked yet"));
    daemon.judge("10.0.0.2", true).await;
    assert_eq!(backend().await, expected("10.0.0.2", "up", "all checks pass"));
    daemon.judge("10.0.0.2", false).await;
    assert_eq!(backend().await, expected("10.0.0.2", "dead", "check tcp: timed out"));
}

/// More changes than are kept for anybody, to a watcher who reads none of them meanwhile.
#[tokio::test]
async fn a_watcher_that_lags_gets_a_snapshot_again() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let mut watch = client.watch(v1::WatchRequest {}).await.unwrap().into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert!(matches!(first.event, Some(Event::Snapshot(_))));
    for round in 0..100_000 {
        daemon.judge("10.0.0.1", round % 2 == 0).await;
    }
    client.export(v1::ExportRequest {}).await.unwrap();
    loop {
        let message = watch.message().await.unwrap().unwrap();
        if let Some(Event::Snapshot(snapshot)) = message.event {
            assert_eq!(snapshot.backends[0].state, "dead", "the last round's");
            break;
        }
    }
}
