//! The server itself: its sockets, the health service, reflection, and callers that go away.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use prost_reflect::DescriptorPool;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::{Code, Request, Streaming};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use super::*;

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

/// Waits until a watch says so; what it says in between is of no interest.
async fn until(watch: &mut Streaming<HealthCheckResponse>, status: ServingStatus) {
    while watch.next().await.unwrap().unwrap().status() != status {}
}

#[tokio::test]
async fn health_is_that_of_state_and_packet_path() {
    let daemon = Daemon::start();
    let mut client = HealthClient::new(daemon.channel().await);
    let mut watch = client.watch(of("spillway.v1.Objects")).await.unwrap().into_inner();
    until(&mut watch, ServingStatus::Serving).await;
    for service in ["", "spillway.v1.Spillway", "spillway.v1.Objects"] {
        let answer = client.check(of(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    assert_eq!(client.check(of("other")).await.unwrap_err().code(), Code::NotFound);

    daemon.packets.content().detached = true;
    until(&mut watch, ServingStatus::NotServing).await;
    assert_eq!(
        client.check(of("")).await.unwrap().into_inner().status(),
        ServingStatus::NotServing
    );
    daemon.packets.content().detached = false;
    until(&mut watch, ServingStatus::Serving).await;

    // In force, but not in the packet path until the failures are over.
    daemon.packets.content().failures = usize::MAX;
    daemon.client().await.apply(apply(configuration())).await.unwrap_err();
    until(&mut watch, ServingStatus::NotServing).await;
    daemon.packets.content().failures = 0;
    until(&mut watch, ServingStatus::Serving).await;
}

#[tokio::test]
async fn a_state_that_is_gone_does_not_serve() {
    let mut daemon = Daemon::start();
    let mut client = HealthClient::new(daemon.channel().await);
    let mut watch = client.watch(of("")).await.unwrap().into_inner();
    until(&mut watch, ServingStatus::Serving).await;
    daemon.state.abort();
    let _ = (&mut daemon.state).await;
    until(&mut watch, ServingStatus::NotServing).await;
}

#[tokio::test]
async fn who_watches_health_does_not_keep_the_daemon_from_stopping() {
    let mut soonest = Duration::MAX;
    for _ in 0..3 {
        let daemon = Daemon::start();
        let mut client = HealthClient::new(daemon.channel().await);
        let mut watch = client.watch(of("")).await.unwrap().into_inner();
        until(&mut watch, ServingStatus::Serving).await;
        let start = Instant::now();
        daemon.stop.cancel();
        while let Some(Ok(_)) = watch.next().await {}
        daemon.server.await.unwrap().unwrap();
        soonest = soonest.min(start.elapsed());
    }
    // The deadline of calls under way is 5 s.
    assert!(soonest < Duration::from_secs(4), "{soonest:?}");
}

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
        format!("stop the other daemon (process {own}), or give each its own --socket")
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
    assert_eq!(error.to_string(), format!("{}: exists and is not a socket", path.display()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

    let error = Socket::bind(&path.join("below"), Rights::default()).unwrap_err();
    assert!(matches!(&error, SocketError::File { .. }), "{error}");
}

#[tokio::test]
async fn a_stop_ends_watches_and_the_server_at_once() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut watch = client.watch(v1::WatchRequest::default()).await.unwrap().into_inner();
    // The snapshot: its begin and its end.
    for _ in 0..2 {
        watch.message().await.unwrap().unwrap();
    }
    daemon.stop.cancel();
    // The deadline that would cut it off ends it with another status.
    let ended = timeout(Duration::from_secs(60), async {
        let status = watch.message().await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), "the daemon is stopping");
        assert_eq!(daemon.state.await.unwrap(), LoopEnd::Stopped);
        daemon.server.await.unwrap().unwrap();
    });
    ended.await.expect("the end");
    assert!(!daemon.path.exists());
}

/// While the state is busy with one Apply, another one's deadline passes in the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_apply_whose_deadline_passes_in_the_queue_is_not_carried_out() {
    let daemon = Daemon::start();
    let (mut first, channel) = (daemon.client().await, daemon.channel().await);
    let mut second = SpillwayClient::new(channel.clone());
    let stall = daemon.packets.stall();
    let busy = tokio::spawn(async move { first.apply(apply(configuration())).await });
    let stall = stall.begun().await;

    let mut late = Request::new(apply(v1::Configuration::default()));
    late.set_timeout(Duration::from_millis(200));
    let status = second.apply(late).await.unwrap_err();
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");

    // The daemon hears of its end before it hears of later calls of the same connection.
    let mut health = HealthClient::new(channel);
    for _ in 0..50 {
        health.check(HealthCheckRequest::default()).await.unwrap();
    }

    drop(stall);
    busy.await.unwrap().unwrap();
    let exported = second.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(exported.generation, 1, "what nobody waits for is not in force");
    assert_eq!(exported.configuration.unwrap().services.len(), 1);
}

/// What a tool does that knows nothing but the address.
#[tokio::test]
async fn a_stranger_learns_the_whole_api() {
    let daemon = Daemon::start();
    let mut client = ServerReflectionClient::new(daemon.channel().await);
    let ask = async |client: &mut ServerReflectionClient<Channel>, question| {
        let request =
            ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let mut answers = client
            .server_reflection_info(tokio_stream::iter([request]))
            .await
            .unwrap()
            .into_inner();
        answers.next().await.unwrap().unwrap().message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(services) =
        ask(&mut client, MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list")
    };
    let mut names: Vec<_> = services.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "spillway.v1.Fleet",
            "spillway.v1.Objects",
            "spillway.v1.Overrides",
            "spillway.v1.Spillway",
        ]
    );

    // From the symbol to a call: every file that is needed comes on request.
    let mut files: Vec<FileDescriptorProto> = Vec::new();
    let symbol = MessageRequest::FileContainingSymbol("spillway.v1.Objects".into());
    let mut questions = vec![symbol];
    while let Some(question) = questions.pop() {
        let MessageResponse::FileDescriptorResponse(answer) = ask(&mut client, question).await
        else {
            panic!("no file")
        };
        for bytes in answer.file_descriptor_proto {
            let file: FileDescriptorProto = prost::Message::decode(&*bytes).unwrap();
            let known = |name: &String| files.iter().any(|file| file.name.as_ref() == Some(name));
            let missing = file.dependency.iter().filter(|name| !known(name)).cloned();
            questions.extend(missing.map(MessageRequest::FileByFilename));
            if !known(file.name.as_ref().unwrap()) {
                files.push(file);
            }
        }
    }
    let pool = DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: files }).unwrap();
    let objects = pool.get_service_by_name("spillway.v1.Objects").unwrap();
    assert_eq!(objects.methods().len(), 28);
    let update = objects.methods().find(|method| method.name() == "UpdateBackend").unwrap();
    let fields: Vec<_> = update.input().fields().map(|field| field.name().to_owned()).collect();
    assert_eq!(
        fields,
        [
            "backend",
            "update_mask",
            "allow_missing",
            "validate_only",
            "schema_revision",
            "any_schema",
            "reason"
        ]
    );
}
