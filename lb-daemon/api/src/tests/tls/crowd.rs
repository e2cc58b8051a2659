//! Crowds: more streams and connections than the daemon takes.

use futures::future::join_all;
use tonic::Streaming;

use super::*;
use lb_config::HINT_TRAILER;

/// For an answer while there is a crowd, which stays until after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of so many watches over these channels: those that are open, and the refusals.
async fn watches(
    channels: &[Channel],
    number: usize,
) -> (Vec<Streaming<v1::WatchResponse>>, Vec<tonic::Status>) {
    let calls = (0..number).map(|n| {
        let mut client = SpillwayClient::new(channels[n % channels.len()].clone());
        async move { client.watch(v1::WatchRequest::default()).await }
    });
    let answers = timeout(4 * LIMIT, join_all(calls)).await.expect("each call is answered");
    let (mut open, mut refused) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(stream) => open.push(stream.into_inner()),
            Err(status) => refused.push(status),
        }
    }
    (open, refused)
}

fn all_refused_in_words(refused: &[tonic::Status]) {
    for status in refused {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(!status.message().is_empty(), "{status}");
        let hint = status.metadata().get(HINT_TRAILER).unwrap().to_str().unwrap();
        assert!(hint.starts_with("end some of them"), "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_streams_of_a_viewer_leave_the_daemon_to_others() {
    let remote = Remote::start().await;
    let (eye, hand) = (remote.ours.client("eye.example"), remote.ours.client("hand.example"));
    let other = remote.channel(Some(&hand)).await.unwrap();
    let mut channels = Vec::new();
    for _ in 0..20 {
        channels.push(remote.channel(Some(&eye)).await.unwrap());
    }
    let crowd = tokio::spawn(async move { watches(&channels, 2_000).await });
    while !crowd.is_finished() {
        let mut other = SpillwayClient::new(other.clone());
        let answer = timeout(PATIENCE, other.status(v1::StatusRequest::default())).await;
        answer.expect("another client is answered").unwrap();
        let mut local = remote.daemon.client().await;
        let answer = timeout(PATIENCE, local.status(v1::StatusRequest::default())).await;
        answer.expect("the socket is answered").unwrap();
    }
    let (open, refused) = crowd.await.unwrap();
    assert_eq!((open.len(), refused.len()), (16, 1_984));
    all_refused_in_words(&refused);
    // Another client's watch has a place, and a stream that ends gives its place back.
    let (others, refused) = watches(&[other], 1).await;
    assert_eq!((others.len(), refused.len()), (1, 0));
    drop(open);
    let again = remote.channel(Some(&eye)).await.unwrap();
    let found = timeout(LIMIT, async {
        while watches(std::slice::from_ref(&again), 1).await.0.is_empty() {}
    });
    found.await.expect("places come free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_streams_over_the_socket_leaves_it_to_others() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(configuration())).await.unwrap();
    let mut channels = Vec::new();
    for _ in 0..20 {
        channels.push(daemon.channel().await);
    }
    let (open, refused) = watches(&channels, 2_000).await;
    assert_eq!((open.len(), refused.len()), (128, 1_872));
    all_refused_in_words(&refused);
    let answer =
        timeout(PATIENCE, daemon.client().await.status(v1::StatusRequest::default())).await;
    answer.expect("an answer").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_socket_s_number_are_closed_at_once() {
    let daemon = Daemon::start();
    let mut streams = Vec::new();
    for _ in 0..160 {
        streams.push(UnixStream::connect(&daemon.path).await.unwrap());
    }
    // 128 of one user are taken; each of the others ends, long before the silent ones of the 128 do.
    let begun = Instant::now();
    for stream in &mut streams[128..] {
        let mut byte = [0];
        assert!(matches!(timeout(LIMIT, stream.read(&mut byte)).await, Ok(Ok(0) | Err(_))));
    }
    for stream in &streams[..128] {
        let is_open = stream.try_read(&mut [0]).map_or_else(
            |nothing| nothing.kind() == std::io::ErrorKind::WouldBlock,
            |length| length > 0,
        );
        assert!(is_open, "after {:?}", begun.elapsed());
    }
    streams.clear();
    let answer = timeout(LIMIT, async {
        loop {
            let path = daemon.path.clone();
            let connector = tower::service_fn(move |_| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            let endpoint = Endpoint::from_static("http://spillwayd");
            let Ok(channel) = endpoint.connect_with_connector(connector).await else { continue };
            if SpillwayClient::new(channel).status(v1::StatusRequest::default()).await.is_ok() {
                break;
            }
        }
    });
    answer.await.expect("the places are free again");
}

/// A viewer's request is read only as far as a question can be long.
#[tokio::test]
async fn a_question_is_not_as_large_as_a_configuration() {
    let remote = Remote::start().await;
    let eye = remote.ours.client("eye.example");
    let channel = remote.channel(Some(&eye)).await.unwrap();
    let request = v1::ExplainRequest { client: "x".repeat(2 << 20), ..Default::default() };
    let status = SpillwayClient::new(channel).explain(request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
}
