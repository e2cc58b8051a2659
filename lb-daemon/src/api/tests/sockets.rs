use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn only_owner_and_group_may_talk_and_the_file_goes_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/spillwayd.sock");
    let (socket, listener) = Socket::bind(&path, Rights::default()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    drop((socket, listener));
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_in_use_is_not_taken_and_a_stale_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spillwayd.sock");
    let (first, listener) = Socket::bind(&path, Rights::default()).unwrap();
    let error = Socket::bind(&path, Rights::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: another spillwayd listens there", path.display()));
    let own = std::process::id();
    assert_eq!(
        error.hint(),
        format!("stop the other one (process {own}), or give each its own --socket")
    );

    // As after a kill: the file is there, nobody listens.
    drop(listener);
    assert!(path.exists());
    let (_second, listener) = Socket::bind(&path, Rights::default()).unwrap();
    drop(first);
    assert!(path.exists(), "the first one's end leaves the second one's socket alone");
    let (connected, accepted) = tokio::join!(UnixStream::connect(&path), listener.accept());
    connected.unwrap();
    accepted.unwrap();
}

#[tokio::test]
async fn what_is_no_socket_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spillwayd.sock");
    fs::write(&path, "mine").unwrap();
    let error = Socket::bind(&path, Rights::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: is there and is not a socket", path.display()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

    let error = Socket::bind(&path.join("below"), Rights::default()).unwrap_err();
    assert!(matches!(&error, SocketError::File { .. }), "{error}");
}

#[tokio::test]
async fn a_stop_ends_watches_and_the_server_at_once() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut watch = client.watch(v1::WatchRequest {}).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    daemon.stop.cancel();
    let ended = timeout(Duration::from_secs(4), async {
        let status = watch.message().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert_eq!(status.message(), "the daemon is stopping");
        assert_eq!(daemon.state.await.unwrap(), LoopEnd::Stopped);
        daemon.server.await.unwrap().unwrap();
    });
    ended.await.expect("before the deadline that would cut it off");
    assert!(!daemon.path.exists());
}
